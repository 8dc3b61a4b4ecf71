# SPDX-License-Identifier: Apache-2.0
"""All receivers at once, and what each of them does to names that arrive at it."""

import math
import re

from agent import Unavailable as NoAgent, config_of, require_agent
from carbon import Carbon
from receiver import Unavailable
from receivers import CollectorStatsd, Collectd, StatsdExporter, VictoriaMetrics
from statsd import Statsd

INTERVAL_S = 2  # a second more than Carbon's step


def statsd_exporter_series(key):
    """It keeps no dots in names, and none in those of tags."""
    name, tags = key
    return re.sub(r"[^\w:]", "_", name), tuple(sorted((re.sub(r"\W", "_", tag), value) for tag, value in tags))


def by_second(points, want):
    """{series: {second: value}} of {series: [(second, value)...]}.

    The last push may share its second with the one before. Carbon keeps the later value; VictoriaMetrics keeps both, in no
    order: then that which is wanted counts, if it is among them. It also rounds to 12 digits.
    """
    found = {}
    for key, pairs in points.items():
        found[key] = dict(pairs)
        for at, value in pairs:
            wanted = want.get(key, {}).get(at)
            if wanted is not None and math.isclose(value, wanted, rel_tol=1e-11):
                found[key][at] = wanted
    return found


def assert_held_to_127_bytes(test, have, want):
    """Of max_name_size = 127B: a longer name is cut and ends in a hash; so does that of a histogram, one of whose lines would be."""
    cut = {key: value for key, value in have.items() if key not in want}
    long = {key: value for key, value in want.items() if key not in have}
    test.assertEqual({key: value for key, value in have.items() if key in want}, {key: value for key, value in want.items() if key in have})
    test.assertEqual(sorted(cut.values()), sorted(long.values()))
    test.assertEqual([name for name, _ in cut if len(name) > 127 or not re.search(r"_[0-9a-f]{8}", name)], [])
    test.assertEqual([name for name, _ in long if len(name) < 127 - 64], [])


def carbon_series_of_statsd(key):
    return f"stats.counters.{key[0]}.count", key[1]


class Rig:
    """All receivers and how the agent is told of each: name: (receiver, keys of the section)."""

    def __init__(self, stack):
        start = stack.enter_context
        self.behind = start(Carbon())
        statsd, exporter, collector = start(Statsd(carbon=self.behind, flush_s=2)), start(StatsdExporter(unix=True)), start(CollectorStatsd())
        carbon, victoria = start(Carbon()), start(VictoriaMetrics())
        self.ways = {
            "statsd-graphite": (statsd, {"type": "statsd", "dialect": "graphite"}),
            "statsd-plain": (start(Statsd()), {"type": "statsd", "dialect": "plain"}),
            "exporter-dogstatsd": (exporter, {"type": "statsd", "dialect": "dogstatsd"}),
            "exporter-influx": (start(StatsdExporter()), {"type": "statsd", "dialect": "influx"}),
            "exporter-distribution": (start(StatsdExporter()), {"type": "statsd", "dialect": "dogstatsd", "histogram": "distribution"}),
            "collector-dogstatsd": (collector, {"type": "statsd", "dialect": "dogstatsd"}),
            "collector-timer": (start(CollectorStatsd(unix=True)), {"type": "statsd", "dialect": "dogstatsd", "histogram": "timer"}),
            "collectd": (start(Collectd()), {"type": "statsd", "dialect": "plain", "max_name_size": "127B"}),
            "carbon-dotted": (carbon, {"type": "graphite", "dialect": "dotted"}),
            "carbon-tagged": (carbon, {"type": "graphite", "dialect": "tagged"}),
            "victoria-dotted": (victoria, {"type": "graphite", "dialect": "dotted"}),
            "victoria-tagged": (victoria, {"type": "graphite", "dialect": "tagged"}),
        }

    def config(self, lines_path, more=""):
        return config_of(f"{INTERVAL_S}s", lines_path, {
            name: {"endpoint": receiver.endpoint, **keys} for name, (receiver, keys) in self.ways.items()}, more)

    def receivers(self):
        return list({id(receiver): receiver for receiver, _ in self.ways.values()}.values())


def lacking():
    """What this machine has not, or None."""
    try:
        require_agent()
        for make in (Statsd, StatsdExporter, CollectorStatsd, Collectd, Carbon, VictoriaMetrics):
            make().__exit__()
    except (NoAgent, Unavailable) as missing:
        return missing
    return None
