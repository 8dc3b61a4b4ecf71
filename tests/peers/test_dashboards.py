#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each query of the dashboards in contrib/grafana, and of the alerting rules, asked of real receivers.

One agent counts work of many kinds, for two Prometheus (explicit and native histograms), VictoriaMetrics and Carbon. A
second one has room for few series. Then each query must have an answer, other than zeros for a graph. What this kernel
cannot count is exempt by name, and printed.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import ExitStack

import yaml

import grafana
from agent import Agent, Follower, Unavailable as NoAgent, cgroup2_mount, config_of, require_agent
from carbon import Carbon
from collector import free_ports
from expected import clean, read_lines
from graphite_web import GraphiteWeb
import patience
from patience import PATIENCE_S
from promql import Prometheus, VictoriaMetricsOtlp
from receiver import Unavailable, installed

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.append(os.path.join(HERE, "..", "bpf"))
from test_memory import limits

WORKLOADS = os.environ.get("BPFPUSH_WORKLOADS") or os.path.join(HERE, "..", "..", "build", "tests", "bpf")
ALERTS = os.path.join(grafana.DIRECTORY, "bpfpush-alerts.yml")
STATISTICS = "/proc/sys/kernel/bpf_stats_enabled"
OWN = f"/bpfpush-dashboards-{os.getpid()}"  # a cgroup, and below it what bpfpush takes for units
ESCAPED = r"home-we\x2dird+(1).service"
UNITS = ("web.service", "batch.service", "limited.service", "bpfpush.service", ESCAPED)
OPTIONAL = ("block", "dns", "drops", "filesystem", "hardirq", "hardware", "pagecache", "process", "softirq", "tcppeer", "throttle")
COLLECTORS = "[collector syscalls]\nduration = all\n[collector fileio]\nduration = yes\n" + "".join(f"[collector {name}]\n" for name in OPTIONAL)
PREFIXED = "servers.{host}.{unit}.{metric}.{attributes}"  # as docs/graphite.md has it
SMALL = "[collector fileio]\nenabled = no\n[collector network]\nenabled = no\n[collector tcpstate]\nenabled = no\n"

# Parts of queries that may be without an answer.
EXEMPT = {
    r"bpfpush.cgroup.cpu": "the collector throttle needs the cpu controller in cgroup2",
    r"bpfpush.cgroup.(memory|tasks)": "the kernel has them only with the memory and the pids controller in cgroup2",
    r"bpfpush.cgroup.pressure": "the kernel measures pressure only with PSI",
    r"bpfpush.memory.(oom|reclaim)": "the kernel counts them only with the memory controller",
    r"bpfpush.filesystem": "the collector filesystem needs fexit or kprobes",
    r"bpfpush.cpu": "the collector hardware needs a PMU, which few virtual machines have",
    r"bpfpush.page_cache.(accesses|misses)": "pagecache counts them only with fexit",
    r"event\.missed\.\*": "Graphite is not sent what has not grown, and few kernels skip events",
}

DNS = """
import socket
for name in ["127.0.0.1", "no.number"] * 20:
    try:
        socket.getaddrinfo(name, None, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20):
    sender.sendto(b"x", ("127.0.0.1", 9))
for _ in range(20):
    with socket.socket() as client:
        client.connect_ex(("127.0.0.1", 9))
"""
# In a cgroup with a cpu.max: until it was throttled five times.
BUSY = 'until [ "$(sed -n "s/nr_throttled //p" "$1/cpu.stat")" -ge 5 ]; do :; done'


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def directory(unit=""):
    return os.path.join(cgroup2_mount() + OWN, unit)


def has_cpu_limit():
    return os.path.exists(f"{directory('limited.service')}/cpu.max")


class Batch:
    """What tests/bpf limits the memory of."""

    directory = directory("batch.service")


class Units:
    """Cgroups that are named as those of systemd's units are."""

    def __enter__(self):
        os.mkdir(directory())
        for parent in (cgroup2_mount(), directory()):
            for controller in {"cpu", "memory", "pids"} & set(read(f"{parent}/cgroup.controllers").split()):
                write(f"{parent}/cgroup.subtree_control", f"+{controller}")
        for unit in UNITS:
            os.mkdir(directory(unit))
        if has_cpu_limit():
            write(f"{directory('limited.service')}/cpu.max", "1000 10000")
        return self

    def __exit__(self, *_):
        for unit in (*UNITS, ""):
            self.remove(directory(unit))

    @staticmethod
    def remove(path):
        def is_removed():
            try:
                os.rmdir(path)
            except OSError:  # a process is still ending
                return False
            return True
        patience.wait(is_removed, f"processes of {path} end")


def workload(name):
    return os.path.join(WORKLOADS, f"workload-{name}")


def inside(unit, *command):
    return [workload("enter"), f"{directory(unit)}/cgroup.procs", *command]


def run(command):
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=True)


def work(top):
    """Everything that a default collector counts, and most of what the others do."""
    web = directory("web.service")
    commands = [
        [sys.executable, os.path.join(HERE, "workload.py"), web, os.path.join(top, "file")],
        inside("web.service", sys.executable, "-c", DNS),
        [workload("tcp"), "loss", f"{web}/cgroup.procs", f"{web}/cgroup.procs"],
        [workload("memory"), web, "major", "100"],
        inside(ESCAPED, "true"),
        inside("limited.service", "sh", "-c", BUSY if has_cpu_limit() else "true", "sh", directory("limited.service")),
    ]
    for command in commands:
        run(command)
    if limits():
        with limits()(Batch) as limited:
            for mode in ("oom", "reclaim"):
                run([workload("memory"), Batch.directory, mode, f"{limited.directory}/cgroup.procs"])


class Statistics:
    """The kernel measures programs meanwhile."""

    def __enter__(self):
        self.before = read(STATISTICS)
        write(STATISTICS, "1")

    def __exit__(self, *_):
        write(STATISTICS, self.before)


def is_exempt(text):
    return next((reason for pattern, reason in EXEMPT.items() if re.search(pattern, text.replace("_", ".").replace("page.cache", "page_cache"))), None)


class TestDashboards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-peers."))
        cls.enterClassContext(Units())
        cls.explicit = cls.enterClassContext(Prometheus())
        cls.native = cls.enterClassContext(Prometheus())
        cls.victoria = cls.enterClassContext(VictoriaMetricsOtlp())
        cls.carbon = cls.enterClassContext(Carbon())
        cls.graphite = cls.enterClassContext(GraphiteWeb(cls.carbon))
        with Statistics(), Agent(cls.small_config()) as small:
            with Agent(cls.config(), prefix=inside("bpfpush.service")) as agent:
                follower = Follower(os.path.join(cls.top, "lines"))
                follower.wait_collections(2)
                work(cls.top)
                follower.wait_collections(3)
                cls.end_s = time.time()
                cls.status = agent.stop(), small.stop()
                cls.log = agent.log_text() + small.log_text()
        cls.victoria.settle()
        cls.carbon.settle()

    @classmethod
    def carbon_keys(cls, **more):
        return {"type": "graphite", "endpoint": cls.carbon.endpoint, **more}

    @classmethod
    def config(cls):
        closed, = free_ports(1)
        exporters = {
            "explicit": cls.explicit.exporter_keys(histogram="explicit"), "native": cls.native.exporter_keys(histogram="exponential"),
            "victoria": cls.victoria.exporter_keys(), "graphite": cls.carbon_keys(),
            "prefixed": cls.carbon_keys(template=PREFIXED),
            "away": {"type": "otlp", "endpoint": f"http://127.0.0.1:{closed}"},
            "lost": {"type": "statsd", "endpoint": f"127.0.0.1:{closed}"},
        }
        return config_of("1s", os.path.join(cls.top, "lines"), exporters, COLLECTORS)

    @classmethod
    def small_config(cls):
        """Of a machine with another name, whose series find no room."""
        text = config_of("1s", os.path.join(cls.top, "small"), {
            "explicit": cls.explicit.exporter_keys(histogram="explicit"), "native": cls.native.exporter_keys(histogram="exponential"),
            "victoria": cls.victoria.exporter_keys(), "graphite": cls.carbon_keys(), "prefixed": cls.carbon_keys(template=PREFIXED)}, SMALL)
        return re.sub("series_limit = .*", "series_limit = 20", text).replace("vm1.example.com", "vm2.example.com")

    # Prometheus.

    def promql(self, server, text, is_range):
        """[(labels, [value...])], with numbers alone."""
        end = {"time": self.end_s} if not is_range else {"start": self.end_s - 30, "end": self.end_s + 1, "step": 1}
        found = server.ask("query_range" if is_range else "query", query=text, **end)
        series = []
        for item in found["data"]["result"]:
            pairs = item.get("values") or item.get("histograms") or [item["value"] if "value" in item else item["histogram"]]
            values = [float(pair[1]["count"] if isinstance(pair[1], dict) else pair[1]) for pair in pairs]
            series.append((item["metric"], [value for value in values if value == value]))
        return [(labels, values) for labels, values in series if values]

    def prometheus_queries(self, unit=".*", host=".*"):
        """[(panel, the text of a query, whether it is a range query)]"""
        values = {"host": grafana.promql_value([host]), "unit": grafana.promql_value([unit]), "top": "10", "__rate_interval": "1h"}
        for panel in grafana.panels_of(grafana.load("bpfpush-prometheus.json")):
            for target in panel["targets"]:
                yield panel, grafana.replaced(target["expr"], values), target["range"]

    def assert_prometheus(self, server, left_out):
        """left_out: a pattern of queries that this server does not answer: those for the other kind of histogram."""
        asked = 0
        for panel, text, is_range in self.prometheus_queries():
            if re.search(left_out, text):
                continue
            asked += 1
            with self.subTest(server=server.name, panel=panel["title"], query=text):
                answer = self.promql(server, text, is_range)
                if is_exempt(text) and not answer:
                    print(f"exempt: {panel['title']}: {is_exempt(text)}")
                    continue
                self.assertTrue(answer)
        self.assertGreater(asked, 70)

    HEAT_NATIVE, HEAT_EXPLICIT = r"^sum \(increase", r"^sum by \(le\) \(increase"
    COUNT_NATIVE, COUNT_EXPLICIT = r"^histogram_count", r"_(seconds|bytes)_count\{"

    def test_every_query_of_the_dashboard_has_series_in_prometheus(self):
        self.assert_prometheus(self.explicit, f"{self.HEAT_NATIVE}|{self.COUNT_NATIVE}")

    def test_and_with_native_histograms(self):
        self.assert_prometheus(self.native, f"{self.HEAT_EXPLICIT}|{self.COUNT_EXPLICIT}")

    def test_and_in_victoriametrics(self):
        self.assert_prometheus(self.victoria, f"{self.HEAT_NATIVE}|{self.COUNT_NATIVE}")

    def table(self, **chosen):
        """{column: {unit: value}} of the dashboard's table."""
        queries = [text for panel, text, _ in self.prometheus_queries(**chosen) if panel["type"] == "table"]
        table, = [panel for panel in grafana.panels_of(grafana.load("bpfpush-prometheus.json")) if panel["type"] == "table"]
        names = table["transformations"][1]["options"]["renameByName"]
        return {names[f"Value #{target['refId']}"]: {labels["owner"]: values[0] for labels, values in self.promql(self.explicit, text, False)}
                for target, text in zip(table["targets"], queries)}

    def test_the_table_has_each_unit_with_what_it_did(self):
        table = self.table()
        self.assertEqual(len(table), 13)
        for column in table:
            with self.subTest(column):
                unit = "web.service"
                self.assertGreater(table[column][unit], 0)
        self.assertLess({unit for unit in UNITS if unit != "web.service"}, set(table["CPU"]))

    def test_a_chosen_unit_and_host_are_all_that_is_shown(self):
        self.assertLessEqual(set(self.table(unit="web.service")["System calls"]), {"web.service", "(no unit)"})
        self.assertIn(ESCAPED, self.table(unit=ESCAPED)["System calls"])
        self.assertEqual(self.table(unit="web+service")["System calls"].keys() - {"(no unit)"}, set())
        self.assertEqual(self.table(host="vm3.example.com")["CPU"], {})

    def test_variables_of_prometheus_list_hosts_and_units(self):
        variables = grafana.variables_of(grafana.load("bpfpush-prometheus.json"))
        metric, name = re.fullmatch(r"label_values\((\w+), (\w+)\)", variables["host"]["query"]).groups()
        self.assertEqual({labels[name] for labels, _ in self.promql(self.explicit, metric, False)}, {"vm1.example.com", "vm2.example.com"})
        text = grafana.replaced(re.fullmatch(r"query_result\((.*)\)", variables["unit"]["query"])[1], {"host": ".*"})
        shown = ["{%s} 1" % ",".join(f'{key}="{value}"' for key, value in labels.items()) for labels, _ in self.promql(self.explicit, text, False)]
        pattern = re.compile(variables["unit"]["regex"].strip("/"))
        self.assertLess(set(UNITS), {pattern.search(line)[1] for line in shown})

    # Graphite.

    def graphite_queries(self, prefix="", top="10"):
        for panel in grafana.panels_of(grafana.load("bpfpush-graphite.json")):
            for target in panel["targets"]:
                yield panel, grafana.replaced(target["target"], {"prefix": prefix, "host": "*", "unit": "*", "top": top})

    def render(self, target):
        return [(name, values) for name, values in self.graphite.render(target) if any(values)]

    def assert_graphite(self, prefix):
        asked = 0
        for panel, target in self.graphite_queries(prefix):
            asked += 1
            with self.subTest(panel=panel["title"], target=target):
                answer = self.render(target)
                if is_exempt(target) and not answer:
                    print(f"exempt: {panel['title']}: {is_exempt(target)}")
                    continue
                if re.search(r"missed_ratio|overflowing", target):  # gauges that are 0 if all is well
                    answer = self.graphite.render(target)
                self.assertTrue(answer)
                for name, _ in answer:
                    self.assertNotRegex(name, r"[(*]", "its legend")
        self.assertGreater(asked, 60)

    def test_every_query_of_the_dashboard_has_series_in_graphite(self):
        self.assert_graphite("")

    def test_and_with_a_prefix_before_the_host(self):
        self.assert_graphite("servers.")

    def graph(self, title):
        """{legend: values} of all lines, not only of the busiest."""
        found = [self.render(target) for panel, target in self.graphite_queries(top="1000") if panel["title"] == title]
        return dict(series for answer in found for series in answer)

    def test_the_legends_of_graphite_say_what_a_line_is(self):
        for title, name in (("CPU", "bpfpush_service"), ("Wait for a CPU", "web_service"), ("Calls by name", "getppid"),
                            ("TCP connections in each state", "listen"), ("Failed TCP connections", "client.ECONNREFUSED"),
                            ("Context switches", "voluntary"), ("DNS: failed lookups", "EAI_NONAME"), ("Points lost", "lost.connection_refused"),
                            ("Waits for a CPU: half, 90 % and 99 %", "mean"), ("Programs attached", "scheduler")):
            with self.subTest(title):
                self.assertIn(name, self.graph(title))

    def test_the_rates_of_graphite_add_up_to_what_was_counted(self):
        """Its slots last a second here, so a rate is a count. The agent with little room may have had some for this unit."""
        lines = [line for name in ("lines", "small") for line in read_lines(os.path.join(self.top, name))]
        counted = sum(line["delta"] for line in lines if line["name"] == "bpfpush.syscalls" and
                      line["attributes"].get("systemd.unit.name") == "web.service")
        self.assertEqual(sum(self.graph("System calls")["web_service"]), counted)

    def test_heat_maps_in_graphite_have_bounds_for_names(self):
        names = self.graph("Waits for a CPU")
        self.assertGreater(len(names), 3)
        for name in names:
            self.assertGreaterEqual(float(name), 0)

    def test_means_in_graphite_divide_what_belongs_together(self):
        target, = [target for panel, target in self.graphite_queries() if panel["title"] == "Wait for a CPU"]
        inner = re.search(r"highestAverage\((divideSeriesLists.*),10\)", target)[1]
        names = [re.fullmatch(r"divideSeries\(([\w-]+),([\w-]+)\)", name).groups() for name, _ in self.graphite.render(inner)]
        self.assertGreater(len(names), 3)
        self.assertEqual([one for one, other in names], [other for one, other in names])

    def test_variables_of_graphite_list_hosts_and_units(self):
        for prefix in ("", "servers."):
            with self.subTest(prefix):
                self.assertIn("vm1_example_com", " ".join(self.listed("host", prefix)))
                self.assertLess({clean(unit, owner="systemd.unit.name") for unit in UNITS}, self.listed("unit", prefix))

    def listed(self, name, prefix):
        variable = grafana.variables_of(grafana.load("bpfpush-graphite.json"))[name]
        query = grafana.replaced(re.fullmatch(r"expand\((.*)\)", variable["query"])[1], {"prefix": prefix, "host": "*"})
        return {re.search(variable["regex"].strip("/"), path)[1] for path in self.graphite.expand(query)}

    # Alerts.

    @staticmethod
    def alerts():
        with open(ALERTS, encoding="utf-8") as file:
            return [rule for group in yaml.safe_load(file)["groups"] for rule in group["rules"]]

    @staticmethod
    def parts_of(expression):
        """What it compares: an alert is silent if all is well, so its operands must have series."""
        operands = re.split(r"^(?:and|unless)\b.*\n", expression, flags=re.MULTILINE)
        return [re.sub(r"\s(?:[<>]=?|==) [\d.]+\s*$", "", operand) for operand in operands]

    def test_every_part_of_every_alert_has_series(self):
        for server in (self.explicit, self.native, self.victoria):
            for rule in self.alerts():
                for text in self.parts_of(rule["expr"]):
                    with self.subTest(server=server.name, alert=rule["alert"], part=text):
                        self.assertTrue(self.promql(server, text, False) or is_exempt(text))

    def test_alerts_that_must_fire(self):
        """An exporter without a receiver, a unit without memory, and more series than there is room for."""
        for name, labels in (("BpfpushPointsLost", {"otel_component_name": "lost"}), ("OutOfMemoryKill", {"systemd_unit_name": "batch.service"}),
                             ("CpuThrottled", {"systemd_unit_name": "limited.service"}), ("BpfpushSeriesOverflow", {"host_name": "vm2.example.com"})):
            rule, = [rule for rule in self.alerts() if rule["alert"] == name]
            with self.subTest(name):
                if name == "CpuThrottled" and not has_cpu_limit() or name == "OutOfMemoryKill" and not limits():
                    self.skipTest(is_exempt(rule["expr"]))
                answers = [found for found, _ in self.promql(self.explicit, rule["expr"], False)]
                self.assertTrue([found for found in answers if labels.items() <= found.items()], answers)

    def test_the_alerts_pass_promtool(self):
        promtool = os.path.join(installed("promtool"), "promtool")
        for command in (["check", "rules", "--lint-fatal", ALERTS], ["test", "rules", os.path.join(HERE, "alerts.test.yml")]):
            done = subprocess.run([promtool, *command], capture_output=True, text=True, cwd=HERE, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_is_tested_to_fire(self):
        with open(os.path.join(HERE, "alerts.test.yml"), encoding="utf-8") as file:
            tested = {case["alertname"] for test in yaml.safe_load(file)["tests"] for case in test["alert_rule_test"] if case.get("exp_alerts")}
        self.assertEqual({rule["alert"] for rule in self.alerts()}, tested)

    def test_the_agents_end_in_order(self):
        self.assertEqual(self.status, (0, 0), self.log)


def lacking():
    try:
        require_agent()
        installed("promtool")
        with ExitStack() as stack:
            for make in (Prometheus, VictoriaMetricsOtlp, Carbon):
                stack.callback(make().__exit__)
            installed("graphite-web")
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
