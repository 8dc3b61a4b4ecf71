# SPDX-License-Identifier: Apache-2.0
"""The real statsd (npm), read from its console backend; Statsd(carbon=CARBON) writes to a Carbon as well.

The console backend prints one JavaScript object a flush, in the notation of Node's util.inspect().
"""

import os
import re
import shutil

from collector import free_ports
from receiver import Receiver, Unavailable

CONFIG = """\
{{
  servers: [ {{ server: "./servers/udp", address: "{host}", port: {port} }} ],
  mgmt_address: "127.0.0.1", mgmt_port: {management_port},
  flushInterval: {flush_ms},
  deleteCounters: true, deleteTimers: true, deleteSets: true,
  automaticConfigReload: false,
  {graphite}
  backends: [ {backends} ]
}}
"""

GRAPHITE = """graphiteHost: "{host}", graphitePort: {port}, graphite: {{ legacyNamespace: false }},"""

TOKEN = re.compile(r"""\s*(?:(?P<open>[{\[])|(?P<close>[}\]])|(?P<mark>[:,])|(?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|"""
                   r"(?P<more>\.\.\. \d+ more items?)|(?P<word>[^\s{}\[\]:,]+))")


def parse_value(token, tokens):
    kind, text = token
    if kind == "open":
        return parse_object(tokens) if text == "{" else parse_array(tokens)
    if kind == "text":
        return text[1:-1]
    try:
        return float(text)
    except ValueError:
        return text


def parse_object(tokens):
    result = {}
    for kind, text in tokens:
        if kind == "close":
            return result
        if kind in ("text", "word"):
            next(tokens)  # the colon
            result[text.strip("'\"")] = parse_value(next(tokens), tokens)
    raise ValueError("an object without an end")


def parse_array(tokens):
    result = []
    for kind, text in tokens:
        if kind == "close":
            return result
        if kind in ("open", "text", "word"):
            result.append(parse_value((kind, text), tokens))
    raise ValueError("an array without an end")


def parse_inspected(text):
    """What util.inspect() printed of an object, as Python's dict; arrays of more than 100 are cut short."""
    tokens = ((match.lastgroup, match.group(match.lastgroup)) for match in TOKEN.finditer(text))
    return parse_value(next(tokens), tokens)


def series_of(name):
    """statsd keeps tags in the name, in Graphite's notation."""
    name, *tags = name.split(";")
    return name, tuple(sorted(tuple(tag.split("=", 1)) for tag in tags))


class Statsd(Receiver):
    """Counters and gauges by their names; of timers and sets NAME:count, and of timers NAME:sum."""

    name = "statsd"

    def __init__(self, host="127.0.0.1", port=None, carbon=None, flush_s=1.0):
        if not shutil.which("node"):
            raise Unavailable("statsd needs Node.js: Debian's nodejs")
        super().__init__(host, port)
        self.carbon, self.flush_s = carbon, flush_s
        self.parsed = []

    def write_config(self):
        graphite = GRAPHITE.format(host=self.carbon.host, port=self.carbon.port) if self.carbon else ""
        backends = ['"./backends/console"'] + (['"./backends/graphite"'] if self.carbon else [])
        self.write("config.js", CONFIG.format(host=self.host, port=self.port, management_port=free_ports(1)[0],
                                              flush_ms=int(self.flush_s * 1000), graphite=graphite, backends=", ".join(backends)))

    def command(self):
        return ["node", os.path.join(self.home, "node_modules/statsd/stats.js"), self.path("config.js")]

    def keep_totals(self):
        self.settle()

    def flushes(self):
        """What each flush printed; the last one only if it is whole."""
        parts = re.split(r"^Flushing stats at .*\n", self.log_text(), flags=re.MULTILINE)[1:]
        self.parsed += [parse_inspected(part) for part in parts[len(self.parsed):] if re.search(r"^\}$", part, re.MULTILINE)]
        return self.parsed

    def totals(self):
        found = {}
        for flush in self.flushes():
            for name, value in flush["counters"].items():
                if not name.startswith("statsd."):
                    found[series_of(name)] = found.get(series_of(name), 0) + value
            for name, data in flush["timer_data"].items():
                name, tags = series_of(name)
                for member in ("count", "sum"):
                    key = f"{name}:{member}", tags
                    found[key] = found.get(key, 0) + (data.get(member, 0) if isinstance(data, dict) else 0)
            for name, values in flush["sets"].items():
                name, tags = series_of(name)
                found[f"{name}:count", tags] = found.get((f"{name}:count", tags), 0) + len(values)
            found.update((series_of(name), value) for name, value in flush["gauges"].items()
                         if not name.startswith("statsd."))
        return found

    def bad_lines(self):
        return int(sum(flush["counters"].get("statsd.bad_lines_seen", 0) for flush in self.flushes()))
