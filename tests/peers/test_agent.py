#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent counts arrives at the real Collector unchanged, in every temporality and histogram kind.

Two sources to compare with: the JSON lines of the same agent, point by point, and an independent
`bpfpush once --format=json` that counts the same workload with maps of its own.
"""

import json
import os
import sys
import tempfile
import unittest

from agent import Agent, Follower, ROOMY, Unavailable as NoAgent, cgroup2_mount, count_once, require_agent
from collector import Collector, Unavailable as NoCollector, collector_path
from expected import explicit
import json_lines

HERE = os.path.dirname(os.path.realpath(__file__))
SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
GAUGES = {"bpfpush.bpf.program.event.missed_ratio"}  # all other gauges add up: OTLP's updowncounters
WAYS = [(temporality, histogram) for temporality in ("cumulative", "delta") for histogram in ("explicit", "exponential")]


def config_text(urls, json_path):
    sections = [f"[agent]\ninterval = 1s\n{ROOMY}", f"[exporter lines]\ntype = json\npath = {json_path}\n"]
    for (temporality, histogram), url in zip(WAYS, urls):
        sections.append(f"[exporter {temporality}-{histogram}]\ntype = otlp\nendpoint = {url}\n"
                        f"temporality = {temporality}\nhistogram = {histogram}\n")
    return "\n".join(sections)


def identity(scope, name, attributes):
    return scope, name, tuple(sorted(attributes.items()))


def key_of_line(line):
    return identity(line["collector"], line["name"], line["attributes"])


def key_of_point(point):
    return identity(point["scope"].removeprefix("bpfpush."), point["name"], point["attributes"])


def buckets_of(bounds, counts):
    """{upper limit: count} of the buckets that hold anything; the one above all limits is infinity."""
    return {upper: count for upper, count in zip([*map(float, bounds), float("inf")], counts) if count}


def buckets_of_exponential(point, last_bound):
    """The same of an exponential histogram, whose last bucket has the next power for a limit."""
    buckets = {0.0: point["zero_count"]} if point["zero_count"] else {}
    for index, count in enumerate(point["counts"]):
        upper = 2.0 ** ((point["offset"] + index + 1) / 2.0 ** point["scale"])
        if count:
            buckets[upper if upper <= last_bound else float("inf")] = count
    return buckets


def numbers_of_line(line, member, histogram="exponential"):
    numbers = line[member]
    if line["kind"] != "histogram":
        return numbers
    bounds, counts = numbers["bounds"], numbers["counts"]
    if histogram == "explicit":
        (*bounds, _), counts = explicit(line["name"], line["unit"], numbers)
    return numbers["count"], numbers["sum"], buckets_of(bounds, counts)


def numbers_of_point(point, line):
    """The numbers of a point in the shape of numbers_of_line()."""
    if point["kind"] in ("sum", "gauge"):
        return point["value"]
    if point["kind"] == "histogram":
        return point["count"], point["sum"] or 0, buckets_of(point["bounds"], point["counts"])
    last_bound = line["total"]["bounds"][-1]
    return point["count"], point["sum"] or 0, buckets_of_exponential(point, last_bound)


def is_level(point):
    """Of what has a value, and no growth: a gauge or an updowncounter."""
    return point["kind"] == "gauge" or (point["kind"] == "sum" and not point["is_monotonic"])


def is_zero(point):
    """The point of 0 at the start of a new series."""
    return not is_level(point) and point["time_ns"] == point["start_time_ns"]


def is_extra(point):
    return is_zero(point) or point["flags"] == 1


KINDS = {("sum", "explicit"): "sum", ("sum", "exponential"): "sum", ("gauge", "explicit"): "sum",
         ("gauge", "exponential"): "sum", ("histogram", "explicit"): "histogram",
         ("histogram", "exponential"): "exponentialHistogram"}


def comparable(name, kind, number, histogram):
    """What two observers of the same events must agree on."""
    if kind == "sum":
        return number
    if name == "bpfpush.scheduler.run_queue.duration":
        # The kernel's own clock, so its sum is one; but an end of a wait that a program misses (it met
        # another one's task storage in use) joins that wait to the task's next, and is one less to count.
        return histogram["sum"]
    return histogram["count"]


class TestAgent(unittest.TestCase):
    """One run of everything, looked at from several sides."""

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-peers."))
        cls.collector = cls.enterClassContext(Collector(channels=len(WAYS)))
        cls.cgroup = os.path.join(cgroup2_mount(), f"bpfpush-peers-{os.getpid()}")
        os.mkdir(cls.cgroup)
        cls.addClassCleanup(os.rmdir, cls.cgroup)
        lines_path = os.path.join(cls.directory, "lines.json")
        with Agent(config_text(cls.collector.otlp_urls, lines_path)) as agent:
            cls.once = cls.run_once()
            os.rmdir(cls.cgroup)
            Follower(lines_path).wait_end("/" + os.path.basename(cls.cgroup))
            os.mkdir(cls.cgroup)
            cls.status = agent.stop()
            cls.log = agent.log_text()
        cls.collector.stop()
        cls.lines = json_lines.points(json_lines.read(lines_path))
        cls.points = [cls.collector.points(channel) for channel in range(len(WAYS))]

    @classmethod
    def run_once(cls):
        workload = os.path.join(HERE, "workload.py")
        lines = count_once(cls.directory, sys.executable, workload, cls.cgroup, os.path.join(cls.directory, "file"))
        return [json.loads(line) for line in lines]

    def is_workload(self, attributes):
        return os.path.basename(self.cgroup) in str(attributes.get("process.linux.cgroup", ""))

    def points_by_key(self, way):
        found = {}
        for point in self.points[WAYS.index(way)]:
            if is_extra(point):
                continue
            found.setdefault(key_of_point(point), {})[point["time_ns"]] = point
        return found

    def assert_same(self, point, line, member, histogram):
        self.assertEqual(point["kind"], "gauge" if line["name"] in GAUGES else KINDS[line["kind"], histogram])
        self.assertEqual(is_level(point), line["kind"] == "gauge")
        self.assertEqual(numbers_of_point(point, line), numbers_of_line(line, member, histogram), (line, point))

    def test_the_agent_ends_well(self):
        self.assertEqual(self.status, 0, self.log)

    def test_cumulative_points_equal_the_totals_of_the_lines(self):
        for histogram in ("explicit", "exponential"):
            points = self.points_by_key(("cumulative", histogram))
            for line in self.lines:
                point = points[key_of_line(line)][line["time_ns"]]
                member = "value" if line["kind"] == "gauge" else "total"
                self.assert_same(point, line, member, histogram)
                self.assertEqual(point["unit"], line["unit"])
                if line["kind"] != "gauge":
                    self.assertEqual((point["start_time_ns"], point["temporality"]), (line["start_time_ns"], "cumulative"))

    def test_an_updowncounter_is_a_cumulative_sum_that_may_fall_whatever_the_temporality(self):
        levels = [line for line in self.lines if line["kind"] == "gauge" and line["name"] not in GAUGES]
        self.assertLessEqual({"system.network.connection.count", "otel.sdk.exporter.metric_data_point.inflight"},
                             {line["name"] for line in levels})
        for way in WAYS:
            points = self.points_by_key(way)
            for line in levels:
                point = points[key_of_line(line)][line["time_ns"]]
                self.assert_same(point, line, "value", way[1])
                self.assertEqual((point["temporality"], point["is_monotonic"]), ("cumulative", False))
                self.assertTrue(0 < point["start_time_ns"] < point["time_ns"], point)

    def test_every_point_says_which_conventions_its_name_is_from(self):
        for points in self.points:
            self.assertEqual({point["schemas"] for point in points}, {(SCHEMA, SCHEMA)})

    def test_delta_points_equal_the_deltas_of_the_lines(self):
        for histogram in ("explicit", "exponential"):
            points = self.points_by_key(("delta", histogram))
            for line in self.lines:
                if line["kind"] == "gauge":
                    continue
                point = points.get(key_of_line(line), {}).get(line["time_ns"])
                if point is None:  # nothing happened: nothing need be said
                    self.assertIn(numbers_of_line(line, "delta"), (0, (0, 0, {})), line)
                    continue
                self.assertEqual(point["temporality"], "delta")
                self.assert_same(point, line, "delta", histogram)

    def test_deltas_add_up_to_the_last_total(self):
        for histogram in ("explicit", "exponential"):
            cumulative = self.points_by_key(("cumulative", histogram))
            for key, deltas in self.points_by_key(("delta", histogram)).items():
                # A series that ended and came back has begun again.
                lasts = {point["start_time_ns"]: point for _, point in sorted(cumulative[key].items())}.values()
                first = next(iter(lasts))
                member = None if is_level(first) else "value" if first["kind"] == "sum" else "count"
                if member:
                    self.assertAlmostEqual(sum(point[member] for point in deltas.values()), sum(point[member] for point in lasts), 6, key)

    def test_the_windows_of_deltas_touch_and_do_not_overlap(self):
        for histogram in ("explicit", "exponential"):
            for key, by_time in self.points_by_key(("delta", histogram)).items():
                ends = sorted(by_time)
                for before, after in zip(ends, ends[1:]):
                    if not is_level(by_time[after]):
                        self.assertGreaterEqual(by_time[after]["start_time_ns"], before, key)

    def test_every_point_of_the_collector_is_in_the_lines(self):
        known = {(key_of_line(line), line["time_ns"]) for line in self.lines}
        for way, points in zip(WAYS, self.points):
            unknown = [point for point in points if (key_of_point(point), point["time_ns"]) not in known and not is_extra(point)]
            self.assertEqual(unknown[:3], [], way)

    def test_a_new_cumulative_series_begins_with_a_point_of_0(self):
        firsts = {(key_of_line(line), line["start_time_ns"]): line for line in reversed(self.lines) if line["kind"] != "gauge"}
        for way, points in zip(WAYS, self.points):
            zeros = [(key_of_point(point), point["start_time_ns"]) for point in points if is_zero(point)]
            self.assertEqual(len(zeros), len(set(zeros)), way)
            for point in filter(is_zero, points):
                line = firsts[key_of_point(point), point["time_ns"]]
                self.assertIn(numbers_of_point(point, line), (0, (0, 0, {})))
            if way[0] == "delta":
                self.assertEqual(zeros, [])
            else:
                self.assertEqual(set(zeros),
                                 {key for key, line in firsts.items() if numbers_of_line(line, "total") not in (0, (0, 0, {}))}, way)

    def test_a_series_that_ends_says_so_once(self):
        times = {}
        for line in self.lines:
            times.setdefault(key_of_line(line), []).append(line["time_ns"])
        ended = {key for key in times if self.is_workload(dict(key[2]))}
        self.assertGreater(len(ended), 60)
        for way, points in zip(WAYS, self.points):
            marks = [point for point in points if point["flags"] == 1]
            self.assertEqual({point["kind"] for point in marks if not is_level(point)}, set() if way[0] == "delta" else {"sum", KINDS["histogram", way[1]]})
            if way[0] == "cumulative":
                self.assertEqual(sorted(ended), sorted(key_of_point(point) for point in marks if self.is_workload(point["attributes"])))
            for point in marks:
                self.assertNotIn(point["time_ns"], times[key_of_point(point)])
                self.assertGreater(point["time_ns"], times[key_of_point(point)][0])
                self.assertFalse(point.get("value") or point.get("count") or any(point.get("counts", [])), point)

    def test_once_counted_the_same_workload(self):
        """Numbers that hold no time of the observer: two of them stamp the clock at different moments."""
        mine = {key_of_line(line): line for line in self.once if self.is_workload(line["attributes"])}
        self.assertGreater(len(mine), 60, "the workload's series")
        points = self.points_by_key(("cumulative", "explicit"))
        differences = []
        for key, line in mine.items():
            if line["kind"] == "gauge":
                continue
            by_time = points.get(key, {})
            point = by_time[max(by_time)] if by_time else None
            left = point and comparable(key[1], line["kind"], point.get("value"), point)
            right = comparable(key[1], line["kind"], line["total"], line["total"])
            if left != right:
                differences.append(f"{key}: Collector {left}, once {right}")
        self.assertEqual(differences, [])

    def test_all_six_collectors_have_points_of_the_workload(self):
        for way, points in zip(WAYS, self.points):
            scopes = {key_of_point(point)[0] for point in points if self.is_workload(point["attributes"])}
            self.assertLessEqual({"syscalls", "network", "fileio", "scheduler", "memory", "tcpstate"}, scopes, way)


if __name__ == "__main__":
    try:
        require_agent()
        collector_path()
    except (NoAgent, NoCollector) as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
