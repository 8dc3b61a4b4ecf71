# SPDX-License-Identifier: Apache-2.0
"""What Prometheus and the like must have, from the lines of the json exporter of the same agent: names, labels, samples."""

import itertools
import math
import re

from expected import OWNERS, explicit, read_lines, text_of

UNITS = {"s": "_seconds", "By": "_bytes"}


def label(name):
    return re.sub(r"\W", "_", name)


def series_name(line):
    """What the section "Names" of docs/prometheus.md makes of it."""
    return label(line["name"]) + UNITS.get(line["unit"], "") + ("_total" if line["kind"] == "sum" else "")


def owner(attributes):
    return next((attributes[name] for name in OWNERS if name in attributes), "")


def zero_of(number):
    if isinstance(number, dict):
        return {**number, "count": 0, "sum": 0, "counts": [0] * len(number["counts"])}
    return 0


class Lines:
    """The json exporter's lines as series: {(name, attributes): [(ms, number)...]}, a histogram's number being its dict. As the
    pages say, what begins with more than 0 has a sample of 0 at its start."""

    def __init__(self, path):
        self.series, self.kinds, self.names, self.units = {}, {}, {}, {}
        starts = {}
        for line in read_lines(path):
            key = line["name"], tuple(sorted(line["attributes"].items()))
            self.kinds[key], self.names[key], self.units[key] = line["kind"], series_name(line), line["unit"]
            number = line["value"] if line["kind"] == "gauge" else line["total"]
            samples = self.series.setdefault(key, [])
            if line["kind"] != "gauge" and number != zero_of(number) and starts.get(key) != line["start_time_ns"]:
                samples.append((line["start_time_ns"] // 10**6, zero_of(number)))
            starts[key] = line.get("start_time_ns")
            samples.append((line["time_ns"] // 10**6, number))
        self.end_ms = max(samples[-1][0] for samples in self.series.values())

    def of(self, name):
        """(attributes, samples) of each series of a metric."""
        return [(dict(attributes), samples) for (metric, attributes), samples in self.series.items() if metric == name]

    def lasting(self):
        """(key, name, labels, last number) of each series that has not ended."""
        for key, samples in self.series.items():
            if samples[-1][0] == self.end_ms:
                labels = tuple(sorted((label(name), text_of(value)) for name, value in key[1]))
                yield key, self.names[key], labels, samples[-1][1]

    def last(self):
        """{(name, labels): last number}"""
        return {(name, labels): number for _, name, labels, number in self.lasting()}

    def last_explicit(self):
        """The same, with a histogram as its count, its sum and its buckets, which are cumulated; le is a number."""
        found = {}
        for key, name, labels, number in self.lasting():
            if not isinstance(number, dict):
                found[name, labels] = float(number)
                continue
            found[name + "_count", labels], found[name + "_sum", labels] = float(number["count"]), float(number["sum"])
            bounds, counts = explicit(key[0], self.units[key], number)
            for upper, count in zip(bounds, itertools.accumulate(counts)):
                found[name + "_bucket", (*labels, ("le", upper))] = float(count)
        return found

    def stored(self, receiver, time_ms, more=frozenset()):
        """{(name, labels that are attributes of a line, and more): value} in the receiver at that time."""
        wanted, found = more | {label(name) for _, attributes in self.series for name, _ in attributes}, {}
        for labels, value in receiver.query('{__name__=~"bpfpush.*|process.*|system.*|otel.*"}', time_ms):
            name = labels.pop("__name__")
            found[name, tuple(sorted((key, text) for key, text in labels.items() if key in wanted))] = value
        return found

    def buckets(self, samples, upper):
        """The samples of one bucket, not cumulated."""
        return [(ms, number["counts"][upper]) for ms, number in samples]


def is_same(have, want):
    """VictoriaMetrics keeps numbers as decimals, so the last digit of a fraction may differ."""
    return have == want or (isinstance(have, float) and isinstance(want, float) and not want.is_integer() and
                            math.isclose(have, want, rel_tol=1e-12))


def assert_same(test, have, want):
    test.assertGreater(len(want), 200)
    differences = [f"{key}: arrived {have.get(key)}, expected {value}" for key, value in sorted(want.items())
                   if not is_same(have.get(key), value)]
    test.assertEqual(differences[:5], [], f"{len(differences)} of {len(want)}")
