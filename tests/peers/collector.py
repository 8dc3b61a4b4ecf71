# SPDX-License-Identifier: Apache-2.0
"""The real OpenTelemetry Collector on loopback: start it on free ports, read back what it received.

    with Collector() as collector:
        ... push to collector.otlp_url, or StatsD lines to collector.statsd_port ...
        points = collector.wait_points(lambda points: len(points) >= 3)

A point is one dict whatever its kind; see points_of(). The Collector's file exporter writes one JSON line
a request, so points keep the order in which they came.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))

TEMPORALITY = {1: "delta", 2: "cumulative"}

CONFIG = """\
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{otlp_port}
  statsd:
    endpoint: 127.0.0.1:{statsd_port}
    aggregation_interval: 1s
    enable_metric_type: true
    is_monotonic_counter: true
exporters:
  file:
    path: {output}
    flush_interval: 100ms
service:
  telemetry:
    metrics:
      level: none
    logs:
      level: info
  pipelines:
    metrics:
      receivers: [otlp, statsd]
      exporters: [file]
"""


class Unavailable(Exception):
    """This machine has no Collector; the text says what to do."""


def collector_path():
    found = subprocess.run([os.path.join(HERE, "collector-build"), "--cached"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable("the OpenTelemetry Collector is not built: run tests/peers/collector-build")
    return found.stdout.strip()


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def attribute_value(value):
    """The value of an OTLP AnyValue; 64-bit integers are strings in OTLP/JSON."""
    if "intValue" in value:
        return int(value["intValue"])
    for key in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if key in value:
            return value[key]
    if "arrayValue" in value:
        return [attribute_value(item) for item in value["arrayValue"].get("values", [])]
    return None


def attributes_of(items):
    return {item["key"]: attribute_value(item.get("value", {})) for item in items or []}


def number_of(point):
    return int(point["asInt"]) if "asInt" in point else point.get("asDouble")


def fill_number(result, point):
    result["value"] = number_of(point)


def fill_histogram(result, point):
    result.update(count=int(point.get("count", 0)), sum=point.get("sum"), min=point.get("min"), max=point.get("max"),
                  bounds=[float(bound) for bound in point.get("explicitBounds", [])],
                  counts=[int(count) for count in point.get("bucketCounts", [])])


def fill_exponential(result, point):
    positive = point.get("positive", {})
    result.update(count=int(point.get("count", 0)), sum=point.get("sum"), scale=int(point.get("scale", 0)),
                  zero_count=int(point.get("zeroCount", 0)), zero_threshold=point.get("zeroThreshold", 0),
                  offset=int(positive.get("offset", 0)),
                  counts=[int(count) for count in positive.get("bucketCounts", [])])


KINDS = [("sum", fill_number), ("gauge", fill_number), ("histogram", fill_histogram),
         ("exponentialHistogram", fill_exponential)]


def points_of(export):
    """All points of one ExportMetricsServiceRequest in OTLP/JSON, as flat dicts.

    Common members: kind, name, unit, description, scope, scope_version, resource, attributes,
    start_time_ns, time_ns, flags; for sums and histograms temporality; then by kind
    value | count sum min max bounds counts | count sum scale zero_count offset counts.
    """
    for resource_metrics in export.get("resourceMetrics", []):
        resource = attributes_of(resource_metrics.get("resource", {}).get("attributes"))
        for scope_metrics in resource_metrics.get("scopeMetrics", []):
            scope = scope_metrics.get("scope", {})
            for metric in scope_metrics.get("metrics", []):
                for kind, fill in KINDS:
                    data = metric.get(kind)
                    for point in (data or {}).get("dataPoints", []):
                        result = {
                            "kind": kind, "name": metric["name"], "unit": metric.get("unit", ""),
                            "description": metric.get("description", ""),
                            "scope": scope.get("name", ""), "scope_version": scope.get("version", ""), "resource": resource,
                            "attributes": attributes_of(point.get("attributes")),
                            "start_time_ns": int(point.get("startTimeUnixNano", 0)),
                            "time_ns": int(point.get("timeUnixNano", 0)), "flags": point.get("flags", 0),
                            "temporality": TEMPORALITY.get(data.get("aggregationTemporality")),
                            "is_monotonic": data.get("isMonotonic", False),
                        }
                        fill(result, point)
                        yield result


class Collector:
    def __init__(self):
        self.path = collector_path()
        self.directory = tempfile.mkdtemp(prefix="bpfpush-collector.")
        self.output = os.path.join(self.directory, "metrics.jsonl")
        self.log = os.path.join(self.directory, "log")
        self.otlp_port = self.statsd_port = None
        self.process = None

    @property
    def otlp_url(self):
        return f"http://127.0.0.1:{self.otlp_port}"

    def __enter__(self):
        for _ in range(5):  # a port that was free may be taken when the Collector comes to it
            if self.try_start():
                return self
        text = self.log_text()
        self.__exit__()
        raise RuntimeError("the Collector did not start:\n" + text[-3000:])

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def try_start(self):
        self.otlp_port, self.statsd_port = free_port(), free_port(socket.SOCK_DGRAM)
        config = os.path.join(self.directory, "config.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(otlp_port=self.otlp_port, statsd_port=self.statsd_port, output=self.output))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([self.path, "--config", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            if "Everything is ready" in self.log_text():
                return True
            time.sleep(0.05)
        self.stop()
        return False

    def stop(self):
        """Ends it politely, so that all it received is in the file; by force after 10 seconds."""
        if not self.process:
            return
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def points(self):
        """What has been received and written so far."""
        if not os.path.exists(self.output):
            return []
        with open(self.output, encoding="utf-8") as lines:
            whole = [line for line in lines if line.endswith("\n")]
        return [point for line in whole for point in points_of(json.loads(line))]

    def wait_points(self, are_enough, timeout_s=10):
        deadline = time.monotonic() + timeout_s
        points = self.points()
        while not are_enough(points):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(points)} points after {timeout_s} s:\n" + "\n".join(map(str, points[:20])))
            time.sleep(0.05)
            points = self.points()
        return points
