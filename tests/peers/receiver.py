# SPDX-License-Identifier: Apache-2.0
"""What all real receivers of StatsD and Graphite have in common; see carbon.py and receivers.py for them.

    with Carbon() as carbon:
        carbon.send("a.b 1 1700000000")
        totals = carbon.settle()          {("a.b", ()): 1.0}

A receiver runs on free loopback ports in a temporary directory with a configuration of its own. Its totals are what it
made of all that it received, over stops and starts, by series; a series is its name and its sorted tags: series("a", k="v").
"""

import concurrent.futures
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from collector import free_ports
from patience import PATIENCE_S

HERE = os.path.dirname(os.path.realpath(__file__))
LISTEN = "0A"  # the states in /proc/net/tcp and udp of a socket that can be sent to
BOUND = "07"
LOOK_S = 0.3  # between two looks at what has arrived


class Unavailable(Exception):
    """This machine lacks a receiver; the text says what to do."""


def series(name, **tags):
    return name, tuple(sorted(tags.items()))


def installed(name):
    """The directory of a receiver that tests/peers/receivers-build has made."""
    found = subprocess.run([os.path.join(HERE, "receivers-build"), "--cached", name], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable(f"{name} is not here: run tests/peers/receivers-build {name}")
    return found.stdout.strip()


def each(receivers, act):
    """{name of the receiver: act(receiver)}, all at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(receivers)) as pool:
        return dict(zip([receiver.name for receiver in receivers], pool.map(act, receivers)))


def sockets_at(host, port, protocol):
    """(state, how much waits to be read, how many datagrams were dropped) of each socket of that address."""
    address = socket.inet_aton(host)[::-1].hex().upper()
    for version in ("", "6"):
        with open(f"/proc/self/net/{protocol}{version}", encoding="ascii") as sockets:
            for _, local, _, state, queues, *_, last in map(str.split, sockets):
                if local.endswith(f":{port:04X}") and local[:-5].endswith((address, "00000000")):
                    yield state, int(queues.split(":")[1], 16), int(last) if protocol == "udp" else 0


def is_bound(host, port, protocol, state):
    return any(own_state == state for own_state, *_ in sockets_at(host, port, protocol))


class Receiver:
    """A child class says how it is called (command), configured (write_config) and read (totals)."""

    name = None
    protocol = "udp"  # of what it is sent
    flush_s = 1.0  # the time after which what arrived is certainly in the totals

    def __init__(self, host="127.0.0.1", port=None):
        self.home = self.find_home()
        self.host, self.fixed_port = host, port
        self.directory = tempfile.mkdtemp(prefix=f"bpfpush-{self.name}.")
        self.log = os.path.join(self.directory, "log")
        self.process = self.port = None
        self.socket = None

    # What a child class answers.

    def find_home(self):
        return installed(self.name)

    def write_config(self):
        """Writes what the command needs; self.port is set."""

    def command(self):
        raise NotImplementedError

    def environment(self):
        return {}

    def totals(self):
        raise NotImplementedError

    def bad_lines(self):
        """How many lines it says that it did not understand."""
        raise NotImplementedError

    def keep_totals(self):
        """Called before it ends: to wait for a flush, to write down what it has in memory alone."""

    def is_ready(self):
        return is_bound(self.host, self.port, self.protocol, LISTEN if self.protocol == "tcp" else BOUND)

    # Its life.

    @property
    def endpoint(self):
        """What an exporter is told."""
        return f"{self.host}:{self.port}"

    def __enter__(self):
        for _ in range(5):  # a port that was free may be taken when the receiver comes to it
            kind = socket.SOCK_STREAM if self.protocol == "tcp" else socket.SOCK_DGRAM
            self.port = self.fixed_port or free_ports(1, kind)[0]
            self.write_config()
            if self.try_start():
                return self
        text = self.log_text()
        self.__exit__()
        raise RuntimeError(f"{self.name} did not start:\n{text[-3000:]}")

    def __exit__(self, *_):
        self.disconnect()
        self.stop(keep=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def try_start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory,
                                            env={**os.environ, **self.environment()}, start_new_session=True)
        if self.protocol == "udp":
            # It must not wait for a CPU: its buffer has room for some hundred datagrams only.
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(self.process.pid, os.SCHED_RR, os.sched_param(1))
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self.process.poll() is None:
            if self.is_ready():
                return True
            time.sleep(0.02)
        self.stop()
        return False

    def start(self):
        """Once more, at the same port with what it has stored, after stop()."""
        if not self.try_start():
            raise RuntimeError(f"{self.name} did not start again:\n{self.log_text()[-3000:]}")

    def stop(self, keep=True):
        """Ends it politely, so that all it received is stored."""
        if not self.process:
            return
        self.resume()
        if keep:
            self.keep_totals()
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def signal(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    def pause(self):
        """It reads no more, while its sockets stay."""
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def log_text(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    # What a test does with it.

    def send(self, *lines):
        """Sends lines (str, or bytes that are no text) as one datagram, or over one connection that stays."""
        payload = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines)
        if not self.socket:
            kind = socket.SOCK_STREAM if self.protocol == "tcp" else socket.SOCK_DGRAM
            path = self.endpoint.removeprefix("unix:") if self.endpoint.startswith("unix:") else None
            self.socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET, kind)
            self.socket.connect(path or (self.host, self.port))
        self.socket.sendall(payload + (b"\n" if self.protocol == "tcp" else b""))

    def disconnect(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def has_unread(self):
        """In its sockets, but for that at a path, of which the kernel does not say it."""
        return any(n_bytes for state, n_bytes, _ in sockets_at(self.host, self.port, self.protocol) if state != LISTEN)

    def dropped(self):
        """How many datagrams the kernel dropped, because it did not read them in time."""
        return sum(n_dropped for *_, n_dropped in sockets_at(self.host, self.port, self.protocol))

    def settle(self, are_enough=lambda totals: True):
        """The totals when they are enough, nothing waits to be read, and they have not changed for a flush and a half. Looks
        are counted, not seconds: when this machine stands still, the receiver does as well."""
        deadline = time.monotonic() + PATIENCE_S
        totals, n_same = None, 0
        while n_same * LOOK_S < 1.5 * self.flush_s + LOOK_S:
            if time.monotonic() > deadline:
                if totals is not None and not are_enough(totals):
                    return totals  # for whoever says what is lacking
                raise TimeoutError(f"{self.name} does not come to rest within {PATIENCE_S} s")
            time.sleep(LOOK_S)
            now = self.totals()
            n_same = 0 if now != totals or self.has_unread() or not are_enough(now) else n_same + 1
            totals = now
        return totals

    def wait_totals(self, are_enough):
        deadline = time.monotonic() + PATIENCE_S
        totals = self.totals()
        while not are_enough(totals):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} after {PATIENCE_S} s:\n" + "\n".join(map(str, sorted(totals.items())[:40])))
            time.sleep(0.05)
            totals = self.totals()
        return totals
