# SPDX-License-Identifier: Apache-2.0
"""The agent as a test runs it: `bpfpush run --config FILE`, ready when it says READY=1."""

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import json_lines
import patience
import rights
from patience import PATIENCE_S

BPFPUSH = os.environ.get("BPFPUSH") or os.path.realpath(
    os.path.join(os.path.dirname(__file__), "..", "..", "build", "bpfpush"))


HOST = "vm1.example.com"  # what it calls the machine

# For agents that are compared with each other: keys of [agent] that give room to all that runs meanwhile, but for units of
# tests of scale. A key without room is counted without its name, and each agent finds no room for another one.
ROOMY = "series_limit = 50000\nunits = 1000\nexclude_units = bpfpush-test-* /bpfpush-test-*\n"


class Unavailable(Exception):
    """The agent cannot be run here; the text says what is lacking."""


def require_agent():
    if not os.access(BPFPUSH, os.X_OK):
        raise Unavailable(f"{os.path.basename(BPFPUSH)} is not built")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Unavailable("the kernel has no BTF (/sys/kernel/btf/vmlinux)")
    lacking = rights.bpf_refusal() or rights.cgroup_refusal(cgroup2_mount())
    if lacking:
        raise Unavailable(f"needs {lacking}")


def cgroup2_mount():
    with open("/proc/mounts", encoding="ascii") as mounts:
        return next(fields[1] for fields in map(str.split, mounts) if fields[2] == "cgroup2")


def config_of(interval, lines_path, exporters, more=""):
    """A configuration with a json exporter called "lines" and {name: {key: value}} beside it."""
    sections = {"lines": {"type": "json", "path": lines_path}, **exporters}
    text = f"{more}[agent]\ninterval = {interval}\n{ROOMY}\n[resource]\nhost.name = {HOST}\n"
    return text + "".join(f"\n[exporter {name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
                          for name, keys in sections.items())


def count_once(directory, *command):
    """The lines of `bpfpush once --format=json` while that command runs, as text."""
    path = os.path.join(directory, "once.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write("[agent]\n" + ROOMY)
    done = subprocess.run([BPFPUSH, "once", f"--config={path}", "--format=json", "--whole-machine", "--", *command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise RuntimeError(f"once ended with status {done.returncode}:\n{done.stderr}")
    return [line for line in done.stdout.split("\n") if line]  # names may hold what splitlines() takes for an end


class Follower:
    """Reads a growing file of JSON lines once, for those who wait for something in it."""

    def __init__(self, path):
        self.path, self.place = path, 0

    def lines(self):
        """Those that have come since the last call."""
        lines, self.place = json_lines.read_on(self.path, self.place)
        return json_lines.points(lines)

    def wait_end(self, cgroup):
        """The time of the first collection without any line of a cgroup that has been removed."""
        seen_ns = 0

        def end_ns():
            nonlocal seen_ns
            for line in self.lines():
                if line["attributes"].get("process.linux.cgroup") == cgroup:
                    seen_ns = line["time_ns"]
                elif seen_ns and line["time_ns"] > seen_ns and line["collector"] == "self":
                    return line["time_ns"]  # bpfpush's own come last
            return None
        return patience.wait(end_ns, f"series of {cgroup} are still exported", 0.1)

    def wait_collections(self, n):
        """Until there are lines of so many more. The first may have begun before this call, and the last may not be whole."""
        self.lines()
        times = set()

        def are_enough():
            times.update(line["time_ns"] for line in self.lines())
            return len(times) >= n
        patience.wait(are_enough, f"{n} collections", 0.1)


class Sleepers:
    """`with Sleepers() as sleepers:` measures how late this machine is by itself: a thread on each CPU sleeps again and again."""

    PAUSE_S = 0.02

    def __init__(self):
        self.is_over = False
        self.most_s = dict.fromkeys(os.sched_getaffinity(0), 0)
        self.threads = [threading.Thread(target=self.sleep, args=(cpu,), daemon=True) for cpu in self.most_s]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()

    def sleep(self, cpu):
        os.sched_setaffinity(0, {cpu})  # of this thread
        while not self.is_over:
            before = time.monotonic()
            time.sleep(self.PAUSE_S)
            self.most_s[cpu] = max(self.most_s[cpu], time.monotonic() - before - self.PAUSE_S)

    def late_s(self):
        """The most by which one slept too long."""
        return max(self.most_s.values())


class Agent:
    """`with Agent(CONFIG_TEXT) as agent:` has it counting; agent.stop() collects and pushes once more.

    prefix: a command that runs it, and becomes it by exec.
    """

    def __init__(self, config, prefix=()):
        self.directory = tempfile.TemporaryDirectory(prefix="bpfpush-agent.")
        self.config = os.path.join(self.directory.name, "bpfpush.conf")
        self.log = os.path.join(self.directory.name, "log")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(config)
        self.prefix = list(prefix)
        self.process = None
        self.notified = []

    def __enter__(self):
        path = os.path.join(self.directory.name, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, open(self.log, "wb") as log:
            notify.bind(path)
            self.process = subprocess.Popen([*self.prefix, BPFPUSH, "run", "--config", self.config], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env={**os.environ, "NOTIFY_SOCKET": path})
            try:
                self.wait_ready(notify)
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.directory.cleanup()

    def wait_ready(self, notify):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if select.select([notify], [], [], 0.05)[0]:
                self.notified += notify.recv(65536).decode().split("\n")
                if "READY=1" in self.notified:
                    return
            elif self.process.poll() is not None:
                raise RuntimeError(f"the agent ended with status {self.process.returncode}:\n{self.log_text()}")
        raise TimeoutError(f"no READY=1 within {PATIENCE_S} s:\n{self.log_text()}")

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self):
        """SIGTERM and wait; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def memory_bytes(self):
        """What it has resident now, and had at most."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))

    def waited_ns(self):
        """How long its main thread has waited for a CPU in all."""
        with open(f"/proc/{self.process.pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1])
