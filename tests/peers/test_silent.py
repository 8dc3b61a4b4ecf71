#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nobody answers: two dead name servers, an HTTP server and a Graphite that hang, a unix socket that nobody reads.

The agent must not notice: it collects on time, tells the watchdog on time and ends on time.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from contextlib import ExitStack

from agent import BPFPUSH, Follower, Sleepers, Unavailable, config_of, require_agent
from patience import PATIENCE_S

INTERVAL_S, COLLECTIONS, SHUTDOWN_S, WATCHDOG_S, CONNECT_S, RELOADS = 2, 7, 6, 4, 15, 2
NAME_SERVERS = ("127.77.0.1", "127.77.0.2")
LEAST_LATE_S = 0.1 * INTERVAL_S

# A mount namespace of its own, whose resolv.conf names the dead servers, and whose hosts file knows nothing.
ALONE = ["unshare", "--mount", "sh", "-c",
         'mount --bind "$1/resolv.conf" /etc/resolv.conf && mount --bind "$1/hosts" /etc/hosts && shift && exec "$@"', "sh"]


class Silence(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with ExitStack() as stack:
            # In memory: a disk that other work keeps busy makes a writer wait for seconds, which is no receiver's fault.
            place = tempfile.TemporaryDirectory(prefix="bpfpush-silent.", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
            cls.run_agent(stack, stack.enter_context(place))

    @classmethod
    def run_agent(cls, stack, directory):
        def listen(family, kind, address, backlog=None):
            one = stack.enter_context(socket.socket(family, kind))
            one.bind(address)
            if backlog is not None:
                one.listen(backlog)
            return one

        for address in NAME_SERVERS:
            listen(socket.AF_INET, socket.SOCK_DGRAM, (address, 53))
        hanging = listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0), 16)
        port = hanging.getsockname()[1]
        listen(socket.AF_UNIX, socket.SOCK_DGRAM, f"{directory}/unread")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as other, contextlib.suppress(BlockingIOError):
            other.connect(f"{directory}/unread")
            for _ in range(100000):  # however little the agent sends, it finds no room
                other.send(b"x")
        notify = listen(socket.AF_UNIX, socket.SOCK_DGRAM, f"{directory}/notify")
        for name, text in (("resolv.conf", "".join(f"nameserver {one}\n" for one in NAME_SERVERS)), ("hosts", "")):
            with open(f"{directory}/{name}", "w", encoding="ascii") as file:
                file.write(text)
        lines = f"{directory}/lines.json"
        exporters = {
            "otlp-name": {"type": "otlp", "endpoint": "http://receiver.example:4318", "timeout": "3s"},
            "otlp-hangs": {"type": "otlp", "endpoint": f"http://127.0.0.1:{port}", "timeout": "3s"},
            "graphite-name": {"type": "graphite", "endpoint": "receiver.example"},
            "graphite-hangs": {"type": "graphite", "endpoint": f"127.0.0.1:{port}"},
            "statsd-name": {"type": "statsd", "endpoint": "receiver.example"},
            "statsd-unread": {"type": "statsd", "endpoint": f"unix:{directory}/unread"},
        }
        with open(f"{directory}/conf", "w", encoding="ascii") as file:
            file.write(config_of(f"{INTERVAL_S}s\nshutdown_timeout = {SHUTDOWN_S}s", lines, exporters))
        sleepers = stack.enter_context(Sleepers())
        with open(f"{directory}/log", "w", encoding="ascii") as log:
            agent = subprocess.Popen([*ALONE, directory, BPFPUSH, "run", f"--config={directory}/conf"], stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, env={**os.environ, "NOTIFY_SOCKET": f"{directory}/notify",
                                                                  "WATCHDOG_USEC": str(WATCHDOG_S * 10**6)})
        try:
            began = time.monotonic()
            check = subprocess.Popen([*ALONE, directory, BPFPUSH, "check", "--connect", f"--config={directory}/conf"],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            said = []
            waiter = threading.Thread(target=lambda: said.extend((check.communicate()[0], time.monotonic() - began)))
            waiter.start()
            cls.follower, cls.times = Follower(lines), set()
            cls.alive = cls.watch(agent, notify)
            cls.waited_s = cls.run_delay_s(agent)
            waiter.join(PATIENCE_S)
            (cls.said, cls.checked_s), cls.check_status = said, check.returncode
            cls.times = sorted(cls.times | {line["time_ns"] for line in cls.follower.lines()})
            cls.reloads = [cls.reload_s(agent, notify) for _ in range(RELOADS)]
            stopped, waited_s = time.monotonic(), cls.run_delay_s(agent)
            agent.send_signal(signal.SIGTERM)
            os.waitid(os.P_PID, agent.pid, os.WEXITED | os.WNOWAIT)
            cls.ended_s = time.monotonic() - stopped - (cls.run_delay_s(agent) - waited_s)
            cls.status = agent.wait()
        finally:
            agent.kill()
            agent.wait()
            with open(f"{directory}/log", encoding="utf-8") as file:
                cls.log = file.read()
        cls.late_s = sleepers.late_s() + cls.waited_s

    @staticmethod
    def reload_s(agent, notify):
        """How long a reload takes, and what the status is soon after."""
        began, took_s, deadline = time.monotonic(), None, time.monotonic() + PATIENCE_S
        agent.send_signal(signal.SIGHUP)
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                text = notify.recv(65536).decode()
                if "READY=1" in text:
                    took_s = time.monotonic() - began
                if took_s and "series, read in" in text:
                    return took_s, text
        raise RuntimeError("the reload does not end")

    @staticmethod
    def run_delay_s(agent):
        """How long its main thread has waited for a CPU, even if it has ended."""
        with open(f"/proc/{agent.pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9

    @classmethod
    def watch(cls, agent, notify):
        """When it said that it is alive, from READY=1 to the last collection that is waited for."""
        alive, deadline = [], time.monotonic() + PATIENCE_S
        notify.settimeout(0.1)
        while len(cls.times) < COLLECTIONS:
            cls.times |= {line["time_ns"] for line in cls.follower.lines()}
            if time.monotonic() > deadline or agent.poll() is not None:
                raise RuntimeError("the agent does not collect")
            try:
                text = notify.recv(65536).decode().split("\n")
            except TimeoutError:
                continue
            if "READY=1" in text or (alive and "WATCHDOG=1" in text):
                alive.append(time.monotonic())
        return [*alive, time.monotonic()]

    def test_collections_are_on_time(self):
        gaps = [(after - before) / 1e9 for before, after in zip(self.times, self.times[1:])]
        self.assertGreaterEqual(len(gaps), COLLECTIONS - 2)
        late = [gap for gap in gaps if abs(gap - INTERVAL_S) > LEAST_LATE_S + self.late_s]
        self.assertEqual(late, [], f"of {gaps}; the machine itself was up to {self.late_s:.3f} s late\n{self.log}")

    def test_the_watchdog_is_told_on_time(self):
        gaps = [after - before for before, after in zip(self.alive, self.alive[1:])]
        self.assertGreater(len(gaps), 3)
        self.assertLess(max(gaps), WATCHDOG_S + self.late_s, gaps)

    def test_it_ends_on_time(self):
        self.assertEqual(self.status, 0, self.log)
        self.assertLess(self.ended_s, SHUTDOWN_S + 1 + self.late_s)

    def test_a_reload_does_not_wait_for_who_never_answers(self):
        for took_s, _ in self.reloads:
            self.assertLess(took_s, SHUTDOWN_S - 1 + self.late_s, self.log)

    def test_who_fails_is_known_right_after_a_reload(self):
        for _, status in self.reloads:
            for name in ("otlp-name", "otlp-hangs", "statsd-unread"):
                self.assertRegex(status, f"; {name}: failing for ")

    def test_to_try_to_connect_ends_on_time_too(self):
        self.assertEqual(self.check_status, 1, self.said)
        self.assertLess(self.checked_s, CONNECT_S + 1 + self.late_s)
        found = dict(re.findall(r"^exporter (\S+): .*(works|fails|not tried)", self.said, re.MULTILINE))
        # Where nobody reads, the kernel still takes a connection.
        self.assertEqual(found, {"lines": "not tried", "otlp-name": "fails", "otlp-hangs": "fails", "graphite-name": "fails",
                                 "graphite-hangs": "works", "statsd-name": "fails", "statsd-unread": "works"})

    def test_the_exporters_did_wait_in_vain(self):
        for name, words in {"otlp-name": "cannot look up receiver.example: no answer in time", "otlp-hangs": "timed out after .*"}.items():
            self.assertRegex(self.log, f"exporter {name}: .*{words}; kept for another attempt")


if __name__ == "__main__":
    try:
        require_agent()
        if os.geteuid():
            raise Unavailable("needs root, for a resolv.conf of its own")
    except Unavailable as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
