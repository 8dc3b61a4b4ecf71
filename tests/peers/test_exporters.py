#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent counts arrives at seven real receivers of StatsD and Graphite unchanged, all at once from one collection.

Two sources to compare with: the JSON lines of the same agent, series by series (and point by point where there are points),
and an independent `bpfpush once --format=json` that counts the same workload with maps of its own.
"""

import json
import os
import sys
import tempfile
import unittest
from contextlib import ExitStack

import expected
from agent import Agent, Follower, cgroup2_mount, count_once
from receiver import Receiver, each
from rig import INTERVAL_S, Rig, assert_held_to_127_bytes, by_second, carbon_series_of_statsd, lacking, statsd_exporter_series

HERE = os.path.dirname(os.path.realpath(__file__))
os.environ["OTEL_LOG_LEVEL"] = "warn"  # of the agent: its log holds nothing else


class TestExporters(unittest.TestCase):
    """One run of everything, looked at from several sides."""

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-peers."))
        cls.cgroup = os.path.join(cgroup2_mount(), f"bpfpush-peers-{os.getpid()}")
        os.mkdir(cls.cgroup)
        cls.addClassCleanup(os.rmdir, cls.cgroup)
        with ExitStack() as stack:
            rig = Rig(stack)
            cls.run_agent(rig)
            cls.read(rig)

    @classmethod
    def run_agent(cls, rig):
        lines_path = os.path.join(cls.directory, "lines.json")
        # Of this test's cgroup alone: what a receiver has to store does not depend on how many units this machine has.
        config = rig.config(lines_path).replace("[agent]\n", f"[agent]\ninclude_units = /{os.path.basename(cls.cgroup)}\n")
        with Agent(config) as agent:
            cls.once = cls.run_once()
            Follower(lines_path).wait_collections(5)  # two may share a second, the first two and the last two
            cls.status = agent.stop()
            cls.log = agent.log_text()
        cls.lines = expected.read_lines(lines_path)

    @classmethod
    def run_once(cls):
        workload = os.path.join(HERE, "workload.py")
        lines = count_once(cls.directory, sys.executable, workload, cls.cgroup, os.path.join(cls.directory, "file"))
        return [json.loads(line, parse_float=expected.Decimal) for line in lines]

    @classmethod
    def read(cls, rig):
        receivers = rig.receivers()
        each(receivers, Receiver.settle)
        cls.totals = {name: receiver.totals() for name, (receiver, _) in rig.ways.items()}
        want = {**expected.graphite_points(cls.lines, "dotted", INTERVAL_S), **expected.graphite_points(cls.lines, "tagged", INTERVAL_S)}
        cls.want_points = want
        cls.points = {name: by_second(receiver.points(), want) for name, (receiver, keys) in rig.ways.items()
                      if keys["type"] == "graphite"}
        want = cls.want_behind().items()  # statsd sends gauges for ever, so it does not come to rest
        cls.behind = rig.behind.wait_totals(lambda totals: want <= totals.items())
        cls.bad = {name: receiver.bad_lines() for name, (receiver, _) in rig.ways.items()}

    def assert_same(self, have, want, least=200):
        self.assertGreater(len(want), least)
        differences = [f"{key}: arrived {have.get(key)}, expected {want.get(key)}"
                       for key in sorted({*have, *want}) if have.get(key) != want.get(key)]
        self.assertEqual(differences[:5], [], f"{len(differences)} of {len(want)}")

    def test_the_agent_ends_well_and_has_lost_nothing(self):
        self.assertEqual(self.status, 0, self.log)
        # Carbon and VictoriaMetrics get paths and tags on purpose. The rig's service manager keeps no descriptors.
        # A busy kernel may skip events.
        expected_ones = ("push to the same endpoint", "raise FileDescriptorStoreMax=", "because the kernel skipped events", "no longer skips events")
        self.assertEqual([line for line in self.log.splitlines() if not any(one in line for one in expected_ones)], [])
        losses = [line for line in self.lines if line["name"] == "otel.sdk.exporter.metric_data_point.exported" and
                  "error.type" in line["attributes"] and line["total"]]
        self.assertEqual(losses, [])

    def test_no_receiver_finds_a_line_bad(self):
        self.assertEqual(self.bad, dict.fromkeys(self.bad, 0))

    def test_statsd_has_the_same_totals_with_tags_and_without(self):
        self.assert_same(self.totals["statsd-graphite"], expected.statsd_totals(self.lines, "graphite"))
        self.assert_same(self.totals["statsd-plain"], expected.statsd_totals(self.lines, "plain"))

    @classmethod
    def want_behind(cls):
        counters = [line for line in cls.lines if line["kind"] != "gauge"]
        return {carbon_series_of_statsd(key): value for key, value in expected.statsd_totals(counters, "graphite").items()}

    def test_carbon_behind_statsd_has_the_same_totals(self):
        have = {key: value for key, value in self.behind.items() if key[0].startswith("stats.counters.") and
                key[0].endswith(".count") and not key[0].startswith("stats.counters.statsd.")}
        self.assert_same(have, self.want_behind(), 100)  # counters alone; 140 were seen

    def test_statsd_exporter_has_the_same_totals_over_udp_and_a_unix_socket(self):
        for dialect in ("dogstatsd", "influx"):
            totals = expected.statsd_totals(self.lines, dialect)
            self.assert_same(self.totals[f"exporter-{dialect}"], {statsd_exporter_series(key): value for key, value in totals.items()})

    def test_the_collector_has_the_same_totals(self):
        self.assert_same(self.totals["collector-dogstatsd"], expected.statsd_totals(self.lines, "dogstatsd"))

    def test_collectd_has_the_same_totals(self):
        assert_held_to_127_bytes(self, self.totals["collectd"], expected.statsd_totals(self.lines, "plain"))

    def test_carbon_and_victoriametrics_have_the_same_points_at_the_same_times(self):
        want = self.want_points
        self.assertGreaterEqual(len({second for points in want.values() for second in points}), 3)
        for way in self.points:
            self.assert_same(self.points[way], want)

    def histograms(self):
        """(series, count, sum in s or the metric's own unit, largest value that may be in it) of the whole run."""
        found = {}
        for line in self.lines:
            if line["kind"] == "histogram":
                found[json.dumps([line["name"], line["attributes"]])] = line
        return [line for line in found.values() if line["total"]["count"] and not line["total"]["counts"][-1]]

    def assert_values(self, totals, count_of, sum_of, per_second, suffix):
        naming = expected.Naming("dogstatsd", suffix)
        for line in self.histograms():
            key = naming.series(line)
            self.assertEqual(totals[count_of(key)], line["total"]["count"], key)
            exact = float(line["total"]["sum"]) * (per_second if line["unit"] == "s" else 1)
            self.assertLessEqual(abs(totals[sum_of(key)] - exact), exact * 0.33334, key)

    def test_distributions_have_the_same_counts_and_sums_that_are_off_by_a_third_at_most(self):
        def member(added):
            return lambda key: (lambda name, tags: (name + added, tags))(*statsd_exporter_series(key))
        self.assertGreater(len(self.histograms()), 5)
        self.assert_values(self.totals["exporter-distribution"], member("_count"), member("_sum"), 10**6, "_us")

    def test_timers_have_the_same_counts_and_sums_that_are_off_by_a_third_at_most(self):
        def member(added):
            return lambda key: (key[0] + added, key[1])
        self.assert_values(self.totals["collector-timer"], member(":count"), member(":sum"), 10**3, "")

    def test_once_counted_the_same_workload(self):
        """Numbers that hold no time of the observer, as in test_agent.py."""
        mine = [line for line in self.once if line["kind"] == "sum" and line["unit"] != "s" and
                os.path.basename(self.cgroup) in str(line["attributes"].get("process.linux.cgroup", ""))]
        self.assertGreater(len(mine), 40)
        for way, dialect in (("statsd-graphite", "graphite"), ("statsd-plain", "plain"), ("collector-dogstatsd", "dogstatsd")):
            want = expected.statsd_totals(mine, dialect)
            self.assertEqual({key: self.totals[way].get(key) for key in want}, want, way)
        for way, dialect in (("carbon-dotted", "dotted"), ("victoria-tagged", "tagged")):
            want = {expected.Naming(dialect).sum_series(line): float(line["total"]) for line in mine if line["total"]}
            self.assertEqual({key: sum(self.points[way].get(key, {}).values()) for key in want}, want, way)


if __name__ == "__main__":
    if missing := lacking():
        print(f"skipped: {missing}")
        sys.exit(77)
    unittest.main()
