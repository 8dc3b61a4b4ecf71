# SPDX-License-Identifier: Apache-2.0
"""A fleet of simulated machines (fleet/fleet.c), and Collectors for it, which come back at the same port after an outage.

    with Gateway() as gateway:
        at_ns = soon()
        fleet = Fleet(gateway.url, at_ns, machines=500, first=0, pushes=9)
        ...
        fleet.wait()
        fleet.pushes, fleet.requests     [(machine, moment)...], moments in ns of CLOCK_BOOTTIME
        fleet.counts                     what all exporters together counted
"""

import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time

from collector import Collector, free_ports

FLEET = os.environ.get("FLEET") or os.path.realpath(
    os.path.join(os.path.dirname(__file__), "..", "..", "build", "tests", "peers", "fleet", "fleet"))
PAGE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "docs", "fleet.md")

STORE_CONFIG = """\
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
exporters:
  file:
    path: {output}
    append: true
    flush_interval: 100ms
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    metrics:
      receivers: [otlp]
      exporters: [file]
"""


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def soon():
    """A moment at which all machines can start together: until then, their exporters are opened."""
    return now_ns() + 3 * 10**9


def wait_until(moment_ns):
    time.sleep(max(0, moment_ns - now_ns()) / 1e9)


def raise_files_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def busiest(moments, width_ns):
    """How many of them the busiest time of this width has."""
    moments, first, most = sorted(moments), 0, 0
    for last, moment in enumerate(moments):
        while moments[first] <= moment - width_ns:
            first += 1
        most = max(most, last - first + 1)
    return most


class Fleet:
    def __init__(self, url, at_ns, *options, **arguments):
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([FLEET, f"--at={at_ns}", *(f"--{name}={value}" for name, value in arguments.items()),
                                         f"endpoint={url}", *options], stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.output.close()

    def wait(self):
        status = self.process.wait()
        if status:
            raise RuntimeError(f"the fleet ended with {status}")
        self.output.seek(0)
        *lines, counts = self.output.read().splitlines()
        events = [line.split() for line in lines]
        self.pushes, self.requests = ([(int(machine), int(moment)) for kind, machine, moment in events if kind == wanted]
                                      for wanted in ("push", "request"))
        self.counts = json.loads(counts)


class Store(Collector):
    """Writes all that it receives to a file."""

    def config_text(self):
        if not self.otlp_ports:
            self.otlp_ports = free_ports(1)
        return STORE_CONFIG.format(port=self.otlp_ports[0], output=self.outputs[0])

    @property
    def url(self):
        return self.otlp_urls[0]

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGCONT)
        super().stop()


class Gateway(Store):
    """With the configuration of docs/fleet.md, in front of a store."""

    def __init__(self, store_url, *changes):
        super().__init__()
        self.changes = [("http://store:4318", store_url), *changes]

    def config_text(self):
        if not self.otlp_ports:
            self.otlp_ports = free_ports(1)
        with open(PAGE, encoding="utf-8") as page:
            text = re.search(r"```yaml\n(receivers:.*?)```", page.read(), re.DOTALL)[1]
        for old, new in [*self.changes, ("0.0.0.0:4318", f"127.0.0.1:{self.otlp_ports[0]}"),
                         ("service:\n", "service:\n  telemetry:\n    metrics:\n      level: none\n")]:
            if text.count(old) != 1:
                raise RuntimeError(f"docs/fleet.md has not one {old!r}")
            text = text.replace(old, new)
        return text


class Full:
    """Answers each request with 503 and Retry-After."""

    def __init__(self, port, retry_after_s):
        self.port, self.n_answers = port, 0
        self.answer = f"HTTP/1.1 503 Full\r\nRetry-After: {retry_after_s}\r\nContent-Length: 0\r\n\r\n".encode()

    def wait_answers(self, count):
        while self.n_answers < count:
            time.sleep(0.05)

    async def serve(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1]))
                self.n_answers += 1
                writer.write(self.answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def run(self):
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self.serve, "127.0.0.1", self.port, backlog=4096)
        self.is_ready.set()
        await self.end.wait()
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        self.loop.set_exception_handler(lambda *_: None)  # of connections that are given up
        for task in tasks:
            task.cancel()

    def __enter__(self):
        self.is_ready = threading.Event()
        self.thread = threading.Thread(target=asyncio.run, args=[self.run()])
        self.thread.start()
        self.is_ready.wait()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.end.set)
        self.thread.join()
