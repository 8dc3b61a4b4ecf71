# SPDX-License-Identifier: Apache-2.0
"""Real receivers as rigs: collectd, VictoriaMetrics, statsd_exporter and the Collector's statsdreceiver.

What they have in common is in receiver.py; statsd and Carbon have modules of their own.
"""

import csv
import json
import math
import os
import re
import urllib.request

from collector import Unavailable as NoCollector, collector_path, free_ports, points_of
import json_lines
from patience import PATIENCE_S
from receiver import Receiver, Unavailable, is_bound, LISTEN


def fetch(url, data=None):
    with urllib.request.urlopen(url, data, timeout=PATIENCE_S) as answer:
        return answer.read().decode(errors="replace")


class Collectd(Receiver):
    """Counters and gauges by their names, of timers NAME:count and NAME:sum, of sets NAME:count.

    The plug-in writes "derive" (what was counted since it started) and, with CounterSum, "count" (what was counted in an
    interval) for each counter. The sum of the latter is the total over restarts.
    """

    name = "collectd"
    CONFIG = """\
Hostname "h"
FQDNLookup false
BaseDir "{directory}"
PIDFile "{directory}/pid"
PluginDir "{home}/usr/lib/collectd"
TypesDB "{home}/usr/share/collectd/types.db"
Interval 1
ReadThreads 1
LoadPlugin logfile
<Plugin logfile>
  LogLevel info
  File STDOUT
</Plugin>
LoadPlugin csv
<Plugin csv>
  DataDir "{directory}/csv"
  StoreRates false
</Plugin>
LoadPlugin statsd
<Plugin statsd>
  Host "{host}"
  Port "{port}"
  CounterSum true
  TimerCount true
  TimerSum true
</Plugin>
"""
    FILE = re.compile(r"^([a-z]+)-(.*)-\d{4}-\d\d-\d\d$")

    def write_config(self):
        self.write("collectd.conf", self.CONFIG.format(directory=self.directory, home=self.home, host=self.host, port=self.port))

    def command(self):
        return [os.path.join(self.home, "usr/sbin/collectd"), "-f", "-C", self.path("collectd.conf")]

    def keep_totals(self):
        self.settle()

    def rows(self):
        """(type, name, values in the order of their intervals) of each file."""
        top = self.path("csv", "h", "statsd")
        for file in sorted(os.listdir(top)) if os.path.isdir(top) else []:
            kind, name = self.FILE.match(file).groups()
            lines = [line.decode() for line in json_lines.read(os.path.join(top, file))]
            yield kind, name, [float(row[1]) for row in list(csv.reader(lines))[1:]]

    def totals(self):
        rows = {(kind, name): values for kind, name, values in self.rows()}
        found = {}
        for (kind, name), values in rows.items():
            if kind in ("count", "objects"):
                found[name if kind == "count" else f"{name}:count", ()] = sum(values)
            elif kind == "gauge" and ("latency", name.removesuffix("-count") + "-average") in rows:
                found[name.removesuffix("-count") + ":count", ()] = sum(values)
            elif kind == "gauge":
                found[name, ()] = values[-1]
            elif kind == "latency" and name.endswith("-sum"):
                found[name.removesuffix("-sum") + ":sum", ()] = sum(value for value in values if not math.isnan(value))
        return found

    def bad_lines(self):
        return self.log_text().count("Unable to parse line") + self.log_text().count("Unknown type")


class VictoriaMetrics(Receiver):
    """Every sample that it was sent in Graphite's notation, summed up by series."""

    name = "victoria-metrics"
    protocol = "tcp"
    web_port = None

    def __init__(self, host="127.0.0.1", port=None, flags=()):
        super().__init__(host, port)
        self.flags = flags

    def write_config(self):
        self.web_port = free_ports(1)[0]

    def command(self):
        return [os.path.join(self.home, "victoria-metrics"), f"-graphiteListenAddr={self.endpoint}",
                f"-httpListenAddr=127.0.0.1:{self.web_port}", f"-storageDataPath={self.path('data')}", "-retentionPeriod=100y",
                "-memory.allowedBytes=256MB", "-loggerLevel=INFO", *self.flags]

    def is_ready(self):
        return super().is_ready() and is_bound("127.0.0.1", self.web_port, "tcp", LISTEN)

    def points(self):
        """{series: [(time in s, value)...]}"""
        fetch(f"http://127.0.0.1:{self.web_port}/internal/force_flush")
        found = {}
        text = fetch(f"http://127.0.0.1:{self.web_port}/api/v1/export", b'match[]={__name__!=""}')
        for line in text.splitlines():
            item = json.loads(line)
            tags = item["metric"]
            name = tags.pop("__name__")
            key = name, tuple(sorted(tags.items()))
            found[key] = sorted(zip([at / 1000 for at in item["timestamps"]], item["values"]))
        return found

    def totals(self):
        return {key: sum(value for _, value in points) for key, points in self.points().items()}

    def bad_lines(self):
        text = fetch(f"http://127.0.0.1:{self.web_port}/metrics")
        return int(re.search(r'^vm_rows_invalid_total\{type="graphite"\} (\d+)', text, re.MULTILINE).group(1))


class StatsdExporter(Receiver):
    """What /metrics says, but for quantiles: counters are added up over restarts, of all else the last value holds."""

    name = "statsd_exporter"
    OWN = re.compile(r"(statsd_exporter|statsd_metric_mapper|go|promhttp)_|"
                     r"process_(cpu_seconds_total|\w+_fds|\w+_memory(_max)?_bytes|start_time_seconds|network_\w+_bytes_total)$")
    SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
    LABEL = re.compile(r'(\w+)="((?:\\.|[^"\\])*)"')
    web_port = None

    def __init__(self, host="127.0.0.1", port=None, unix=False, flags=()):
        super().__init__(host, port)
        self.unix, self.flags, self.kept = unix, flags, {}

    def write_config(self):
        self.web_port = free_ports(1)[0]

    @property
    def endpoint(self):
        return f"unix:{self.path('socket')}" if self.unix else super().endpoint

    def command(self):
        if os.path.exists(self.path("socket")):
            os.unlink(self.path("socket"))
        return [os.path.join(self.home, "statsd_exporter"), "--statsd.listen-tcp=", f"--statsd.listen-udp={self.host}:{self.port}",
                f"--statsd.listen-unixgram={self.path('socket') if self.unix else ''}", "--log.level=debug",
                f"--web.listen-address=127.0.0.1:{self.web_port}", *self.flags]

    def is_ready(self):
        return super().is_ready() and is_bound("127.0.0.1", self.web_port, "tcp", LISTEN)

    def samples(self):
        """(name, labels, value, whether it belongs to a counter) of all, its own included."""
        kinds = {}
        for line in fetch(f"http://127.0.0.1:{self.web_port}/metrics").splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                kinds[name] = kind
            elif not line.startswith("#"):
                name, labels, value = self.SAMPLE.match(line).groups()
                yield name, tuple(sorted(self.LABEL.findall(labels or ""))), float(value), kinds.get(name) == "counter"

    def totals(self):
        found = dict(self.kept)
        if self.process:
            for name, labels, value, is_counter in self.samples():
                if not self.OWN.match(name) and "quantile" not in dict(labels):
                    found[name, labels] = value + (self.kept.get((name, labels), 0) if is_counter else 0)
        return found

    def keep_totals(self):
        if self.process.poll() is None:
            self.kept = self.settle()

    def bad_lines(self):
        bad = ("statsd_exporter_sample_errors_total", "statsd_exporter_events_error_total", "statsd_exporter_tag_errors_total",
               "statsd_exporter_events_conflict_total")
        return int(sum(value for name, _, value, _ in self.samples() if name in bad))


class CollectorStatsd(Receiver):
    """The statsdreceiver of the OpenTelemetry Collector; of histograms NAME:count and NAME:sum."""

    name = "collector"
    CONFIG = """\
receivers:
  statsd:
    endpoint: {endpoint}
    transport: {transport}
    aggregation_interval: 1s
    is_monotonic_counter: true
    timer_histogram_mapping:
      - statsd_type: timing
        observer_type: histogram
      - statsd_type: histogram
        observer_type: histogram
      - statsd_type: distribution
        observer_type: histogram
exporters:
  file:
    path: {directory}/metrics.jsonl
    append: true
    flush_interval: 100ms
service:
  telemetry:
    metrics:
      level: none
    logs:
      level: debug
  pipelines:
    metrics:
      receivers: [statsd]
      exporters: [file]
"""

    def __init__(self, host="127.0.0.1", port=None, unix=False):
        super().__init__(host, port)
        self.unix = unix

    def find_home(self):
        try:
            return os.path.dirname(collector_path())
        except NoCollector as lacking:
            raise Unavailable(str(lacking)) from None

    @property
    def endpoint(self):
        return f"unix:{self.path('socket')}" if self.unix else super().endpoint

    def write_config(self):
        self.write("config.yaml", self.CONFIG.format(
            endpoint=self.endpoint.removeprefix("unix:"), transport="unixgram" if self.unix else "udp", directory=self.directory))

    def command(self):
        return [os.path.join(self.home, "otelcol"), "--config", self.path("config.yaml")]

    def is_ready(self):
        return self.log_text().count("Everything is ready") > self.starts

    @property
    def starts(self):
        """How often it has been ready and has ended since."""
        return self.log_text().count("Shutdown complete")

    def keep_totals(self):
        self.settle()

    def points(self):
        requests = json_lines.points(json_lines.read(self.path("metrics.jsonl")))
        return [point for request in requests for point in points_of(request)]

    def totals(self):
        found = {}
        for point in self.points():
            name, tags = point["name"], tuple(sorted(point["attributes"].items()))
            if point["kind"] == "gauge":
                found[name, tags] = point["value"]
            elif point["kind"] == "sum":
                found[name, tags] = found.get((name, tags), 0) + point["value"]
            else:
                for member in ("count", "sum"):
                    found[f"{name}:{member}", tags] = found.get((f"{name}:{member}", tags), 0) + (point[member] or 0)
        return found

    def bad_lines(self):
        return self.log_text().count("Error aggregating")
