#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rigs themselves, and what each real receiver makes of lines by hand: the tables of dialects.py, as docs/statsd.md has them."""

import os
import re
import sys
import time
import unittest
from contextlib import ExitStack

import carbon
import dialects
import statsd
from carbon import Carbon
from receiver import Receiver, Unavailable, each, series
from receivers import CollectorStatsd, Collectd, StatsdExporter, VictoriaMetrics
from statsd import Statsd, parse_inspected

HERE = os.path.dirname(os.path.realpath(__file__))
STATSD = {"statsd": Statsd, "statsd_exporter": StatsdExporter, "collector": CollectorStatsd, "collectd": Collectd}
NUMBERS = [1, 2, 3, 6, 7, 10, 49, 93, 100, 999, 12345, 1000000]


def rounded(totals):
    """Times in seconds are sums of floating point numbers."""
    return {key: round(value, 9) for key, value in totals.items()}


def named(totals, *beginnings):
    return {key: value for key, value in totals.items() if key[0].startswith(beginnings)}


def rate_below(number):
    """The rate of one in `number`, its 15th digit cut off and not rounded: 1/rate is never below `number`."""
    digits = 10**15
    return f"{digits // number / digits:.15f}"


class TestStatsd(unittest.TestCase):
    """Four receivers, all at once: every line goes to each, and then they are read."""

    @classmethod
    def setUpClass(cls):
        cls.totals, cls.bad, cls.before = {}, {}, {}
        with ExitStack() as stack:
            receivers = [stack.enter_context(make()) for make in STATSD.values()]
            for receiver in receivers:
                for dialect in dialects.LINES:
                    receiver.send(*dialects.LINES[dialect])
                for name, values, _ in dialects.ODD:
                    for value in values:
                        receiver.send(f"{name}:{value}")
                receiver.send("stays:1|c", "n" * 200 + "1:1|c", "n" * 200 + "2:2|c")
                receiver.send(*(f"full{number:04}.{'x' * 11}:1|c" for number in range(215)))
            cls.before = each(receivers, Receiver.settle)
            cls.bad = {receiver.name: receiver.bad_lines() for receiver in receivers}
            each(receivers, Receiver.stop)
            for receiver in receivers:
                receiver.start()
                receiver.disconnect()
                receiver.pause()
                receiver.send("stays:2|c")
            for receiver in receivers:
                receiver.resume()
            cls.totals = each(receivers, Receiver.settle)

    def assert_table(self, dialect):
        for receiver in dialects.RECEIVERS:
            with self.subTest(receiver=receiver):
                found = {key: value for key, value in self.before[receiver].items() if f"{dialect}_" in key[0]}
                self.assertEqual(rounded(found), dialects.expected(dialect, receiver))

    def test_what_becomes_of_the_plain_dialect(self):
        self.assert_table("plain")

    def test_what_becomes_of_graphite_tags(self):
        self.assert_table("graphite")

    def test_what_becomes_of_dogstatsd_tags(self):
        self.assert_table("dogstatsd")

    def test_what_becomes_of_influx_tags(self):
        self.assert_table("influx")

    def test_what_becomes_of_odd_lines(self):
        odd = tuple(name for name, _, _ in dialects.ODD)
        for receiver in dialects.RECEIVERS:
            with self.subTest(receiver=receiver):
                self.assertEqual(named(self.before[receiver], *odd), dialects.expected_odd(receiver))

    def test_a_bad_line_is_said_to_be_bad(self):
        # packed, stamped | packed | packed | stamped, histogram, all eight of DogStatsD's and what is left of a datagram that was cut
        self.assertEqual(self.bad, {"statsd": 2, "statsd_exporter": 1, "collector": 1, "collectd": 11})

    def test_collectd_joins_names_that_are_long_and_begin_alike(self):
        for receiver in dialects.RECEIVERS:
            values = sorted(named(self.before[receiver], "nnn").values())
            self.assertEqual(values, [3] if receiver == "collectd" else [1, 2], receiver)
        (name, _), = named(self.before["collectd"], "nnn")
        self.assertEqual(len(name), 127)

    def test_collectd_reads_no_more_than_4096_bytes_of_a_datagram(self):
        for receiver in dialects.RECEIVERS:
            arrived = len(named(self.before[receiver], "full"))
            self.assertEqual(arrived, 4096 // len("full0000.xxxxxxxxxxx:1|c\n") if receiver == "collectd" else 215, receiver)

    def test_totals_go_on_over_a_restart_and_a_pause(self):
        for receiver in dialects.RECEIVERS:
            self.assertEqual(self.totals[receiver][series("stays")], 3, receiver)
            self.assertEqual(self.totals[receiver].keys(), self.before[receiver].keys(), receiver)

    def test_console_output_of_statsd_is_parsed(self):
        self.assertEqual(parse_inspected("{\n  a: { 'b.c': 1.5, d: -2 },\n  e: [ [ 1, 2, ... 3 more items ], 'x:,' ],\n  f: {}\n}\n"),
                         {"a": {"b.c": 1.5, "d": -2.0}, "e": [[1.0, 2.0], "x:,"], "f": {}})


class TestRates(unittest.TestCase):
    """Receivers that repeat a value int(1/rate) times lose one where the rate is a hair above 1/N."""

    @classmethod
    def setUpClass(cls):
        cls.totals = {}
        with ExitStack() as stack:
            receivers = [stack.enter_context(make()) for make in (StatsdExporter, CollectorStatsd)]
            for receiver in receivers:
                for number in NUMBERS:
                    receiver.send(f"below{number}:2|d|@{rate_below(number)}", f"six{number}:2|d|@{1 / number:.6f}")
            cls.totals = each(receivers, Receiver.settle)

    def counts(self, receiver, name):
        added = {"statsd_exporter": "_count", "collector": ":count"}[receiver]
        return [self.totals[receiver][series(f"{name}{number}{added}")] for number in NUMBERS]

    def test_a_rate_that_is_cut_off_gives_the_number_itself(self):
        for receiver in self.totals:
            self.assertEqual(self.counts(receiver, "below"), NUMBERS, receiver)

    def test_a_rate_of_six_digits_does_not(self):
        for receiver in self.totals:
            self.assertEqual(self.counts(receiver, "six"), [1, 2, 3, 5, 7, 10, 49, 92, 100, 999, 12345, 1000000], receiver)


class TestUnixSockets(unittest.TestCase):
    def test_datagrams_to_a_path_arrive(self):
        for make, name in ((StatsdExporter, "a_b"), (CollectorStatsd, "a.b")):
            with make(unix=True) as receiver:
                receiver.send(*["a.b:3|c|#k:v"] * 600)  # 7799 bytes
                self.assertEqual(receiver.settle(), {series(name, k="v"): 1800})


class TestGraphite(unittest.TestCase):
    """Carbon and VictoriaMetrics."""

    @classmethod
    def setUpClass(cls):
        cls.now = int(time.time())
        lines = [f"vm1.ssh_service.c.count {value} {cls.now - age}" for value, age in ((3, 20), (0.25, 19), (123456789.000001, 18))]
        lines += [f"large {2**53} {cls.now}", f"small 0.000000001 {cls.now}", f"twice 1 {cls.now}", f"twice 2 {cls.now}"]
        lines += [f"c.count;host.name=vm1;unit=ssh.service 3 {cls.now - 20}", f"c.count;unit=ssh.service;host.name=vm1 4 {cls.now - 19}"]
        with ExitStack() as stack:
            receivers = cls.receivers = [stack.enter_context(make()) for make in (Carbon, VictoriaMetrics)]
            for receiver in receivers:
                receiver.send(*lines)
            each(receivers, Receiver.settle)
            cls.points = {receiver.name: receiver.points() for receiver in receivers}
            for receiver in receivers:
                receiver.stop()
                receiver.disconnect()
                receiver.start()
                receiver.send(f"after 1 {int(time.time())}", "a b c d", "word", "name word 1700000000")
            cls.totals = each(receivers, Receiver.settle)
            cls.files = receivers[0].files()
            cls.bad = [receiver.bad_lines() for receiver in receivers]

    def test_values_and_times_are_kept(self):
        for receiver, points in self.points.items():
            self.assertEqual(points[series("vm1.ssh_service.c.count")],
                             [(self.now - 20, 3), (self.now - 19, 0.25), (self.now - 18, 123456789.000001)], receiver)
            self.assertEqual([points[series("large")], points[series("small")]],
                             [[(self.now, 2**53)], [(self.now, 0.000000001)]], receiver)

    def test_the_order_of_tags_does_not_matter(self):
        for receiver, points in self.points.items():
            self.assertEqual(points[series("c.count", **dialects.TAGS)], [(self.now - 20, 3), (self.now - 19, 4)], receiver)

    def test_of_two_points_in_a_second_carbon_keeps_the_later_one(self):
        self.assertEqual(self.points["carbon"][series("twice")], [(self.now, 2)])
        self.assertEqual(self.points["victoria-metrics"][series("twice")], [(self.now, 1), (self.now, 2)])

    def test_stored_points_outlive_a_restart(self):
        for receiver, totals in self.totals.items():
            before = {key: sum(value for _, value in points) for key, points in self.points[receiver].items()}
            self.assertEqual(totals, {**before, series("after"): 1}, receiver)

    def test_the_files_of_carbon_are_where_they_belong(self):
        tagged = [file for file in self.files if file.startswith("_tagged/")]
        self.assertEqual((sorted(set(self.files) - set(tagged)), len(tagged)),
                         (["after.wsp", "large.wsp", "small.wsp", "twice.wsp", "vm1/ssh_service/c/count.wsp"], 1))

    def test_bad_lines_are_counted(self):
        self.assertEqual(self.bad, [3, 3])


class TestCarbonBehindStatsd(unittest.TestCase):
    def test_statsd_hands_on_the_same_totals(self):
        with Carbon() as store, Statsd(carbon=store, flush_s=2) as receiver:
            receiver.send("a.b:3|c", "g;unit=ssh.service:5|g", "c;unit=ssh.service:7|c")
            self.assertEqual(receiver.settle(), {series("a.b"): 3, series("g", unit="ssh.service"): 5, series("c", unit="ssh.service"): 7})
            receiver.send("a.b:4|c")
            receiver.settle()
            points = {key: [value for _, value in points] for key, points in store.points().items() if "statsd." not in key[0]}
        gauges = points.pop(series("stats.gauges.g", unit="ssh.service"))
        self.assertEqual((set(gauges), len(gauges) > 1), ({5}, True))  # sent anew at each flush
        self.assertEqual(points, {series("stats.counters.a.b.count"): [3, 4], series("stats.counters.a.b.rate"): [1.5, 2],
                                  series("stats.counters.c.count", unit="ssh.service"): [7],
                                  series("stats.counters.c.rate", unit="ssh.service"): [3.5]})


class TestPage(unittest.TestCase):
    """docs/statsd.md says what was seen, and shows the configuration that it was seen with."""

    @classmethod
    def setUpClass(cls):
        with open(os.path.join(HERE, "..", "..", "docs", "statsd.md"), encoding="utf-8") as page:
            cls.page = page.read()

    def test_its_tables_are_those_of_the_tests(self):
        rows = [*dialects.name_rows(), *dialects.value_rows()]
        self.assertEqual(len(rows), 16 + 4 + len(dialects.ODD))
        self.assertEqual([row for row in rows if row not in self.page.split("\n")], [])

    def fragment(self, beginning):
        """The lines of the block that begins so, without blanks at their ends."""
        blocks = re.findall(r"^```\w*\n(.*?)^```$", self.page, re.MULTILINE | re.DOTALL)
        found, = [block for block in blocks if block.startswith(beginning)]
        return [line.strip() for line in found.splitlines()]

    def assert_used(self, beginning, config, *different):
        """All of the fragment is in the rig's configuration, but for addresses and intervals."""
        lines = [line.strip() for line in config.splitlines()]
        self.assertEqual([line for line in self.fragment(beginning) if line not in lines and not line.startswith(different)], [])

    def test_its_fragments_are_those_of_the_tests(self):
        self.assert_used("LoadPlugin statsd", Collectd.CONFIG, "Host", "Port")
        self.assert_used("receivers:\n  statsd:", CollectorStatsd.CONFIG, "endpoint", "aggregation_interval")
        self.assert_used("{\n  port: 8125", statsd.CONFIG.replace("{{", "{").replace("}}", "}") + statsd.GRAPHITE.replace("{{", "{"),
                         "port", "flushInterval", "backends", "graphiteHost", "deleteCounters")
        self.assert_used("MAX_CREATES", carbon.CONFIG)


def lacking():
    """What this machine has not, or None."""
    for make in (*STATSD.values(), Carbon, VictoriaMetrics):
        try:
            make().__exit__()
        except Unavailable as missing:
            return missing
    return None


if __name__ == "__main__":
    os.environ.pop("NOTIFY_SOCKET", None)
    if lacking():
        print(f"skipped: {lacking()}")
        sys.exit(77)
    unittest.main()
