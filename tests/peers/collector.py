# SPDX-License-Identifier: Apache-2.0
"""The real OpenTelemetry Collector on loopback: start it on free ports, read back what it received.

    with Collector() as collector:
        ... push to collector.otlp_urls[0], or StatsD lines to collector.statsd_port ...
        points = collector.wait_points(lambda points: len(points) >= 3)

Collector(channels=4) has four receivers, each with a file of its own, so that the points of several
senders, or of several ways to send, are told apart. StatsD belongs to channel 0. A point is one dict whatever its kind; see points_of(). The Collector's file exporter writes one JSON line
a request, so points keep the order in which they came.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.append(os.path.join(HERE, ".."))
import json_lines
from patience import PATIENCE_S

TEMPORALITY = {1: "delta", 2: "cumulative"}

CONFIG = """\
receivers:
  statsd:
    endpoint: 127.0.0.1:{statsd_port}
    aggregation_interval: 1s
    enable_metric_type: true
    is_monotonic_counter: true
{receivers}exporters:
{exporters}service:
  telemetry:
    metrics:
      level: none
    logs:
      level: info
  pipelines:
{pipelines}"""

RECEIVER = """\
  otlp/{channel}:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
"""

EXPORTER = """\
  file/{signal}-{channel}:
    path: {output}
    append: true
    flush_interval: 100ms
"""

PIPELINE = """\
    metrics/{channel}:
      receivers: [{receivers}]
      exporters: [file/metrics-{channel}]
    logs/{channel}:
      receivers: [otlp/{channel}]
      exporters: [file/logs-{channel}]
    traces/{channel}:
      receivers: [otlp/{channel}]
      exporters: [file/traces-{channel}]
"""


class Unavailable(Exception):
    """This machine has no Collector; the text says what to do."""


def collector_path():
    found = subprocess.run([os.path.join(HERE, "collector-build"), "--cached"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable("the OpenTelemetry Collector is not built: run tests/peers/collector-build")
    return found.stdout.strip()


def main():
    """Runs the tests, or skips them without the Collector."""
    try:
        collector_path()
    except Unavailable as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()


def free_ports(count, kind=socket.SOCK_STREAM):
    probes = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


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
    schemas (of the resource and of the scope), start_time_ns, time_ns, flags; for sums and histograms temporality; then by kind
    value | count sum min max bounds counts | count sum scale zero_count offset counts.
    """
    for resource_metrics in export.get("resourceMetrics", []):
        resource = attributes_of(resource_metrics.get("resource", {}).get("attributes"))
        for scope_metrics in resource_metrics.get("scopeMetrics", []):
            scope = scope_metrics.get("scope", {})
            schemas = resource_metrics.get("schemaUrl", ""), scope_metrics.get("schemaUrl", "")
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
                            "is_monotonic": data.get("isMonotonic", False), "schemas": schemas,
                        }
                        fill(result, point)
                        yield result


def events_of(export):
    """All log records of one ExportLogsServiceRequest in OTLP/JSON, as flat dicts."""
    for resource_logs in export.get("resourceLogs", []):
        resource = attributes_of(resource_logs.get("resource", {}).get("attributes"))
        for scope_logs in resource_logs.get("scopeLogs", []):
            for record in scope_logs.get("logRecords", []):
                yield {"scope": scope_logs.get("scope", {}).get("name", ""), "resource": resource,
                       "schemas": (resource_logs.get("schemaUrl", ""), scope_logs.get("schemaUrl", "")),
                       "name": record.get("eventName", ""), "time_ns": int(record.get("timeUnixNano", 0)),
                       "severity": (record.get("severityNumber"), record.get("severityText")),
                       "body": attribute_value(record.get("body", {})),
                       "ids": (record.get("traceId", ""), record.get("spanId", "")),
                       "attributes": attributes_of(record.get("attributes"))}


def spans_of(export):
    """All spans of one ExportTraceServiceRequest in OTLP/JSON, as flat dicts."""
    for resource_spans in export.get("resourceSpans", []):
        resource = attributes_of(resource_spans.get("resource", {}).get("attributes"))
        for scope_spans in resource_spans.get("scopeSpans", []):
            for span in scope_spans.get("spans", []):
                yield {"scope": scope_spans.get("scope", {}).get("name", ""), "resource": resource,
                       "schemas": (resource_spans.get("schemaUrl", ""), scope_spans.get("schemaUrl", "")),
                       "name": span["name"], "kind": span.get("kind", 0), "status": span.get("status", {}).get("code", 0),
                       "ids": (span["traceId"], span["spanId"], span.get("parentSpanId", "")),
                       "begin_ns": int(span["startTimeUnixNano"]), "end_ns": int(span["endTimeUnixNano"]),
                       "attributes": attributes_of(span.get("attributes"))}


class Collector:
    environment = {}  # more than the test's own

    def __init__(self, channels=1):
        self.path = collector_path()
        self.directory = tempfile.mkdtemp(prefix="bpfpush-collector.")
        self.outputs, self.log_outputs, self.trace_outputs = (
            [os.path.join(self.directory, f"{signal}-{channel}.jsonl") for channel in range(channels)] for signal in ("metrics", "logs", "traces"))
        self.log = os.path.join(self.directory, "log")
        self.otlp_ports, self.statsd_port = [], None
        self.is_back = False  # at the same ports
        self.process = None

    @property
    def otlp_urls(self):
        return [f"http://127.0.0.1:{port}" for port in self.otlp_ports]

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

    def config_texts(self):
        """Of one file, or of several, each of which adds to those before."""
        return [self.config_text()]

    def config_text(self):
        if not self.is_back:
            self.otlp_ports, self.statsd_port = free_ports(len(self.outputs)), free_ports(1, socket.SOCK_DGRAM)[0]
        channels = range(len(self.outputs))
        return CONFIG.format(
            statsd_port=self.statsd_port,
            receivers="".join(RECEIVER.format(channel=i, port=self.otlp_ports[i]) for i in channels),
            exporters="".join(EXPORTER.format(signal=signal, channel=i, output=outputs[i]) for i in channels for signal, outputs in
                              (("metrics", self.outputs), ("logs", self.log_outputs), ("traces", self.trace_outputs))),
            pipelines="".join(PIPELINE.format(channel=i, receivers=f"otlp/{i}" + ("" if i else ", statsd")) for i in channels))

    def try_start(self):
        command = [self.path]
        for i, text in enumerate(self.config_texts()):
            command.append("--config=" + os.path.join(self.directory, f"config-{i}.yaml"))
            with open(command[-1].partition("=")[2], "w", encoding="utf-8") as file:
                file.write(text)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **self.environment})
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            if "Everything is ready" in self.log_text():
                return True
            time.sleep(0.05)
        self.stop()
        return False

    def come_back(self):
        """Starts it again after stop(), at the same ports."""
        self.is_back = True
        for _ in range(5):
            if self.try_start():
                return
        raise RuntimeError("the Collector did not come back:\n" + self.log_text()[-3000:])

    def stop(self):
        """Ends it politely, so that all it received is in the file."""
        if not self.process:
            return
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def points(self, channel=0):
        """What has been received and written so far."""
        return [point for request in json_lines.points(json_lines.read(self.outputs[channel])) for point in points_of(request)]

    def events(self, channel=0):
        """The log records that have been received and written so far."""
        return [event for request in json_lines.points(json_lines.read(self.log_outputs[channel])) for event in events_of(request)]

    def spans(self, channel=0):
        return [span for request in json_lines.points(json_lines.read(self.trace_outputs[channel])) for span in spans_of(request)]

    def wait_points(self, are_enough, channel=0, timeout_s=PATIENCE_S):
        deadline = time.monotonic() + timeout_s
        points = self.points(channel)
        while not are_enough(points):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(points)} points after {timeout_s} s:\n" + "\n".join(map(str, points[:20])))
            time.sleep(0.05)
            points = self.points(channel)
        return points
