# SPDX-License-Identifier: Apache-2.0
"""Workloads that count themselves in a Machine, and what receivers of this machine were told about them.

    with Counting() as counting:
        counting.start(machine, directory)
        ...
        counting.finish()
        counting.differences()        [] if nothing is uncounted and nothing was counted twice

A unit of the container makes calls at a steady rate. Next to it, cgroups like those of units come and go, each with one
process that makes a few calls.
"""

import collections
import contextlib
import json
import os
import struct
import subprocess
import sys
import threading
import time

from machine import PATIENCE_S

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.append(os.path.join(HERE, "..", "peers"))
import json_lines
from agent import HOST
from collector import Collector, points_of
from expected import Naming
from statsd import Statsd

BUILD = os.environ.get("BUILD_DIR") or os.path.realpath(os.path.join(HERE, "..", "..", "build"))
WORKLOADS = os.path.join(BUILD, "tests", "bpf")
METRIC, UNIT, CALL = "bpfpush.syscalls", "systemd.unit.name", "bpfpush.syscall.name"
CALLS = ("timer_getoverrun", "ioprio_get")  # in the order in which the workloads' figures have them
ERRORS = {"timer_getoverrun": {"error.type": "EINVAL"}, "ioprio_get": {}}
CHANNELS = CUMULATIVE, DELTA = range(2)  # of the Collector

CONFIG = """\
[agent]
interval = 1s
include_units = {units}
[resource]
host.name = {host}
[exporter cumulative]
type = otlp
endpoint = {cumulative}
retry_max = 1s
[exporter delta]
type = otlp
temporality = delta
endpoint = {delta}
retry_max = 1s
[exporter statsd]
type = statsd
dialect = graphite
endpoint = {statsd}
"""

SERVICE = """\
[Unit]
Description=calls that count themselves
After=bpfpush.service
[Service]
ExecStart=/workloads/workload-steady /counts/steady
[Install]
WantedBy=multi-user.target
"""


class Work:
    """The workloads alone."""

    def __init__(self):
        self.unit, self.churned = f"counted-{os.getpid()}.service", f"churned-{os.getpid()}"
        self.units = f"{self.unit} {self.churned}-*"  # of which series are told
        self.counts = self.machine = None
        self.expected = collections.Counter()  # {(unit, call): how many} of what came and went
        self.is_over, self.thread, self.broken = threading.Event(), None, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over.set()

    def start(self, machine, counts):
        """counts: a directory of this machine, which is /counts in the container, where WORKLOADS are /workloads."""
        self.machine, self.counts = machine, counts
        machine.run(f"cat >/etc/systemd/system/{self.unit} <<'END'\n{SERVICE}END\nsystemctl daemon-reload; systemctl enable --now {self.unit}")
        self.resume()

    def resume(self):
        """Units come and go again."""
        self.is_over.clear()
        self.thread = threading.Thread(target=self.churn)
        self.thread.start()

    def pause(self):
        """No more units come and go."""
        self.is_over.set()
        self.thread.join(PATIENCE_S)
        if self.broken:
            raise self.broken

    def churn(self):
        """Ten units in a second, in a cgroup of the container."""
        with open(f"/proc/{self.machine.first_process()}/cgroup", encoding="ascii") as file:
            inside = next(line[3:] for line in file.read().split("\n") if line.startswith("0::"))
        with open("/proc/mounts", encoding="ascii") as mounts:
            root = next(fields[1] for fields in map(str.split, mounts) if fields[2] == "cgroup2")
        try:
            while not self.is_over.is_set():
                parent = os.path.join(root + os.path.dirname(inside), f"{self.churned}-{time.monotonic_ns()}")
                os.mkdir(parent)
                said = subprocess.run([os.path.join(WORKLOADS, "workload-units"), "churn", parent, "10", "10"], stdin=subprocess.DEVNULL,
                                      capture_output=True, check=True).stdout
                os.rmdir(parent)
                figures = json.loads(said)
                for call in CALLS:
                    self.expected.update({(f"{os.path.basename(parent)}-{i:05d}.service", call): n for i, n in enumerate(figures[call])})
        except (OSError, subprocess.SubprocessError) as error:
            self.broken = error

    def end(self):
        """All of them end."""
        self.pause()
        self.machine.run(f"systemctl stop {self.unit}")

    def steady(self):
        """{call: how often the steady workload has made it by now}"""
        with open(os.path.join(self.counts, "steady"), "rb") as file:
            return dict(zip(CALLS, struct.unpack("=2Q", file.read())))

    def made(self):
        """{(unit, call): how many}, of all."""
        return {**{(self.unit, call): n for call, n in self.steady().items()}, **self.expected}


class Counting(Work):
    def __init__(self):
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.collector = self.statsd = None
        self.falls = set()  # texts: totals that fell
        # Of each channel: what has been read so far. Hundreds of megabytes come, and are read once.
        self.told = [collections.defaultdict(list) for _ in CHANNELS]
        self.places, self.last_ns = [0 for _ in CHANNELS], [0 for _ in CHANNELS]

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.collector = stack.enter_context(Collector(channels=2))
            self.statsd = stack.enter_context(Statsd())
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        super().__exit__(*error)
        self.stack.close()

    def config(self):
        urls = self.collector.otlp_urls
        return CONFIG.format(units=self.units, host=HOST, cumulative=urls[CUMULATIVE], delta=urls[DELTA], statsd=self.statsd.endpoint)

    def finish(self):
        """The workloads end, then the agent, and all that it pushed has arrived."""
        self.end()
        self.machine.run(f"systemctl stop bpfpush; rm /etc/systemd/system/{self.unit}")
        self.statsd.settle()

    # What receivers were told: {(unit, call): ...}.

    def points(self, channel):
        """{(unit, call): [(start, time, value)...]}; the value is None where the series ended."""
        lines, self.places[channel] = json_lines.read_on(self.collector.outputs[channel], self.places[channel])
        for request in json_lines.points(lines):
            for point in points_of(request):
                self.last_ns[channel], attributes = point["time_ns"], point["attributes"]
                if point["name"] == METRIC and attributes.get(CALL) in CALLS and UNIT in attributes:
                    self.told[channel][attributes[UNIT], attributes[CALL]].append((point["start_time_ns"], point["time_ns"], point["value"]))
        return self.told[channel]

    def starts(self, unit=None):
        """The start times of a unit's series, in the order in which they came."""
        return list(dict.fromkeys(start for (name, _), points in self.points(CUMULATIVE).items() if name == (unit or self.unit)
                                  for start, _, _ in points))

    def cumulative(self):
        """The last totals of all start times, added up. A total that falls is one of self.falls; what a request that came twice said
        counts once (as in delta())."""
        found = {}
        for key, points in self.points(CUMULATIVE).items():
            last = {}
            for start, at, value in dict.fromkeys(points):
                if value is None:
                    continue
                if value < last.get(start, (0, 0))[1] or at < last.get(start, (0, 0))[0]:
                    self.falls.add(f"{' '.join(key)} fell from {last.get(start)} to {(at, value)}")
                last[start] = at, value
            found[key] = sum(value for _, value in last.values())
        return found

    def delta(self):
        """What a request that came twice said counts once: an answer may be lost with the agent that it was for."""
        return {key: sum(value for _, _, value in {*points} if value) for key, points in self.points(DELTA).items()}

    def statsd_totals(self):
        totals, naming = self.statsd.totals(), Naming("graphite")
        keys = {*self.expected, *((self.unit, call) for call in CALLS)}
        names = {key: naming.series({"name": METRIC, "unit": "{call}", "attributes": {UNIT: key[0], CALL: key[1], **ERRORS[key[1]]}})
                 for key in keys}
        return {key: totals[name] for key, name in names.items() if name in totals}

    def wait_delivered(self, timeout_s=PATIENCE_S):
        """Until a collection from now on has arrived at the Collector, and later lines at StatsD."""
        now_ns, before = time.time_ns(), self.statsd_totals()
        deadline = time.monotonic() + timeout_s
        while self.last_ns[CUMULATIVE] <= now_ns:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the Collector gets nothing for {timeout_s} s")
            time.sleep(0.1)
            self.points(CUMULATIVE)
        while self.statsd_totals() == before:
            if time.monotonic() > deadline:
                raise TimeoutError(f"StatsD gets nothing for {timeout_s} s")
            time.sleep(0.1)

    def differences(self):
        """What receivers were told that is not what the workloads did, as texts. Call finish() first."""
        told = {"cumulative": self.cumulative(), "delta": self.delta(), "statsd": self.statsd_totals()}
        wrong = [f"{way}: {' '.join(key)}: told {found.get(key)}, made {n}" for way, found in told.items()
                 for key, n in self.made().items() if found.get(key) != n] + sorted(self.falls)
        return wrong and [f"statsd did not read {self.statsd.dropped()} datagrams in time", *wrong]
