#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rig itself: what is posted to the Collector by hand is read back unchanged, kind by kind."""

import json
import socket
import unittest
import urllib.error
import urllib.request

from collector import Collector, main
from patience import PATIENCE_S

START, END = 1_700_000_000_000_000_000, 1_700_000_010_000_000_000


def request(*metrics):
    return {"resourceMetrics": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "by hand"}}]},
        "scopeMetrics": [{"scope": {"name": "hand", "version": "1"}, "metrics": list(metrics), "schemaUrl": "http://inner"}],
        "schemaUrl": "http://outer",
    }]}


def point(**members):
    return {"startTimeUnixNano": str(START), "timeUnixNano": str(END),
            "attributes": [{"key": "id", "value": {"intValue": "9007199254740993"}}], **members}


def post(collector, payload, channel=0):
    http = urllib.request.Request(collector.otlp_urls[channel] + "/v1/metrics", json.dumps(payload).encode(),
                                  {"Content-Type": "application/json"})
    with urllib.request.urlopen(http, timeout=PATIENCE_S) as answer:
        return answer.status


class TestCollector(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.collector = cls.enterClassContext(Collector(channels=2))

    def push(self, *metrics):
        """Posts the metrics and gives back the points that came of them."""
        before = len(self.collector.points())
        self.assertEqual(post(self.collector, request(*metrics)), 200)
        return self.collector.wait_points(lambda points: len(points) > before)[before:]

    def test_a_cumulative_sum_keeps_all_64_bits(self):
        value = 2**63 - 1
        got, = self.push({"name": "a.sum", "unit": "By", "description": "bytes", "sum": {
            "aggregationTemporality": 2, "isMonotonic": True, "dataPoints": [point(asInt=str(value))]}})
        self.assertEqual(got, {
            "kind": "sum", "name": "a.sum", "unit": "By", "description": "bytes", "scope": "hand", "scope_version": "1",
            "resource": {"service.name": "by hand"}, "attributes": {"id": 9007199254740993},
            "start_time_ns": START, "time_ns": END, "flags": 0, "temporality": "cumulative", "is_monotonic": True,
            "schemas": ("http://outer", "http://inner"), "value": value})

    def test_a_gauge_has_no_temporality(self):
        got, = self.push({"name": "a.gauge", "gauge": {"dataPoints": [point(asDouble=0.25)]}})
        self.assertEqual((got["kind"], got["value"], got["temporality"]), ("gauge", 0.25, None))

    def test_a_delta_histogram_keeps_bounds_and_counts(self):
        got, = self.push({"name": "a.histogram", "unit": "s", "histogram": {
            "aggregationTemporality": 1,
            "dataPoints": [point(count="3", sum=4.5, explicitBounds=[1, 2], bucketCounts=["0", "1", "2"])]}})
        self.assertEqual((got["temporality"], got["count"], got["sum"], got["bounds"], got["counts"]),
                         ("delta", 3, 4.5, [1.0, 2.0], [0, 1, 2]))

    def test_an_exponential_histogram_keeps_its_offset(self):
        got, = self.push({"name": "an.exponential", "unit": "s", "exponentialHistogram": {
            "aggregationTemporality": 2,
            "dataPoints": [point(count="4", sum=1.5, scale=0, zeroCount="1",
                                 positive={"offset": -30, "bucketCounts": ["1", "0", "2"]})]}})
        self.assertEqual((got["count"], got["scale"], got["zero_count"], got["offset"], got["counts"]), (4, 0, 1, -30, [1, 0, 2]))

    def test_two_kinds_in_one_request_are_two_points(self):
        got = self.push({"name": "one", "gauge": {"dataPoints": [point(asInt="1")]}},
                        {"name": "two", "sum": {"aggregationTemporality": 1, "dataPoints": [point(asInt="2")]}})
        self.assertEqual([(item["name"], item["value"]) for item in got], [("one", 1), ("two", 2)])

    def test_channels_are_kept_apart(self):
        before = len(self.collector.points(0))
        post(self.collector, request({"name": "aside", "gauge": {"dataPoints": [point(asInt="5")]}}), channel=1)
        aside = self.collector.wait_points(bool, channel=1)
        self.assertEqual([(p["name"], p["value"]) for p in aside], [("aside", 5)])
        self.assertEqual(len(self.collector.points(0)), before)

    def test_what_is_no_otlp_is_refused(self):
        http = urllib.request.Request(self.collector.otlp_urls[0] + "/v1/metrics", b"{", {"Content-Type": "application/json"})
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(http, timeout=PATIENCE_S)
        self.assertEqual(refused.exception.code, 400)
        refused.exception.close()

    def test_statsd_counters_arrive_added_up(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            for _ in range(3):
                line.sendto(b"hits:7|c|#colour:red", ("127.0.0.1", self.collector.statsd_port))
        points = self.collector.wait_points(
            lambda points: sum(p["value"] for p in points if p["name"] == "hits") >= 21)
        hits = [p for p in points if p["name"] == "hits"]
        self.assertEqual((sum(p["value"] for p in hits), hits[0]["attributes"]["colour"]), (21, "red"))


if __name__ == "__main__":
    main()
