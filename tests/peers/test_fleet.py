#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand machines that start together, push to one real Collector, and live through its outages: none moves in step
with the others, and each count arrives once.

Spread is measured in the busiest tenth of an interval. That a machine is due does not depend on load. When a request is
begun does, so those bounds leave room for a stall: evenly spread is a tenth, or a fifth while as much again waits, and all
machines in step are the whole."""

import os
import signal
import unittest
from collections import Counter

import collector
from agent import Sleepers
from machines import Fleet, Full, Store, busiest, now_ns, raise_files_limit, soon, wait_until

MACHINES, SERIES, PUSHES = 1000, 10, 9
INTERVAL_NS = 4 * 10**9
TENTH_NS = INTERVAL_NS // 10
OPTIONS = ["retry_max=4s", "timeout=0"]  # requests that hang are answered some time, so none is in doubt


def parts(machines, begin_ns, end_ns):
    """What a tenth has, of the events of that time, for each machine that there is."""
    return busiest([moment for _, moment in machines if begin_ns <= moment < end_ns], TENTH_NS) / MACHINES


class FleetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise_files_limit()
        sleepers = cls.enterClassContext(Sleepers())
        store = cls.enterClassContext(Store())
        cls.at_ns = soon()
        fleets = [cls.enterClassContext(Fleet(store.url, cls.at_ns, f"temporality={temporality}", *OPTIONS, first=first,
                                              machines=MACHINES // 2, series=SERIES, interval=INTERVAL_NS // 10**6, pushes=PUSHES))
                  for first, temporality in ((0, "cumulative"), (MACHINES // 2, "delta"))]
        wait_until(cls.at_ns + 1 * INTERVAL_NS)
        os.kill(store.process.pid, signal.SIGSTOP)  # it takes connections and requests, and does not answer
        wait_until(cls.at_ns + 3 * INTERVAL_NS)
        os.kill(store.process.pid, signal.SIGCONT)
        cls.answers_ns = now_ns()
        wait_until(cls.at_ns + 5 * INTERVAL_NS)
        store.stop()
        wait_until(cls.at_ns + 6 * INTERVAL_NS)
        with Full(store.otlp_ports[0], 2) as full:
            full.wait_answers(MACHINES)
        store.come_back()
        cls.back_ns = now_ns()
        for fleet in fleets:
            fleet.wait()
        store.stop()
        cls.pushes = [push for fleet in fleets for push in fleet.pushes]
        cls.requests = [request for fleet in fleets for request in fleet.requests]
        cls.counts = {name: sum(fleet.counts[name] for fleet in fleets) for name in fleets[0].counts}
        cls.points = store.points()
        # What part of an interval's requests a machine that stands still may make at once, when it goes on.
        cls.late = sleepers.late_s() * 10**9 / INTERVAL_NS

    def test_after_a_common_restart_pushes_are_spread_over_the_interval(self):
        first = {}
        for machine, moment in self.pushes:
            self.assertEqual((moment - first.setdefault(machine, moment)) % INTERVAL_NS, 0)
        self.assertEqual(len(first), MACHINES)
        for moment in first.values():
            self.assertTrue(0 < moment - self.at_ns <= INTERVAL_NS)
        self.assertLess(parts(first.items(), 0, 2**63), 0.15)  # 0.13 at most, wherever the interval begins
        self.assertLess(parts(self.requests, self.at_ns, self.at_ns + INTERVAL_NS), 0.5 + self.late)

    def test_a_receiver_that_answers_all_at_once_is_not_asked_by_all_at_once(self):
        """Nearly all have an answer at that moment, and something newer that waits."""
        waiting = [request for request in self.requests if request[1] >= self.answers_ns]
        self.assertGreater(len({machine for machine, _ in waiting}), MACHINES * 0.99)
        self.assertLess(parts(waiting, self.answers_ns, self.answers_ns + INTERVAL_NS), 0.5 + self.late)

    def test_after_a_common_outage_machines_do_not_come_back_together(self):
        first = {}
        for machine, moment in sorted(self.requests, key=lambda request: request[1]):
            if moment >= self.back_ns:
                first.setdefault(machine, moment)
        self.assertLess(parts(first.items(), self.back_ns, 2**63), 0.5 + self.late)
        self.assertLess(parts(self.requests, self.back_ns, 2**63), 0.7 + self.late)  # with deltas, several each

    def test_each_count_arrives_once(self):
        totals, deltas, times = {}, Counter(), Counter()
        for point in self.points:
            key = int(point["resource"]["service.instance.id"].split("-")[1]), point["attributes"]["n"]
            times[key, point["time_ns"]] += 1
            if point["temporality"] == "delta":
                deltas[key] += point["value"]
            else:
                totals[key] = max(totals.get(key, 0), point["value"])
        self.assertEqual({key: n for key, n in times.items() if n > 1}, {})
        self.assertEqual({**totals, **deltas}, {(machine, n): PUSHES * (PUSHES + 1) // 2 * (machine + 1) * (n + 1)
                                                for machine in range(MACHINES) for n in range(SERIES)})
        self.assertEqual(self.counts["delivered"], self.counts["pushed"])
        self.assertEqual(len(self.points), self.counts["delivered"])


if __name__ == "__main__":
    collector.main()
