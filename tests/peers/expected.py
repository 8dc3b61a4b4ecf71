# SPDX-License-Identifier: Apache-2.0
"""What must arrive at a receiver of StatsD or Graphite, from the lines of the json exporter of the same agent.

An own implementation of what conf/bpfpush.conf and docs/statsd.md promise: names, tags, units, what becomes of a histogram.
Numbers are exact: the lines are read as decimals.
"""

import glob
import json
import os
import re
from decimal import Decimal

from agent import HOST
import json_lines

DESCRIPTORS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "bpf", "*.conf")
USUAL_RANGES = {"s": "-18..0", "By": "4..22"}
OWNERS = ("systemd.unit.name", "container.id", "process.linux.cgroup")
ALL_BOUNDS = "otel.sdk.metric_reader.collection.duration"  # bpfpush's own (src/agent/self.c) is sent as it is
TAGGED_KEEP = {"graphite": "", "dogstatsd": "/:", "influx": "/", "tagged": ":@+"}


def read_lines(path):
    return [json.loads(line, parse_float=Decimal) for line in json_lines.read(path)]


def digits(data):
    """The lower half of a 64-bit FNV-1a."""
    digest = 0xcbf29ce484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001b3 % 2**64
    return f"_{digest % 2**32:08x}"


def replaced(text, also=""):
    return re.sub(rf"[^A-Za-z0-9_\-{re.escape(also)}]", "_", text) or "_"


def clean(text, also="", owner=None):
    """A level or a tag's value. Text that cannot be read back from it is followed by digits: something was replaced or cut, it
    ends in such digits itself, or it is one of three words. In a path, owner is the attribute that says whose the number is."""
    shown = text
    if owner == "systemd.unit.name" and re.search(r"\.[a-z]+$", text):
        shown = "_".join(text.rsplit(".", 1))
    is_known = owner is None or (re.fullmatch("[0-9a-f]*", text) if owner == "container.id" else shown != text)
    is_plain = replaced(shown, also) == shown and len(shown) <= 200 and not re.search("_[0-9a-f]{8}$", shown)
    if is_known and is_plain and shown not in ("", "_", "otel_metric_overflow"):
        return shown
    return replaced(text, also)[:191] + digits((owner + "\0" + text if owner else text).encode())


def text_of(value):
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def bound_text(bound):
    """The fewest digits that are the number."""
    if bound == float("inf"):
        return "inf"
    if bound >= 1 and bound == int(bound):
        return str(int(bound))
    return next(text for text in (f"{bound:.{digits}g}" for digits in range(1, 18)) if float(text) == bound)


class Naming:
    """Of one dialect: (name, tags) of a line of json; unit_suffix goes behind what is in seconds otherwise."""

    def __init__(self, dialect, unit_suffix=""):
        self.dialect, self.unit_suffix = dialect, unit_suffix
        self.keeps = TAGGED_KEEP.get(dialect)

    def series(self, line, path_suffix="", upper=None):
        metric = ".".join(map(clean, line["name"].split(".")))
        if line["unit"] == "s" and line["kind"] != "gauge":
            metric += self.unit_suffix
        attributes = sorted(line["attributes"].items())
        if self.keeps is None:
            return self.untagged(metric, attributes, path_suffix, upper), ()
        tags = {"host.name": HOST, **{name: clean(text_of(value), "." + self.keeps) for name, value in attributes}}
        if upper:
            tags["upper"] = upper
        return metric + path_suffix, tuple(sorted(tags.items()))

    def sum_series(self, line):
        """Of Graphite: with ".count" at its end, unless that is where the metric's name ends."""
        is_last = self.keeps is not None or {*line["attributes"]} <= {*OWNERS}
        return self.series(line, "" if is_last and line["name"].endswith(".count") else ".count")

    @staticmethod
    def untagged(metric, attributes, path_suffix, upper):
        owner = next((clean(value, owner=name) for name, value in attributes if name in OWNERS), "_")
        others = [replaced(name) if isinstance(value, bool) else clean(text_of(value)) for name, value in attributes
                  if name not in OWNERS]
        path = ".".join([replaced(HOST), owner, metric, *others])
        return path + path_suffix + ("." + upper.replace(".", "_") if upper else "")


def ranges():
    """{metric: its range} of the shipped collectors that say one."""
    found = {}
    for path in glob.glob(DESCRIPTORS):
        with open(path, encoding="utf-8") as file:
            for section in file.read().split("\n["):
                keys = dict(re.findall(r"(?m)^(\w+) = (.*)$", section))
                if "range" in keys:
                    found[keys["name"]] = keys["range"]
    return found


def explicit(name, unit, numbers, known=ranges()):
    """(upper bounds, counts) of an explicit histogram: the metric's range says which of all bounds there are."""
    if name == ALL_BOUNDS:
        return [*map(float, numbers["bounds"]), float("inf")], numbers["counts"]
    first, last, step = re.fullmatch(r"(-?\d+)\.\.(-?\d+)(?: step (\d+))?",
                                     known.get(name, USUAL_RANGES.get(unit, "0..18"))).groups()
    bounds = [2.0 ** power for power in range(int(first), int(last) + 1, int(step or 1))] + [float("inf")]
    counts = [0] * len(bounds)
    for upper, count in zip([*map(float, numbers["bounds"]), float("inf")], numbers["counts"]):
        counts[next(i for i, bound in enumerate(bounds) if upper <= bound)] += count
    return bounds, counts


def bucket_counts(line, member, per_second):
    """(upper bound as text, count) of each bucket."""
    factor = per_second if line["unit"] == "s" else 1
    return [(bound_text(bound * factor), count) for bound, count in zip(*explicit(line["name"], line["unit"], line[member]))]


def grown(line, total, delta):
    """What a counter of StatsD is sent: whole numbers, the rest of which is carried on."""
    factor = 10**6 if line["unit"] == "s" else 1
    return int(total * factor) - int((total - delta) * factor)


def statsd_totals(lines, dialect):
    """{series: what its counter adds up to, or its last gauge}, for histogram = counters and time_unit = us."""
    naming, found = Naming(dialect, "_us"), {}

    def add(key, value):
        if value:
            found[key] = found.get(key, 0) + value

    for line in lines:
        if line["kind"] == "gauge":
            if line["value"] >= 0:
                found[naming.series(line)] = line["value"]
        elif line["kind"] == "sum":
            add(naming.series(line), grown(line, line["total"], line["delta"]))
        else:
            add(naming.series(line, ".count"), line["delta"]["count"])
            add(naming.series(line, ".sum"), grown(line, line["total"]["sum"], line["delta"]["sum"]))
            for upper, count in bucket_counts(line, "delta", 10**6):
                add(naming.series(line, ".bucket", upper), count)
    return {key: float(value) for key, value in found.items()}


def slots(lines, interval_s):
    """{time_ns of a collection: the Unix second that stands for it}: the multiple of the interval in which it is. What happens
    in the one in which the agent began counts for the next; a collection a moment late keeps the one before; two may share one."""
    def own_slot(time_ns):
        return time_ns // 10**9 // interval_s * interval_s

    found, slot, before_ns = {}, None, 0
    times = sorted({line["time_ns"] for line in lines})
    for time_ns in times:
        own = own_slot(time_ns)
        if slot is None:
            least = own_slot(min(line["start_time_ns"] for line in lines if "start_time_ns" in line)) + interval_s
        else:
            least = slot
            if time_ns != times[-1] and time_ns - before_ns < interval_s * 10**9 * 3 // 2 and own == slot + 2 * interval_s:
                own -= interval_s
        slot, before_ns = max(own, least), time_ns
        found[time_ns] = slot
    return found


def graphite_points(lines, dialect, interval_s):
    """{series: {Unix second: value}} for temporality = delta; collections that share a second add up."""
    naming, seconds, found = Naming(dialect), slots(lines, interval_s), {}

    def add(line, key, value):
        points, second = found.setdefault(key, {}), seconds[line["time_ns"]]
        points[second] = points.get(second, 0) + value

    for line in lines:
        if line["kind"] == "gauge":
            found.setdefault(naming.series(line), {}).setdefault(seconds[line["time_ns"]], line["value"])
        elif line["kind"] == "sum" and line["delta"]:
            add(line, naming.sum_series(line), line["delta"])
        elif line["kind"] == "histogram" and line["delta"]["count"]:
            add(line, naming.series(line, ".count"), line["delta"]["count"])
            add(line, naming.series(line, ".sum"), line["delta"]["sum"])
            for upper, count in bucket_counts(line, "delta", 1):
                if count:
                    add(line, naming.series(line, ".bucket", upper), count)
    return {key: {second: float(value) for second, value in points.items()} for key, points in found.items()}
