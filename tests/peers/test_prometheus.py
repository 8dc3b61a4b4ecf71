#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/prometheus.md, fragment by fragment and query by query, with Prometheus and VictoriaMetrics themselves.

Both are started and pushed to as the page says, by one agent whose json exporter says what must arrive. All samples are
compared value by value. The queries of the page are then compared with what its formulas make of the same lines.
"""

import os
import re
import select
import socket
import socketserver
import sys
import tempfile
import threading
import time
import unittest
from contextlib import ExitStack

from agent import Agent, Follower, HOST, Unavailable as NoAgent, cgroup2_mount, config_of, require_agent
from expected import explicit, read_lines
from promql import Prometheus, VictoriaMetricsOtlp, blocks, page, quantile_bucket, refuses_otlp, without_resets
from receiver import Unavailable, each
from samples import Lines, assert_same, owner
from workload import SYSTEM_CALLS
from works import Works

os.environ["OTEL_LOG_LEVEL"] = "warn"  # of the agent: its log holds nothing else
RANGE_MS = 60_000  # of the page's queries
ROUNDS = 3
REFUSALS = "(?i)out.of.order|duplicate|too.old"
RUN_QUEUE = "bpfpush.scheduler.run_queue.duration"


def as_explicit(number):
    """Of the time in the run queue."""
    (*bounds, _), counts = explicit(RUN_QUEUE, "s", number)
    return {**number, "bounds": bounds, "counts": counts}


def assert_stored(test, lines, prometheus):
    """It has the last number of each series, histograms as native ones."""
    have, want = lines.stored(prometheus, lines.end_ms), {}
    for (name, labels), number in lines.last().items():
        if isinstance(number, dict):
            native = have.get((name, labels)) or {}
            want[name, labels] = number["count"], float(number["sum"]), [count for count in number["counts"] if count]
            have[name, labels] = (int(native.get("count", -1)), float(native.get("sum", -1)),
                                  [int(bucket[3]) for bucket in native.get("buckets", [])])
        else:
            want[name, labels] = float(number)
    assert_same(test, have, want)


class TestPage(Works, unittest.TestCase):
    """One run of everything, looked at from several sides."""

    @classmethod
    def setUpClass(cls):
        cls.top = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-peers."))
        cls.busy, cls.brief = cls.make_cgroup("prometheus-busy"), cls.make_cgroup("prometheus-brief")
        cls.prometheus = cls.enterClassContext(Prometheus())
        cls.victoria = cls.enterClassContext(VictoriaMetricsOtlp())
        cls.plain = cls.enterClassContext(VictoriaMetricsOtlp(flags=[]))
        cls.path = os.path.join(cls.top, "lines.json")
        exporters = {
            # It refuses a request that goes back in time: with several requests a push, it sees the order of the points.
            "prometheus": cls.prometheus.exporter_keys(max_request_size="8KiB"),
            "victoriametrics": cls.victoria.exporter_keys(owner_attribute="owner"),
            "delta-prometheus": cls.prometheus.exporter_keys(temporality="delta"),
            "delta-victoria": cls.plain.exporter_keys(temporality="delta"),
        }
        cls.follower = Follower(cls.path)
        with Agent(config_of("1s", cls.path, exporters)) as agent:
            for _ in range(3):
                cls.work_anew(cls.brief)
            os.rmdir(cgroup2_mount() + cls.brief)
            cls.gap_ms = Follower(cls.path).wait_end(cls.brief) // 10**6
            os.mkdir(cgroup2_mount() + cls.brief)
            cls.wait_collection()
            for _ in range(2):
                cls.work_anew(cls.brief)
            for _ in range(ROUNDS):
                cls.work(cls.busy)
                cls.wait_collection()
            cls.status = agent.stop()
            cls.log = agent.log_text()
        cls.lines = Lines(cls.path)
        each([cls.victoria, cls.plain], lambda receiver: receiver.settle())

    # What arrives.

    def test_every_number_is_in_prometheus_under_its_name(self):
        assert_stored(self, self.lines, self.prometheus)

    def test_every_number_is_in_victoriametrics_under_its_name(self):
        have = self.lines.stored(self.victoria, self.lines.end_ms, {"le"})
        want = {}
        for (name, labels), number in self.lines.last().items():
            if not isinstance(number, dict):
                want[name, labels] = float(number)
                continue
            want[name + "_count", labels], want[name + "_sum", labels] = float(number["count"]), float(number["sum"])
            want[name + "_bucket", tuple(sorted([*labels, ("le", "+Inf")]))] = float(number["count"])
        assert_same(self, have, want)

    def test_the_names_in_its_table_are_those_that_arrive(self):
        rows = re.findall(r"^\| `([\w.]+)`.* \| `(\w+)` \|$", page(), re.MULTILINE)
        self.assertEqual(len(rows), 5)
        for receiver in (self.prometheus, self.victoria):
            names = {re.sub(r"_(bucket|count|sum)$", "", name) if "duration" in name else name for name in receiver.names()}
            self.assertLessEqual({prometheus for _, prometheus in rows}, names, receiver.name)

    def test_the_machine_is_in_the_labels_that_it_names(self):
        (labels, _), *_ = self.prometheus.query("system_network_connection_count", self.lines.end_ms)
        self.assertEqual((labels["job"], labels["host_name"]), ("bpfpush", HOST))
        (target, _), = self.prometheus.query("target_info", self.lines.end_ms)
        self.assertEqual((target["job"], target["instance"], target["os_type"]), ("bpfpush", labels["instance"], "linux"))
        (labels, _), *_ = self.victoria.query("system_network_connection_count", self.lines.end_ms)
        self.assertEqual((labels["service_name"], labels["service_instance_id"], labels["host_name"], labels["os_type"]),
                         ("bpfpush", target["instance"], HOST, "linux"))

    def test_without_its_flags(self):
        with Prometheus(flags=["--config.file=prometheus.yml"]) as closed:
            self.assertEqual(refuses_otlp(closed, "/api/v1/otlp/v1/metrics"), 404)
        self.assertEqual([name for name in self.plain.names() if "_total" in name], [])
        self.assertIn("bpfpush.bpf.map.entry.count", self.plain.names())

    def test_delta_is_refused_or_dropped(self):
        self.assertIn("invalid temporality and type combination", self.prometheus.log_text())
        gauges = {name for (name, _), kind in self.lines.kinds.items() if kind == "gauge"}
        self.assertEqual(self.plain.names() - gauges, set())

    def brief_calls(self, ending=""):
        return f'bpfpush_syscalls_total{{bpfpush_syscall_name="getppid",process_linux_cgroup="{self.brief}"}}{ending}'

    def test_a_unit_that_runs_five_times_for_a_moment_has_its_whole_increase(self):
        """Between the third time and the fourth, its series ended and began again."""
        truth = 5 * SYSTEM_CALLS
        samples = [number for _, number in dict((attributes["bpfpush.syscall.name"], samples)
                   for attributes, samples in self.lines.of("bpfpush.syscalls") if owner(attributes) == self.brief)["getppid"]]
        self.assertEqual((samples.count(0), max(samples)), (2, 3 * SYSTEM_CALLS))
        (_, value), = self.victoria.query(f"increase({self.brief_calls('[1h]')})", self.lines.end_ms)
        self.assertEqual(value, truth)
        # Prometheus extrapolates to the end of the range, at most by half the time between two samples.
        (_, value), = self.prometheus.query(f"increase({self.brief_calls('[1h]')})", self.lines.end_ms)
        self.assertGreaterEqual(value, truth)
        self.assertLess(value, 1.2 * truth)
        for receiver in (self.victoria, self.prometheus):
            self.assertEqual([value for _, value in receiver.query(f"resets({self.brief_calls('[1h]')})", self.lines.end_ms)], [1])

    def test_its_histograms_have_their_whole_increase_too(self):
        samples, = [samples for attributes, samples in self.lines.of(RUN_QUEUE) if owner(attributes) == self.brief]
        *_, (_, truth) = without_resets([(ms, number["count"]) for ms, number in samples])
        selector = f'{{process_linux_cgroup="{self.brief}"}}[1h]'
        (_, value), = self.victoria.query(f"increase(bpfpush_scheduler_run_queue_duration_seconds_count{selector})", self.lines.end_ms)
        self.assertEqual(value, truth)
        (_, value), = self.prometheus.query(f"histogram_count(increase(bpfpush_scheduler_run_queue_duration_seconds{selector}))", self.lines.end_ms)
        self.assertTrue(0.999 * truth < value < 1.2 * truth, (truth, value))

    def test_a_series_that_has_ended_is_not_shown_any_more(self):
        everything = f'{{process_linux_cgroup="{self.brief}"}}'
        for receiver in (self.victoria, self.prometheus):
            self.assertEqual(receiver.query(everything, self.gap_ms), [], receiver.name)
            names = {labels["__name__"] for labels, _ in receiver.query(everything, self.gap_ms - 1)}
            self.assertTrue({name for name in names if "run_queue_duration" in name}, names)
            self.assertIn("bpfpush_syscalls_total", names)

    def test_every_point_was_taken(self):
        self.assertNotRegex(self.prometheus.log_text(), REFUSALS)
        pushed = [line for line in read_lines(self.path) if line["name"] == "otel.sdk.exporter.metric_data_point.exported" and
                  line["attributes"]["otel.component.name"] in ("prometheus", "victoriametrics") and line["total"]]
        self.assertEqual({line["attributes"].get("error.type") for line in pushed}, {None})

    # The queries.

    def rates(self, receiver, metric, by):
        """{group: rate}; by() makes a group of attributes, None for none."""
        groups = {}
        for attributes, samples in self.lines.of(metric):
            group = by(attributes)
            if group is not None:
                rate = receiver.rate([(ms, float(number)) for ms, number in samples], self.lines.end_ms, RANGE_MS)
                groups[group] = groups.get(group, 0) + rate
        return groups

    def gauges(self, metric, by):
        groups = {}
        for attributes, samples in self.lines.of(metric):
            if samples[-1][0] == self.lines.end_ms:
                groups[by(attributes)] = groups.get(by(attributes), 0) + float(samples[-1][1])
        return groups

    def assert_query(self, receiver, beginning, names, want, top=None):
        """That the page's query that begins so gives these groups, which have those labels."""
        text, = [block for block in blocks("promql") if re.sub(r"\s+", "", block).startswith(re.sub(r"\s+", "", beginning))]
        have = {tuple(labels.get(name, "") for name in names): value for labels, value in receiver.query(text, self.lines.end_ms) if value}
        want = {group: value for group, value in want.items() if value}
        self.assertGreater(len(want), 0, text)
        if top:
            self.assertEqual(len(have), min(top, len(want)), text)
            self.assertAlmostEqual(sum(have.values()), sum(sorted(want.values())[-top:]), delta=1e-6 * sum(want.values()))
        else:
            self.assertEqual(have.keys(), want.keys(), text)
        for group, value in have.items():
            self.assertAlmostEqual(value, want[group], delta=1e-6 * want[group] + 1e-9, msg=f"{receiver.name}: {group}: {text}")

    def assert_queries(self, receiver):
        def owners(attributes):
            return (owner(attributes),)
        self.assert_query(receiver, "sum by (owner) (label_join(rate(bpfpush_syscalls_total", ["owner"],
                          self.rates(receiver, "bpfpush.syscalls", owners))
        self.assert_query(receiver, "topk(10, sum by (bpfpush_syscall_name, error_type)", ["bpfpush_syscall_name", "error_type"],
                          self.rates(receiver, "bpfpush.syscalls",
                                     lambda at: (at.get("bpfpush.syscall.name", ""), at["error.type"]) if "error.type" in at else None), top=10)
        self.assert_query(receiver, "sum by (owner) (label_join(rate(bpfpush_scheduler_cpu_time", ["owner"],
                          self.rates(receiver, "bpfpush.scheduler.cpu.time", owners))
        self.assert_query(receiver, "sum by (network_io_direction)", ["network_io_direction"],
                          self.rates(receiver, "process.network.io", lambda at: (at.get("network.io.direction", ""),)))
        self.assert_query(receiver, "sum by (owner, disk_io_direction)", ["owner", "disk_io_direction"],
                          self.rates(receiver, "process.disk.io", lambda at: (owner(at), at.get("disk.io.direction", ""))))
        self.assert_query(receiver, "sum by (network_connection_state)", ["network_connection_state"],
                          self.gauges("system.network.connection.count", lambda at: (at.get("network.connection.state", ""),)))

    def test_the_queries_in_prometheus(self):
        self.assert_queries(self.prometheus)
        (version, _), *_ = [(labels["os_version"], value) for labels, value in self.prometheus.query("target_info", self.lines.end_ms)]
        self.assert_query(self.prometheus, "sum by (os_version)", ["os_version"],
                          self.rates(self.prometheus, "process.context_switches", lambda at: (version,)))

    def test_the_queries_in_victoriametrics(self):
        self.assert_queries(self.victoria)

    def test_with_an_owner_attribute_no_labels_need_be_joined(self):
        query = "sum by (owner) (rate(process_context_switches_total[1m]))"
        have = {labels.get("owner", ""): value for labels, value in self.victoria.query(query, self.lines.end_ms) if value}
        want = {name: value for name, value in self.rates(self.victoria, "process.context_switches", owner).items() if value}
        self.assertGreater(len(want), 1)
        self.assertEqual(have.keys(), want.keys())
        for name, value in have.items():
            self.assertAlmostEqual(value, want[name], delta=1e-6 * want[name])

    def assert_quantile(self, receiver, beginning, rate_of_bucket, shown=dict):
        text, = [block for block in blocks("promql") if block.startswith("histogram_quantile") and beginning in block]
        (labels, value), = receiver.query(text, self.lines.end_ms)
        self.assertEqual(labels, {"host_name": HOST})
        series = [[(ms, shown(number)) for ms, number in samples] for _, samples in self.lines.of(RUN_QUEUE)]
        bounds = [*map(float, series[0][0][1]["bounds"]), float("inf")]
        rates = [(upper, sum(rate_of_bucket(samples, index) for samples in series)) for index, upper in enumerate(bounds)]
        lower, upper = quantile_bucket(0.99, rates)
        self.assertTrue(lower <= value <= upper, f"{lower} <= {value} <= {upper}")

    def test_the_quantile_of_native_histograms(self):
        def rate(samples, index):  # all buckets of a native histogram are extrapolated as its count is
            samples = [(ms, number) for ms, number in samples if ms > self.lines.end_ms - RANGE_MS]
            if len(samples) < 2:  # it had ended before
                return 0
            counts = [(ms, number["count"]) for ms, number in samples]
            grown = counts[-1][1] - counts[0][1]
            factor = self.prometheus.rate(counts, self.lines.end_ms, RANGE_MS) / grown if grown else 0
            return factor * (samples[-1][1]["counts"][index] - samples[0][1]["counts"][index])
        self.assert_quantile(self.prometheus, "duration_seconds[1m]", rate)

    def test_the_quantile_of_explicit_histograms(self):
        self.assert_quantile(self.victoria, "_bucket[1m]", lambda samples, index: self.victoria.rate(
            self.lines.buckets(samples, index), self.lines.end_ms, RANGE_MS), as_explicit)

    def test_there_are_eight(self):
        self.assertEqual(len(blocks("promql")), 8 + 1)  # the quantile in two forms

    def test_the_agent_reports_that_delta_was_refused_and_nothing_else(self):
        self.assertEqual(self.status, 0, self.log)
        complaints = re.findall(r"(?m)^exporter ([\w-]+): .*", self.log)
        self.assertEqual(set(complaints), {"delta-prometheus"}, self.log)


class Way(socketserver.ThreadingTCPServer):
    """To a receiver: closed at first, and slow once it is open."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, receiver):
        self.receiver, self.is_open = receiver, False
        super().__init__(("127.0.0.1", 0), None)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)

    def finish_request(self, request, client_address):
        if not self.is_open:
            return
        with socket.create_connection((self.receiver.host, self.receiver.port)) as onward:
            others = {request: onward, onward: request}
            while True:
                for ready in select.select(list(others), [], [])[0]:
                    data = ready.recv(2048)
                    if not data:
                        return
                    time.sleep(0.02)
                    others[ready].sendall(data)


class TestStop(unittest.TestCase):
    """After an outage, on a slow way: only the newest totals wait, or each window does."""

    def test_the_last_totals_arrive_and_none_is_refused(self):
        with ExitStack() as stack:
            path = os.path.join(stack.enter_context(tempfile.TemporaryDirectory(prefix="bpfpush-peers.")), "lines.json")
            ways = {f"backlog-{backlog}": stack.enter_context(Way(stack.enter_context(Prometheus()))) for backlog in ("0", "100s")}
            exporters = {name: way.receiver.exporter_keys(max_request_size="8KiB", backlog=name.rpartition("-")[2],
                                                          endpoint=f"http://127.0.0.1:{way.server_address[1]}/api/v1/otlp")
                         for name, way in ways.items()}
            with Agent(config_of("1s\nshutdown_timeout = 5m", path, exporters)) as agent:
                Follower(path).wait_collections(40)
                for way in ways.values():
                    way.is_open = True
                self.assertEqual(agent.stop(), 0)
                log = agent.log_text()
            lines = Lines(path)
            for name, way in ways.items():
                with self.subTest(name):
                    self.assertIn(f"exporter {name}", log)
                    self.assertNotRegex(way.receiver.log_text(), REFUSALS)
                    assert_stored(self, lines, way.receiver)


def lacking():
    try:
        require_agent()
        with ExitStack() as stack:
            for make in (Prometheus, VictoriaMetricsOtlp):
                stack.callback(make().__exit__)
    except (NoAgent, Unavailable) as missing:
        return missing
    return None


if __name__ == "__main__":
    os.environ.pop("NOTIFY_SOCKET", None)
    missing = lacking()
    if missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    unittest.main(verbosity=2)
