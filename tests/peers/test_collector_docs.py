#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/collector.md: its files in real Collectors, between one agent and Debian's Prometheus, a newer one, and Carbon.

The json exporter of the agent says what must arrive; what has arrived is compared value by value. Of Kubernetes, only the
API server is a fake.
"""

import os
import re
import sys
import tempfile
import time
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import expected
import patience
from agent import Agent, Follower, HOST, Unavailable as NoAgent, cgroup2_mount, config_of, require_agent
from carbon import Carbon
from collector import Collector, Unavailable as NoCollector, collector_path, free_ports
from kubernetes import Kubernetes, pod
from patience import PATIENCE_S
from promql import DebianPrometheus, Prometheus, blocks, refuses_otlp
from receiver import Unavailable
from rig import by_second
from samples import Lines, assert_same, owner
from workload import SYSTEM_CALLS
from works import Works

os.environ["OTEL_LOG_LEVEL"] = "warn"  # of the agent: its log holds nothing else
PAGE = "collector.md"
INTERVAL_S = 1
OUTAGE_S = 6  # a second more than a request may take by default
CALLS = "bpfpush_syscalls_total"
IDS = "5f3c" * 16, "a01b" * 16
POD = {"k8s_namespace_name": "shop", "k8s_pod_name": "web-7d4b9c-x2x5k", "k8s_container_name": "nginx"}
# What is not in the page. All Collectors would serve their own metrics at the same port.
QUIET = "service: {telemetry: {metrics: {level: none}}}\n"
UNEXPIRED = {"scrape.yaml": {"metric_expiration: 30s": "metric_expiration: 1h"}}  # however slow this machine is
API = "processors: {k8s_attributes: {auth_type: kubeConfig}}\n"
ALL = "service: {pipelines: {metrics: {exporters: [prometheus_remote_write, otlp_http/prometheus, prometheus]}}}\n"
# Prometheus starts again, or has given up a scrape that took a second.
HARMLESS = re.compile('"status_code": 503|error encoding and sending metric family')


def fragment(name, having=""):
    """The block of the page that begins with "# NAME" and has that text."""
    text, = [block for block in blocks("yaml", PAGE) if block.startswith(f"# {name}\n") and having in block]
    return text


def replaced(text, changes):
    for old, new in changes.items():
        if text.count(old) != 1:
            raise RuntimeError(f"docs/{PAGE} has not one {old!r}:\n{text}")
        text = text.replace(old, new)
    return text


def section(name):
    """The keys of [exporter NAME], which are the same in all blocks of the page that have it."""
    found = {tuple(re.findall(r"^(\S+) = (.*)$", text, re.MULTILINE))
             for block in blocks("ini", PAGE) for text in re.findall(rf"^\[exporter {name}\]\n((?:.+\n)*)", block, re.MULTILINE)}
    keys, = found
    return dict(keys)


class Piped(Collector):
    """With receive.yaml and these files of the page; addresses: {file: {one in it: what it is here}}."""

    def __init__(self, addresses, more="", environment=None):
        super().__init__()
        self.addresses, self.more, self.environment = addresses, more, environment or {}
        self.web_port = None

    def config_texts(self):
        self.otlp_ports, (self.web_port,) = free_ports(1), free_ports(1)
        here = {"receive.yaml": {"localhost:4318": f"127.0.0.1:{self.otlp_ports[0]}"}, **self.addresses}
        texts = [replaced(fragment(name), changes) for name, changes in here.items()]
        return [*(text.replace("localhost:8889", f"127.0.0.1:{self.web_port}") for text in texts), QUIET, *filter(None, [self.more])]

    def exporter_keys(self):
        keys = section("collector")
        return {**keys, "endpoint": replaced(keys["endpoint"], {"localhost:4318": f"127.0.0.1:{self.otlp_ports[0]}"})}


def remote_write(prometheus):
    return {"remote-write.yaml": {"localhost:9090": prometheus.endpoint}}


def otlp(prometheus):
    return {"otlp.yaml": {"localhost:9090": prometheus.endpoint}}


def debian_flags():
    text, = [block for block in blocks("sh", PAGE) if block.startswith("ARGS=")]
    return ["--config.file=prometheus.yml", *re.fullmatch(r'ARGS="(.*)"\n', text)[1].split()]


def in_floats(series):
    """With le as a number, and labels in one order."""
    return {(name, tuple(sorted((key, float(text) if key == "le" else text) for key, text in labels))): value
            for (name, labels), value in series.items()}


class TestPage(Works, unittest.TestCase):
    """One run of everything, looked at from several sides."""

    @classmethod
    def setUpClass(cls):
        cls.top = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-peers."))
        cls.busy, cls.brief = cls.make_cgroup("collector-busy"), cls.make_cgroup("collector-brief")
        cls.containers = [cls.make_cgroup(f"collector-{text[:4]}", f"/cri-containerd-{text}.scope") for text in IDS]
        cls.start_receivers()
        cls.start_collectors()
        cls.path = os.path.join(cls.top, "lines.json")
        graphite = {**section("graphite"), "endpoint": replaced(section("graphite")["endpoint"], {"localhost:2003": cls.carbon.endpoint})}
        exporters = {name: collector.exporter_keys() for name, collector in cls.collectors.items()}
        cls.follower = Follower(cls.path)
        # Of this test's cgroups alone: what has to be stored does not depend on how many units this machine has.
        units = f"[agent]\ninclude_units = {' '.join([cls.busy, cls.brief, *IDS])}\n"
        config = config_of(f"{INTERVAL_S}s", cls.path, {**exporters, "graphite": graphite}).replace("[agent]\n", units)
        with Agent(config) as agent:
            cls.run_work()
            cls.status = agent.stop()
            cls.log = agent.log_text()
        cls.lines = Lines(cls.path)
        cls.shown, cls.shown_pods = cls.scrape("scraped"), cls.scrape("pods")
        cls.wait_scrape()
        cls.wait_delivery()
        cls.end_collectors()

    @classmethod
    def start_all(cls, contexts):
        with ThreadPoolExecutor(len(contexts)) as pool:
            return list(pool.map(cls.enterClassContext, contexts))

    @classmethod
    def start_receivers(cls):
        promoting = fragment("prometheus.yml", "promote_resource_attributes")
        cls.remote, cls.named, cls.newer, cls.promoting, cls.carbon = cls.start_all([
            DebianPrometheus(debian_flags(), ""), DebianPrometheus(debian_flags(), ""),
            Prometheus(), Prometheus(config=promoting), Carbon()])
        cls.kubernetes = cls.enterClassContext(Kubernetes([pod("shop", POD["k8s_pod_name"], {"nginx": IDS[0]})]))

    @classmethod
    def start_collectors(cls):
        kubeconfig = os.path.join(cls.top, "kubeconfig")
        with open(kubeconfig, "w", encoding="utf-8") as file:
            file.write(cls.kubernetes.kubeconfig)
        cls.collectors = {
            "remote": Piped(remote_write(cls.remote)),
            "scraped": Piped(UNEXPIRED),
            "newer": Piped(otlp(cls.newer)),
            "pods": Piped({**remote_write(cls.named), **otlp(cls.promoting), **UNEXPIRED, "pods.yaml": {}}, API + ALL,
                          {"KUBECONFIG": kubeconfig}),
        }
        cls.start_all(cls.collectors.values())
        config = replaced(fragment("prometheus.yml", "scrape_configs"), {
            "scrape_interval: 10s": "scrape_interval: 1s", "localhost:8889": f"127.0.0.1:{cls.collectors['scraped'].web_port}"})
        cls.scraping = cls.enterClassContext(DebianPrometheus(["--config.file=prometheus.yml"], config))

    @classmethod
    def run_work(cls):
        cls.work_anew(cls.brief)
        os.rmdir(cgroup2_mount() + cls.brief)
        cls.gap_ms = Follower(cls.path).wait_end(cls.brief) // 10**6
        os.mkdir(cgroup2_mount() + cls.brief)
        cls.remote.stop()
        for cgroup in (cls.busy, *cls.containers):
            cls.work(cgroup)
        cls.follower.wait_collections(OUTAGE_S // INTERVAL_S + 2)
        cls.remote.start()

    @classmethod
    def scrape(cls, name):
        """What that Collector shows: {series: number}."""
        with urllib.request.urlopen(f"http://127.0.0.1:{cls.collectors[name].web_port}/metrics", timeout=PATIENCE_S) as answer:
            lines = [line.rpartition(" ") for line in answer.read().decode().splitlines() if not line.startswith("#")]
        return {series: float(number) for series, _, number in lines}

    @classmethod
    def wait_scrape(cls):
        """Until Prometheus has scraped what the Collector shows now; cls.scraped_ms: when it did."""
        began_ms = time.time() * 1000

        def scraped_ms():
            scrapes = [scrape for samples in cls.scraping.samples("up[1h]", time.time() * 1000).values() for scrape in samples]
            return max((ms for ms, is_up in scrapes if ms > began_ms and is_up), default=None)
        cls.scraped_ms = patience.wait(scraped_ms, "Prometheus scrapes", 0.1)

    @classmethod
    def wait_delivery(cls):
        """Until the one that was away has what was pushed last. A Collector that ends gives up what it would try again."""
        def newest_ms():
            return [round(value * 1000) for _, value in cls.remote.query("timestamp(bpfpush_series_count)", cls.lines.end_ms)]
        patience.wait(lambda: newest_ms() == [cls.lines.end_ms], "the last push", 0.1)

    @classmethod
    def end_collectors(cls):
        """What they have in their queues is sent before."""
        for collector in cls.collectors.values():
            collector.stop()
        cls.logs = {name: collector.log_text() for name, collector in cls.collectors.items()}

    # Of all kinds of Prometheus.

    def assert_stored(self, prometheus, want=None, scraped_ms=None):
        have = in_floats(self.lines.stored(prometheus, scraped_ms or self.lines.end_ms, {"le", *POD}))
        want = in_floats(want or self.lines.last_explicit())
        assert_same(self, have, want)
        more = [] if scraped_ms else sorted(have.keys() - want.keys())
        self.assertEqual(more[:5], [], f"{len(more)} series more")

    def labels(self, prometheus, selector, time_ms=None):
        return [labels for labels, _ in prometheus.query(selector, time_ms or self.lines.end_ms)]

    def assert_in_time(self, prometheus, cgroup):
        """That each sample of one call has its own time, from a first one of 0 on."""
        pushed, = [samples for attributes, samples in self.lines.of("bpfpush.syscalls")
                   if owner(attributes) == cgroup and attributes["bpfpush.syscall.name"] == "getppid"]
        selector = f'{CALLS}{{bpfpush_syscall_name="getppid",process_linux_cgroup="{cgroup}"}}[1h]'
        stored, = prometheus.samples(selector, self.lines.end_ms).values()
        self.assertEqual(stored, [(ms, float(number)) for ms, number in pushed])
        values = [value for _, value in stored]
        self.assertEqual((values[0], values.count(0), values[-1]), (0, 1, SYSTEM_CALLS))

    def assert_ended(self, prometheus):
        """That the series of the unit that ran for a moment end when it does."""
        selector = f'{{process_linux_cgroup="{self.brief}"}}'
        self.assertEqual(prometheus.query(selector, self.gap_ms), [])
        self.assertGreater(len(prometheus.query(selector, self.gap_ms - 1)), 10)

    def assert_host(self, prometheus, selector, time_ms=None):
        labels, *_ = self.labels(prometheus, selector, time_ms)
        self.assertEqual((labels["job"], labels["host_name"], labels["os_type"]), ("bpfpush", HOST, "linux"))
        self.assertEqual([name for name in labels if re.match("service_(name|instance)|otel_scope|exported", name)], [])
        target, = self.labels(prometheus, "target_info", time_ms)
        self.assertEqual({target[name] == labels[name] for name in ("job", "instance", "host_name", "os_version")}, {True})

    def test_debians_prometheus_has_every_number_by_remote_write(self):
        self.assert_stored(self.remote)
        self.assert_in_time(self.remote, self.brief)
        self.assert_in_time(self.remote, self.busy)  # while it was away
        self.assert_ended(self.remote)
        self.assert_host(self.remote, CALLS)

    def test_debians_prometheus_does_not_receive_otlp(self):
        with DebianPrometheus(["--config.file=prometheus.yml"], "") as plain:
            self.assertEqual([refuses_otlp(plain, path) for path in ("/api/v1/otlp/v1/metrics", "/api/v1/write")], [404, 404])

    def test_debians_prometheus_has_every_number_that_it_scrapes(self):
        self.assert_stored(self.scraping, scraped_ms=self.scraped_ms)
        self.assert_host(self.scraping, CALLS, self.scraped_ms)
        own = {name for name in self.scraping.names() if re.match("bpfpush|process|system|otel", name)}
        self.assertEqual(own, {name for name in self.remote.names() if name != "target_info"})

    def test_what_a_collector_shows_has_neither_zeros_of_the_past_nor_ends(self):
        """One value for each series, and of those that have ended in one push all but one of a metric."""
        ended = {series: number for series, number in self.shown.items() if series.startswith(CALLS) and f'"{self.brief}"' in series}
        n_ended = sum(owner(attributes) == self.brief for attributes, _ in self.lines.of("bpfpush.syscalls"))
        self.assertGreater(n_ended, 10)
        self.assertIn(len(ended), (n_ended - 1, n_ended))
        self.assertEqual({number for series, number in ended.items() if '"getppid"' in series} - {SYSTEM_CALLS}, set())

    def test_a_newer_prometheus_has_every_number_by_otlp(self):
        self.assert_stored(self.newer)
        self.assert_in_time(self.newer, self.brief)
        self.assert_ended(self.newer)

    def test_both_answer_the_queries_of_the_other_page_alike(self):
        n_answered = 0
        for text in blocks("promql", "prometheus.md"):
            have, want = ({tuple(sorted(labels.items())): value for labels, value in prometheus.query(text, self.lines.end_ms)}
                          for prometheus in (self.remote, self.newer))
            self.assertEqual(have.keys(), want.keys(), text)
            for labels, value in have.items():
                self.assertAlmostEqual(value, want[labels], delta=1e-9 * abs(value), msg=text)
            n_answered += bool(have)
        self.assertGreaterEqual(n_answered, 6)

    # With names of pods.

    def with_pods(self):
        return {(name, tuple(sorted([*labels, *POD.items()])) if ("container_id", IDS[0]) in labels else labels): value
                for (name, labels), value in self.lines.last_explicit().items()}

    def test_numbers_of_containers_have_the_names_of_their_pods(self):
        want = self.with_pods()
        owners = {text: sum(("container_id", text) in labels for _, labels in want) for text in IDS}
        self.assertGreater(min(owners.values()), 50, owners)
        for prometheus in (self.named, self.promoting):
            self.assert_stored(prometheus, want)
            labels, *_ = self.labels(prometheus, CALLS)
            self.assertEqual(labels["host_name"], HOST)

    def test_what_a_collector_shows_has_the_names_of_pods(self):
        want = [labels for _, labels in self.with_pods()]
        for text, n_names in zip(IDS, (len(POD), 0)):
            shown = [series for series in self.shown_pods if f'container_id="{text}"' in series and "target_info" not in series]
            self.assertEqual(len(shown), sum(("container_id", text) in labels for labels in want))
            self.assertEqual({sum(f'{name}="{value}"' in series for name, value in POD.items()) for series in shown}, {n_names})

    def test_the_command_names_the_files(self):
        command, = [block for block in blocks("sh", PAGE) if block.startswith("otelcol-contrib ")]
        self.assertEqual(re.findall(r"--config=(\S+)", command), ["receive.yaml", *self.collectors["remote"].addresses])

    def test_the_query_by_pod(self):
        text, = blocks("promql", PAGE)
        selector = f'{CALLS}{{container_id="{IDS[0]}"}}'
        for prometheus in (self.named, self.promoting):
            (labels, value), = prometheus.query(text, self.lines.end_ms)
            (_, want), = prometheus.query(f"sum(rate({selector}[1m]))", self.lines.end_ms)
            self.assertEqual((labels, value), ({name: POD[name] for name in ("k8s_namespace_name", "k8s_pod_name")}, want))
            self.assertGreater(value, 0)

    def test_target_info_cannot_be_joined_then(self):
        join = f"{CALLS} * on (job, instance) group_left (os_version) target_info"
        self.assertGreater(len(self.remote.query(join, self.lines.end_ms)), 50)
        for prometheus in (self.named, self.promoting):
            self.assertGreater(len(self.labels(prometheus, "target_info")), 2)
            with self.assertRaisesRegex(ValueError, "many-to-many matching not allowed"):
                prometheus.query(join, self.lines.end_ms)

    def test_only_pods_are_asked_for(self):
        self.assertEqual(self.kubernetes.paths, {"/api/v1/pods"})

    # Graphite, and all.

    def test_carbon_has_every_number_from_bpfpush_itself(self):
        want = expected.graphite_points(expected.read_lines(self.path), "dotted", INTERVAL_S)
        self.assertGreater(len(want), 200)
        self.carbon.settle(lambda totals: len(totals) >= len(want))
        self.assertEqual(by_second(self.carbon.points(), want), want)

    def test_nothing_is_lost_and_nobody_complains(self):
        self.assertEqual(self.status, 0, self.log)
        self.assertNotRegex(self.log, "(?m)^exporter")
        for name, log in self.logs.items():
            complaints = [line for line in log.splitlines() if re.search(r"\t(warn|error)\t", line)]
            self.assertEqual([line for line in complaints if not HARMLESS.search(line)], [], name)


def lacking():
    try:
        require_agent()
        collector_path()
        with ExitStack() as stack:
            for make in (Prometheus, DebianPrometheus, Carbon):
                stack.callback(make().__exit__)
    except (NoAgent, NoCollector, Unavailable) as missing:
        return missing
    return None


if __name__ == "__main__":
    os.environ.pop("NOTIFY_SOCKET", None)
    missing = lacking()
    if missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    unittest.main(verbosity=2)
