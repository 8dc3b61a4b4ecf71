# SPDX-License-Identifier: Apache-2.0
"""The real Carbon: carbon-cache, sent lines over TCP, and the whisper files that it leaves.

Everything is kept for an hour, a second a point: of two points in one second the later one stays. The file of a tagged
series is named by a hash, as Carbon has it by default; what it stands for is read from Carbon's log.
"""

import hashlib
import importlib
import os
import re
import sys
import time

from receiver import Receiver, Unavailable, installed

CONFIG = """\
[cache]
STORAGE_DIR = {directory}
CONF_DIR = {directory}
LOG_DIR = {directory}/logs
LOCAL_DATA_DIR = {directory}/whisper
PID_DIR = {directory}
USER =
LINE_RECEIVER_INTERFACE = {host}
LINE_RECEIVER_PORT = {port}
PICKLE_RECEIVER_PORT = 0
CACHE_QUERY_PORT = 0
MAX_CACHE_SIZE = inf
CARBON_METRIC_INTERVAL = 0
MAX_CREATES_PER_MINUTE = inf
MAX_UPDATES_PER_SECOND = inf
CACHE_WRITE_STRATEGY = naive
WHISPER_AUTOFLUSH = True
LOG_UPDATES = True
LOG_CREATES = True
ENABLE_LOGROTATION = False
ENABLE_TAGS = {graphite_web_enabled}
GRAPHITE_URL = {graphite_web}
TAG_UPDATE_INTERVAL = 1
"""

SCHEMAS = """\
[all]
pattern = .*
retentions = {retentions}
"""


def packages_of(home):
    return os.path.join(home, "usr/lib/python3/dist-packages")


def load_whisper():
    """The module of Debian's python3-whisper that came with Carbon, for whatever Python runs the test."""
    where = packages_of(installed("carbon"))
    if where not in sys.path:
        sys.path.append(where)
    return importlib.import_module("whisper")


class Carbon(Receiver):
    name = "carbon"
    protocol = "tcp"

    def __init__(self, host="127.0.0.1", port=None, retentions="1s:1h", graphite_web=None):
        if not os.path.isdir("/usr/lib/python3/dist-packages/twisted"):
            raise Unavailable("Carbon needs Twisted: Debian's python3-twisted")
        super().__init__(host, port)
        self.retentions, self.graphite_web = retentions, graphite_web
        self.whisper = load_whisper()

    def write_config(self):
        os.makedirs(self.path("whisper"), exist_ok=True)
        self.write("carbon.conf", CONFIG.format(
            directory=self.directory, host=self.host, port=self.port,
            graphite_web_enabled=bool(self.graphite_web), graphite_web=self.graphite_web or "http://127.0.0.1:1"))
        self.write("storage-schemas.conf", SCHEMAS.format(retentions=self.retentions))

    def command(self):
        return ["/usr/bin/python3", os.path.join(self.home, "usr/bin/carbon-cache"), f"--config={self.path('carbon.conf')}",
                "--nodaemon", f"--pidfile={self.path('pid')}", "start"]

    def environment(self):
        return {"PYTHONPATH": packages_of(self.home), "PYTHONDONTWRITEBYTECODE": "1"}

    def log_text(self):
        text = super().log_text()
        for directory, _, files in sorted(os.walk(self.path("logs"))):
            for name in sorted(files):
                with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
                    text += file.read()
        return text

    def files(self):
        """The whisper files, relative to their directory."""
        top = self.path("whisper")
        return sorted(os.path.relpath(os.path.join(directory, name), top) for directory, _, names in os.walk(top) for name in names)

    def series_of_files(self):
        """{file: its series}"""
        files = self.files()  # before the log, which names each file before it is made
        created = re.findall(r"\[creates\] creating database metric (.+) \(archive=", self.log_text())
        by_hash = {hashlib.sha256(path.encode()).hexdigest(): path for path in created}
        found = {}
        for file in files:
            path = file.removesuffix(".wsp")
            if path.startswith("_tagged/"):
                path = by_hash[os.path.basename(path)]
            else:
                path = path.replace("/", ".")
            name, *tags = path.split(";")
            found[file] = name, tuple(sorted(tuple(tag.split("=", 1)) for tag in tags))
        return found

    def points(self):
        """{series: [(time in s, value)...]} of the last hour, without the seconds that hold nothing."""
        found, now = {}, int(time.time())
        for file, key in self.series_of_files().items():
            window = self.whisper.fetch(os.path.join(self.directory, "whisper", file), now - 3590, now + 5, now)
            if window:
                (start, end, step), values = window
                found[key] = [(at, value) for at, value in zip(range(start, end, step), values) if value is not None]
        return found

    def totals(self):
        """{series: sum of all its points}."""
        return {key: sum(value for _, value in points) for key, points in self.points().items()}

    def bad_lines(self):
        return self.log_text().count("invalid line received")
