# SPDX-License-Identifier: Apache-2.0
"""Prometheus and VictoriaMetrics as receivers of OTLP, started as docs/prometheus.md says, and read with PromQL."""

import json
import math
import os
import re
import urllib.error
import urllib.parse
import urllib.request

from patience import PATIENCE_S
from receiver import Receiver

DOCS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "docs")


def page(name="prometheus.md"):
    with open(os.path.join(DOCS, name), encoding="utf-8") as file:
        return file.read()


def blocks(language, name="prometheus.md"):
    """The text of each block of the page that is fenced with that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)


def flags_of(program):
    """What the page starts the program with."""
    line, = [block for block in blocks("sh") if block.startswith(program + " ")]
    return line.split()[1:]


def exporter_of(name):
    """The keys of the page's section [exporter NAME]."""
    text, = [block for block in blocks("ini") if block.startswith(f"[exporter {name}]\n")]
    return dict(re.findall(r"^(\S+) = (.*)$", text, re.MULTILINE))


def without_resets(samples):
    """What a counter counted in all: each fall is a new start from 0."""
    before, last = 0, None
    for ms, value in samples:
        before += last if last is not None and value < last else 0
        last = value
        yield ms, before + value


class Promql(Receiver):
    """A child class says how it is started. Its port is that of HTTP, for pushes and queries alike."""

    protocol = "tcp"
    health = None
    exporter = None  # the section of the page

    def url(self, path, **parameters):
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        return f"http://{self.host}:{self.port}{path}{query}"

    def is_ready(self):
        try:
            with urllib.request.urlopen(self.url(self.health), timeout=PATIENCE_S) as answer:
                return answer.status == 200
        except OSError:
            return False

    def exporter_keys(self, **more):
        """The page's section with the rig's address in the endpoint."""
        keys = exporter_of(self.exporter)
        return {**keys, "endpoint": re.sub(r"//localhost:\d+", f"//{self.host}:{self.port}", keys["endpoint"]), **more}

    def settle(self):
        """What is accepted can be queried at once, once VictoriaMetrics has flushed."""

    def ask(self, what, **parameters):
        """The API's answer to query or query_range. ValueError: what it does not understand."""
        try:
            with urllib.request.urlopen(self.url(f"/api/v1/{what}", **parameters), timeout=PATIENCE_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(error.read().decode(errors="replace")) from error

    def samples(self, text, time_ms):
        """{labels: [(ms, value)...]} of a range selector."""
        found = self.ask("query", query=text, time=time_ms / 1000)["data"]["result"]
        return {tuple(sorted(item["metric"].items())): [(round(at * 1000), float(value)) for at, value in item["values"]] for item in found}

    def query(self, text, time_ms):
        """[(labels, value)]; a native histogram is the API's dict."""
        found = self.ask("query", query=text, time=time_ms / 1000)
        return [(item["metric"], float(item["value"][1]) if "value" in item else item["histogram"][1]) for item in found["data"]["result"]]

    def names(self):
        with urllib.request.urlopen(self.url("/api/v1/label/__name__/values"), timeout=PATIENCE_S) as answer:
            return set(json.load(answer)["data"])


class Prometheus(Promql):
    """With the flags and the prometheus.yml of the page, or with others."""

    name = "prometheus"
    exporter = "prometheus"
    health = "/-/ready"
    program = "prometheus"

    def __init__(self, flags=None, config=None):
        super().__init__()
        self.flags = flags_of("prometheus") if flags is None else flags
        self.config = blocks("yaml")[0] if config is None else config

    def write_config(self):
        self.write("prometheus.yml", self.config)

    def command(self):
        return [os.path.join(self.home, self.program), *self.flags, f"--web.listen-address={self.endpoint}",
                f"--storage.tsdb.path={self.path('data')}", "--log.level=info"]

    @staticmethod
    def rate(samples, end_ms, range_ms):
        """Of a counter's [(ms, value)]: Prometheus extrapolates to the ends of the range."""
        samples = list(without_resets([(ms, value) for ms, value in samples if ms > end_ms - range_ms]))
        if len(samples) < 2:
            return 0
        (first_ms, first), (last_ms, last) = samples[0], samples[-1]
        sampled_ms, grown = last_ms - first_ms, last - first
        average_ms = sampled_ms / (len(samples) - 1)
        ends = [gap_ms if gap_ms < 1.1 * average_ms else average_ms / 2 for gap_ms in (first_ms - (end_ms - range_ms), end_ms - last_ms)]
        if grown > 0:
            ends[0] = min(ends[0], sampled_ms * first / grown)
        return grown * (sampled_ms + sum(ends)) / sampled_ms / range_ms * 1000


class DebianPrometheus(Prometheus):
    name = "prometheus-debian"
    program = "usr/bin/prometheus"


class VictoriaMetricsOtlp(Promql):
    name = "victoria-metrics"
    exporter = "victoriametrics"
    health = "/health"

    def __init__(self, flags=None):
        super().__init__()
        self.flags = flags_of("victoria-metrics") if flags is None else flags

    def command(self):
        return [os.path.join(self.home, "victoria-metrics"), *self.flags, f"-httpListenAddr={self.endpoint}", "-retentionPeriod=1y",
                f"-storageDataPath={self.path('data')}", "-memory.allowedBytes=256MB", "-search.latencyOffset=0s"]

    def settle(self):
        with urllib.request.urlopen(self.url("/internal/force_flush"), timeout=PATIENCE_S):
            pass

    @staticmethod
    def rate(samples, end_ms, range_ms):
        """Of a counter's [(ms, value)]: VictoriaMetrics takes the sample before the range for the first."""
        before = [sample for sample in samples if sample[0] <= end_ms - range_ms]
        samples = list(without_resets(before[-1:] + samples[len(before):]))
        if len(samples) < 2:
            return 0
        return (samples[-1][1] - samples[0][1]) / (samples[-1][0] - samples[0][0]) * 1000


def quantile_bucket(quantile, buckets):
    """(lower, upper) of the bucket in which the quantile lies, of [(upper, count or rate)] in order."""
    rank, seen, lower = quantile * sum(count for _, count in buckets), 0, 0
    for upper, count in buckets:
        seen += count
        if seen >= rank and count:
            return lower, upper
        lower = upper
    return lower, math.inf


def refuses_otlp(receiver, path):
    """The status of an empty push."""
    request = urllib.request.Request(receiver.url(path), b"", {"Content-Type": "application/x-protobuf"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
