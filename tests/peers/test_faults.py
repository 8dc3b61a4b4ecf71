#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Receivers that stop, come back, do not read or move to another address: what arrives, what is counted as lost, what it costs.

Beside each exporter runs a json exporter that must not notice.
"""

import os
import signal
import sys
import tempfile
import time
import unittest
from contextlib import ExitStack

import expected
from agent import Agent, Follower, Sleepers, config_of
from carbon import Carbon
import patience
from receiver import each
from receivers import StatsdExporter, VictoriaMetrics
from rig import by_second, lacking, statsd_exporter_series

MIB = 2**20
# What the agent may need more than before the fault. Before, it needs what the units of this machine take.
MORE_RESIDENT_BYTES, MORE_PEAK_BYTES = 13 * MIB, 16 * MIB
GRAPHITE = {"type": "graphite", "dialect": "tagged", "retry_initial": "100ms", "retry_max": "500ms", "confirm_every": "1m"}
STATSD = {"type": "statsd", "dialect": "dogstatsd", "retry_max": "500ms"}


TIME_US = "otel_sdk_metric_reader_collection_duration_us_sum"  # grows with each collection, and hardly ever by the same


def collections_us(lines):
    """[(time, how long it took)] of each collection."""
    return [(line["time_ns"], expected.grown(line, line["total"]["sum"], line["delta"]["sum"])) for line in lines
            if line["name"] == "otel.sdk.metric_reader.collection.duration"]


def cached_s(stopped_ns):
    """The seconds whose points Carbon may not have written when it is ended: it writes once a second."""
    return range(stopped_ns // 10**9 - 2, stopped_ns // 10**9 + 1)


def has_last(points, want):
    """Are all points of the last second there?"""
    last = max(max(points_of) for points_of in want.values())
    return all(any(at == last for at, _ in points.get(key, ())) for key, points_of in want.items() if last in points_of)


class Outage:
    """An agent with an interval of 1 s and what it is to push to; at_phase() waits for the quiet part of an interval."""

    def __init__(self, agent, lines_path, sleepers):
        self.agent, self.follower, self.sleepers = agent, Follower(lines_path), sleepers
        self.times_ns = set()
        self.before = self.most = None  # memory: what is resident, and was at most
        self.late_ns = 0
        self.stopped = []  # [from, to): when the agent was stopped, for it to do nothing meanwhile

    def look(self):
        """-> how many collections there were."""
        self.times_ns.update(line["time_ns"] for line in self.follower.lines())
        return len(self.times_ns)

    def at_phase(self, intervals):
        """So many collections from now or a few more, and 0.6 to 0.9 s after the last of them: datagrams are sent in the first
        half second."""
        wanted = self.look() + intervals
        patience.wait(lambda: self.look() >= wanted and 0.6 < time.time() - max(self.times_ns) / 1e9 < 0.9, self.agent.log_text)
        memory = self.agent.memory_bytes()
        self.before = self.before or memory
        self.most = tuple(map(max, memory, self.most or memory))
        self.late_ns = self.agent.waited_ns() + self.sleepers.late_s() * 10**9
        return time.time_ns()

    def between_collections(self, act):
        """act() while the agent is stopped, so that each collection arrives as a whole or not at all; when that was done."""
        began_ns = time.time_ns()
        self.agent.process.send_signal(signal.SIGSTOP)
        act()
        ended_ns = time.time_ns()
        self.agent.process.send_signal(signal.SIGCONT)
        self.stopped.append((began_ns, ended_ns))
        return ended_ns


def lost_points(lines, exporter):
    """{error.type: points} at the end."""
    return {line["attributes"].get("error.type"): line["total"] for line in lines
            if line["name"] == "otel.sdk.exporter.metric_data_point.exported" and
            line["attributes"]["otel.component.name"] == exporter}


class FaultTest(unittest.TestCase):
    """Asserts what holds for each of the faults; its children set outage, lines, log and status."""

    outage = lines = log = status = None

    def assert_undisturbed(self):
        times = sorted({line["time_ns"] for line in self.lines})
        allowed_ns = 300 * 10**6 + self.outage.late_ns  # on a busy machine it waits for a CPU
        late = [(after - before) / 1e9 for before, after in zip(times[:-1], times[1:-1]) if abs(after - before - 10**9) > allowed_ns and
                not any(before < ended_ns + 10**9 and began_ns < after for began_ns, ended_ns in self.outage.stopped)]
        self.assertEqual(late, [], "collections that were not 1 s after the one before")
        (resident, peak), (most_resident, most_peak) = self.outage.before, self.outage.most
        print(f"{type(self).__name__}: {resident >> 10} KiB resident, then up to {most_resident >> 10}; {peak >> 10} KiB at most, then "
              f"{most_peak >> 10}", file=sys.stderr)
        self.assertLess(most_resident, resident + MORE_RESIDENT_BYTES)
        self.assertLess(most_peak, peak + MORE_PEAK_BYTES)
        self.assertEqual(self.status, 0, self.log)

    def assert_same(self, have, want):
        differences = [f"{key}: arrived {have.get(key)}, expected {want.get(key)}"
                       for key in sorted({*have, *want}) if have.get(key) != want.get(key)]
        self.assertEqual(differences[:5], [], f"{len(differences)} of {len(want)}")

    def assert_points(self, points, want, in_cache_s=()):
        """Carbon that ends loses what it has read and not yet written: those seconds say nothing."""
        def known(series):
            cut = {key: {at: value for at, value in points.items() if at not in in_cache_s} for key, points in series.items()}
            return {key: points for key, points in cut.items() if points}
        self.assert_same(known(points), known(want))

    def assert_statsd(self, name, lines):
        """Counters of those lines; gauges as they are at the end, since all are sent again to a receiver that was away."""
        gauges = [line for line in self.lines if line["kind"] == "gauge"]
        at_end = [line for line in gauges if line["time_ns"] == self.lines[-1]["time_ns"]]
        want = {**expected.statsd_totals(at_end, "dogstatsd"),
                **expected.statsd_totals([line for line in lines if line["kind"] != "gauge"], "dogstatsd")}
        ended = {*expected.statsd_totals(gauges, "dogstatsd")} - {*want}  # as when somebody else no longer lists programs
        have = {key: value for key, value in self.totals[name].items() if key not in {*map(statsd_exporter_series, ended)}}
        self.assert_same(have, {statsd_exporter_series(key): value for key, value in want.items()})

    @classmethod
    def run_faults(cls, receivers, act, prefix=(), agent=""):
        """act(outage) with an agent that pushes to {name: (receiver, keys)}; then they are read."""
        directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-peers."))
        lines_path = os.path.join(directory, "lines.json")
        config = config_of("1s", lines_path, {name: {"endpoint": receiver.endpoint, **keys}
                                              for name, (receiver, keys) in receivers.items()})
        config = config.replace("[agent]\n", f"[agent]\n{agent}\n", 1)
        with Agent(config, prefix) as agent, Sleepers() as sleepers:
            cls.outage = Outage(agent, lines_path, sleepers)
            act(cls.outage)
            cls.status, cls.log = agent.stop(), agent.log_text()
        cls.lines = expected.read_lines(lines_path)
        want = expected.graphite_points(cls.lines, "tagged", 1)
        kept = {id(receiver) for receiver, keys in receivers.values() if keys["type"] == "graphite"}
        # Carbon may rest for seconds before it writes the last points.
        each([receiver for receiver, _ in receivers.values()],
             lambda receiver: receiver.settle(lambda _: id(receiver) not in kept or has_last(receiver.points(), want)))
        cls.totals = {name: receiver.totals() for name, (receiver, _) in receivers.items()}
        cls.points = {name: by_second(receiver.points(), want) for name, (receiver, keys) in receivers.items()
                      if keys["type"] == "graphite"}


class TestStopAndRestart(FaultTest):
    """All receivers are away for four collections."""

    @classmethod
    def setUpClass(cls):
        with ExitStack() as stack:
            start = stack.enter_context
            receivers = {"udp": (start(StatsdExporter()), STATSD), "unix": (start(StatsdExporter(unix=True)), STATSD),
                         "carbon": (start(Carbon()), GRAPHITE), "victoria": (start(VictoriaMetrics()), GRAPHITE)}

            def act(outage):
                outage.at_phase(3)
                cls.stopped_ns = outage.between_collections(lambda: unix.stop(keep=False))
                each([receiver for receiver, _ in receivers.values()], lambda receiver: receiver.stop(keep=False))
                outage.at_phase(4)
                cls.started_ns = outage.between_collections(udp.start)
                for name in ("unix", "carbon", "victoria"):
                    receivers[name][0].start()
                outage.at_phase(4)

            udp, unix = (receivers[name][0] for name in ("udp", "unix"))
            udp.kept, unix.kept = {}, {}
            cls.run_faults(receivers, act)

    def test_nothing_else_is_disturbed(self):
        self.assert_undisturbed()

    def test_graphite_has_lost_no_point(self):
        want = expected.graphite_points(self.lines, "tagged", 1)
        for name, points in self.points.items():
            self.assert_points(points, want, cached_s(self.stopped_ns) if name == "carbon" else ())
            self.assertEqual({kind: count for kind, count in lost_points(self.lines, name).items() if kind and count}, {})

    def test_udp_goes_on_when_the_receiver_is_back(self):
        after = [line for line in self.lines if line["time_ns"] > self.started_ns]
        self.assertGreaterEqual(len({line["time_ns"] for line in after}), 4)
        self.assert_statsd("udp", after)

    def test_what_udp_lost_is_counted(self):
        away = [line for line in self.lines if self.stopped_ns < line["time_ns"] < self.started_ns]
        self.assertGreaterEqual(len({line["time_ns"] for line in away}), 4)
        lost = lost_points(self.lines, "udp")
        self.assertGreater(lost["connection_refused"], 4 * 100, lost)
        self.assertEqual(sum(count for kind, count in lost.items() if kind), lost["connection_refused"], lost)

    def test_a_unix_socket_has_lost_nothing_while_it_was_not_there(self):
        """It had read what was sent before, but nobody can know that of the last push, or of two."""
        self.assert_statsd("unix", [line for line in self.lines if line["time_ns"] > self.stopped_ns])
        lost = lost_points(self.lines, "unix")
        self.assertEqual(sum(count for kind, count in lost.items() if kind), lost.get("in_doubt", 0), lost)
        self.assertLess(lost.get("in_doubt", 0), lost[None] / 2, lost)


class TestPause(FaultTest):
    """All receivers are there and do not read for four collections."""

    @classmethod
    def setUpClass(cls):
        with ExitStack() as stack:
            start = stack.enter_context
            receivers = {"udp": (start(StatsdExporter()), STATSD), "unix": (start(StatsdExporter(unix=True)), STATSD),
                         "carbon": (start(Carbon()), GRAPHITE), "victoria": (start(VictoriaMetrics()), GRAPHITE)}

            def act(outage):
                outage.at_phase(3)
                for receiver, _ in receivers.values():
                    receiver.pause()
                outage.at_phase(4)
                for receiver, _ in receivers.values():
                    receiver.resume()
                outage.at_phase(2)

            cls.run_faults(receivers, act)

    def test_nothing_else_is_disturbed(self):
        self.assert_undisturbed()

    def test_graphite_has_lost_no_point(self):
        want = expected.graphite_points(self.lines, "tagged", 1)
        for points in self.points.values():
            self.assert_same(points, want)

    def test_a_unix_socket_has_lost_nothing(self):
        self.assert_statsd("unix", self.lines)

    def test_udp_goes_on(self):
        """What does not fit into the receiver's buffer is gone, and no kernel tells the sender."""
        want = {statsd_exporter_series(key): value for key, value in expected.statsd_totals(self.lines, "dogstatsd").items()}
        time_us, = [key for key in want if key[0] == TIME_US]
        times = [grown for _, grown in collections_us(self.lines)]
        self.assertLessEqual(self.totals["udp"][time_us], want[time_us])
        self.assertGreaterEqual(self.totals["udp"][time_us], sum(times[:3] + times[-2:]))


class TestMove(FaultTest):
    """A name leads elsewhere. Of two receivers of each kind the first stays where it was ("moved") or is gone ("gone")."""

    @classmethod
    def setUpClass(cls):
        with ExitStack() as stack:
            start = stack.enter_context
            first = {"udp-moved": StatsdExporter, "udp-gone": StatsdExporter, "victoria-moved": VictoriaMetrics, "carbon-gone": Carbon}
            first = {name: start(make("127.0.0.2")) for name, make in first.items()}
            second = {name: start(type(receiver)("127.0.0.3", receiver.port)) for name, receiver in first.items()}
            keys = {"udp-moved": {**STATSD, "resolve_every": "1s"}, "udp-gone": STATSD,
                    "victoria-moved": {**GRAPHITE, "confirm_every": "2s"}, "carbon-gone": GRAPHITE}
            hosts = os.path.join(start(tempfile.TemporaryDirectory(prefix="bpfpush-peers.")), "hosts")

            def lead_to(address):
                with open(hosts, "w", encoding="ascii") as file:
                    file.write(f"127.0.0.1 localhost\n{address} receiver.test\n")

            def act(outage):
                cls.stopped_ns = outage.at_phase(3)
                for name in ("udp-gone", "carbon-gone"):
                    first[name].stop(keep=False)
                lead_to("127.0.0.3")
                cls.moved_ns = time.time_ns()
                outage.at_phase(10)  # a connection is renewed when it is five seconds old

            lead_to("127.0.0.2")
            cls.run_faults({name: (second[name], {**keys[name], "endpoint": f"receiver.test:{first[name].port}"}) for name in first},
                           act, ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts])
            cls.before = {"udp-moved": first["udp-moved"].settle(), "victoria-moved": first["victoria-moved"].points(),
                          "carbon-gone": first["carbon-gone"].points()}

    def test_nothing_else_is_disturbed(self):
        self.assert_undisturbed()

    def test_graphite_has_lost_no_point(self):
        want = expected.graphite_points(self.lines, "tagged", 1)
        for name in ("victoria-moved", "carbon-gone"):
            have = by_second(self.before[name], want)
            for key, points in self.points[name].items():
                have.setdefault(key, {}).update(points)
            self.assert_points(have, want, cached_s(self.stopped_ns) if name == "carbon-gone" else ())
        # A connection that works is not left, wherever the name leads meanwhile.
        self.assertGreaterEqual(max(map(len, self.points["carbon-gone"].values())), 3)

    def test_udp_finds_the_new_address_and_loses_nothing_where_the_old_one_still_listens(self):
        want = expected.statsd_totals(self.lines, "dogstatsd")
        gauges = {statsd_exporter_series(expected.Naming("dogstatsd").series(line)) for line in self.lines if line["kind"] == "gauge"}
        have = {key: self.before["udp-moved"].get(key, 0) + value for key, value in self.totals["udp-moved"].items() if key not in gauges}
        have = {**self.before["udp-moved"], **have}
        counters = {statsd_exporter_series(key): value for key, value in want.items()}
        self.assert_same({key: value for key, value in have.items() if key not in gauges},
                         {key: value for key, value in counters.items() if key not in gauges})

    def test_udp_sends_all_gauges_to_the_new_address(self):
        last = max(line["time_ns"] for line in self.lines)
        want = expected.statsd_totals([line for line in self.lines if line["kind"] == "gauge" and line["time_ns"] == last], "dogstatsd")
        want = {statsd_exporter_series(key): value for key, value in want.items()}
        for name in ("udp-moved", "udp-gone"):
            self.assertEqual({key: self.totals[name].get(key) for key in want}, want, name)

    def test_udp_finds_the_new_address_within_three_collections_where_nobody_listens_at_the_old_one(self):
        """A collection that was made while the name moved may arrive, too: what counts is that no more than three were lost."""
        time_us = next(key for key in self.totals["udp-gone"] if key[0] == TIME_US)
        times = collections_us(self.lines)
        grown = [us for _, us in times]
        began = sum(time_ns <= self.stopped_ns for time_ns, _ in times)
        moved = sum(time_ns <= self.moved_ns for time_ns, _ in times)
        self.assertIn(self.totals["udp-gone"][time_us], [sum(grown[first:]) for first in range(began, moved + 4)])
        self.assertGreater(lost_points(self.lines, "udp-gone")["connection_refused"], 0)


class TestFullQueue(FaultTest):
    """A receiver that is away for longer than its queue lasts: what is counted then comes as one sum. The agent tells of no unit,
    so the size of a push does not depend on how many this machine has."""

    @classmethod
    def setUpClass(cls):
        with VictoriaMetrics() as victoria:
            def act(outage):
                outage.at_phase(3)  # the first two may share a slot
                victoria.stop()
                outage.at_phase(16)
                victoria.start()
                outage.at_phase(8)  # it is known to be back after five seconds
            cls.run_faults({"victoria": (victoria, GRAPHITE)}, act, agent="queue_size = 64KiB\ninclude_units = none.service")

    def test_nothing_else_is_disturbed(self):
        self.assert_undisturbed()

    def test_no_count_is_lost(self):
        self.assertEqual({kind: count for kind, count in lost_points(self.lines, "victoria").items() if kind and count}, {})
        want, seconds = expected.graphite_points(self.lines, "tagged", 1), set(expected.slots(self.lines, 1).values())
        gauges = {expected.Naming("tagged").series(line) for line in self.lines if line["kind"] == "gauge"}
        have = self.points["victoria"]
        arrived = {second for points in have.values() for second in points}
        self.assertLess(len(arrived), len(seconds), "windows that became one")
        self.assertLessEqual(arrived, seconds)

        def sums(series):
            return {key: round(sum(points.values()), 6) for key, points in series.items() if key not in gauges}
        self.assert_same(sums(have), sums(want))



if __name__ == "__main__":
    if missing := lacking():
        print(f"skipped: {missing}")
        sys.exit(77)
    unittest.main()
