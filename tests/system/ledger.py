# SPDX-License-Identifier: Apache-2.0
"""What the ledgers of chaos_receiver.py say about each series: OTLP bodies decoded, each distinct one counted once."""

import collections
import gzip
import hashlib
import math
import struct

from chaos_receiver import ACKED, CHANNELS, DOUBTED, LOST, REFUSED, read_ledgers

GAUGE, SUM, HISTOGRAM = DATA = 5, 7, 9  # fields of Metric
NO_VALUE = 1
MONOTONIC = 3  # the field of a sum
INFLIGHT = b"otel.sdk.exporter.metric_data_point.inflight"


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, content) of each field of a message; what is of a fixed size stays bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
            continue
        size, at = (8, at) if kind == 1 else varint(data, at)
        yield tag >> 3, data[at:at + size]
        at += size


def all_of(data, number):
    return [content for found, content in fields(data) if found == number]


def numbers(kind, data):
    return struct.unpack(f"<{len(data) // 8}{kind}", data)


def attribute(item):
    found = dict(fields(item))
    ((kind, value),) = fields(found[2])
    return found[1].decode(), value.decode() if kind == 1 else bool(value) if kind == 2 else value


class Decoder:
    def __init__(self):
        self.series = {}  # {(name, encoded attributes): (name, attributes)}: the same words come again and again
        self.n_points = self.time_ns = 0  # of all kinds; of the last one
        self.inflight = {}  # {(name, attributes): (time, points)}: what was not acknowledged when that was collected

    def key(self, name, items):
        encoded = name, *items
        if encoded not in self.series:
            self.series[encoded] = name.decode(), tuple(sorted(map(attribute, items)))
        return self.series[encoded]

    def points(self, body):
        """(series, start, time, values) of each sum that only grows and each histogram, where it has a value."""
        for resource in all_of(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body, 1):
            for scope in all_of(resource, 2):
                for metric in all_of(scope, 2):
                    yield from self.of_metric(list(fields(metric)))

    def of_metric(self, content):
        name = next(value for number, value in content if number == 1)
        for kind, data in content:
            if kind not in DATA:
                continue
            is_level = kind == GAUGE or (kind == SUM and not any(number == MONOTONIC for number, _ in fields(data)))
            for point in all_of(data, 1):
                self.n_points += 1
                (self.time_ns,) = numbers("Q", all_of(point, 3)[0])
                if not is_level:
                    yield from self.point(name, kind, point)
                elif name == INFLIGHT:
                    self.inflight.update((series, (time_ns, values[0])) for series, _, time_ns, values in self.point(name, kind, point))

    def point(self, name, kind, point):
        found, items = {}, []
        for number, content in fields(point):
            if number == kind:  # attributes have the numbers 7 and 9, too
                items.append(content)
            else:
                found[number] = content
        if found.get(8 if kind == SUM else 10, 0) & NO_VALUE:
            return
        if kind == SUM:
            values = numbers("q", found[6]) if 6 in found else numbers("d", found[4])
        else:
            values = (*numbers("Q", found.get(4, bytes(8))), *numbers("d", found.get(5, bytes(8))), *numbers("Q", found[6]))
        yield self.key(name, items), *numbers("Q", found[2]), *numbers("Q", found[3]), values


def add(sums, key, values):
    sums[key] = tuple(map(sum, zip(sums[key], values))) if key in sums else values


def is_close(one, other):
    """Counts are equal; sums of seconds have been rounded in each window."""
    return len(one) == len(other) and all(
        a == b or (isinstance(a, float) and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)) for a, b in zip(one, other))


class Deltas:
    """Of one exporter: the sums of bodies that were acknowledged, and of those that are in doubt."""

    def __init__(self):
        self.acked, self.doubted, self.lost = {}, {}, {}
        self.n_points = collections.Counter()  # {time of a window: points of these bodies}
        self.n_bodies = collections.Counter()
        self.last_ns = 0  # the window that came last
        self.inflight = {}  # as in Decoder

    def add(self, fates, points, n_points, time_ns):
        """A body is counted once, however often it came. A body that only was refused has come again within others. One without
        points is a question."""
        name = "acked" if ACKED in fates else "doubted" if DOUBTED in fates else "lost" if LOST in fates else None
        if not name or not n_points:
            return
        self.n_bodies[name] += 1
        for series, _, _, values in points:
            add(getattr(self, name), series, values)
        self.last_ns = time_ns
        self.n_points[self.last_ns] += n_points

    def total(self, *names):
        found = {}
        for name in names:
            for series, values in getattr(self, name).items():
                add(found, series, values)
        return found


class Totals:
    """The last totals of each start, of requests that were taken, and of those that were refused for good."""

    def __init__(self):
        self.taken, self.refused = collections.defaultdict(dict), collections.defaultdict(dict)
        self.fallen = []
        self.inflight = {}

    def add(self, fates, points, *_):
        found = self.taken if fates & {ACKED, DOUBTED} else self.refused if REFUSED in fates else None
        if found is None:
            return
        for series, start_ns, time_ns, values in points:
            before_ns, before = found[series].get(start_ns, (0, values))
            if any((a < b) == (time_ns > before_ns) and a != b for a, b in zip(values, before)):
                self.fallen.append(f"{series}: {before} at {before_ns}, {values} at {time_ns}")
            if time_ns >= before_ns:
                found[series][start_ns] = time_ns, values

    def sums(self):
        """{series: the sum of its last totals}, and how many of these were refused: none came later."""
        found, n_refused = {}, 0
        for series in {*self.taken, *self.refused}:
            taken, refused = self.taken[series], self.refused[series]
            for start_ns in {*taken, *refused}:
                last = max(taken.get(start_ns, (0,)), refused.get(start_ns, (0,)))
                n_refused += last != taken.get(start_ns)
                add(found, series, last[1])
        return found, n_refused


def read(directory):
    """{channel: Deltas or Totals}, and how many requests had which fate."""
    fates, bodies, n = collections.defaultdict(set), {}, collections.Counter()
    for channel, fate, body in read_ledgers(directory):
        key = channel, hashlib.sha1(body).digest()
        fates[key].add(fate)
        bodies.setdefault(key, body)
        n[channel, fate] += 1
    found, decoder = {channel: Totals() if channel == "totals" else Deltas() for channel in CHANNELS}, Decoder()
    for key, body in bodies.items():
        before = decoder.n_points
        points = list(decoder.points(body))
        found[key[0]].add(fates[key], points, decoder.n_points - before, decoder.time_ns)
        found[key[0]].inflight, decoder.inflight = {**found[key[0]].inflight, **decoder.inflight}, {}
    return found, n
