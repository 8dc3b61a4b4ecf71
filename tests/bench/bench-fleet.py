#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a Collector with the configuration of docs/fleet.md costs, on one CPU: its CPU time for a request and for a point
of simulated machines (tests/peers/fleet), and of this one; its memory; and how often machines push after an outage.

usage: bench-fleet.py [SECONDS]
"""
import contextlib
import gzip
import http.client
import http.server
import os
import subprocess
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'peers'))
from machines import Fleet, Gateway, busiest, now_ns, raise_files_limit, soon, wait_until

WARM_UP_S = 5
MACHINES_OF_A_PROCESS = 500  # its event loop asks for all descriptors that are ready, for each of them


class Sink(http.server.BaseHTTPRequestHandler):
    """A store that only answers."""
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


class Measured(Gateway):
    """On one CPU, which others may use, too."""

    def try_start(self):
        cpus = os.sched_getaffinity(0)
        os.environ['GOMAXPROCS'] = '1'
        os.sched_setaffinity(0, {max(cpus)})
        try:
            return super().try_start()
        finally:
            os.sched_setaffinity(0, cpus)
            del os.environ['GOMAXPROCS']

    def cpu_s(self):
        with open(f'/proc/{self.process.pid}/stat', encoding='ascii') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def memory_kib(self, what='VmRSS'):
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as file:
            return next(int(line.split()[1]) for line in file if line.startswith(what))


def measure(url, machines, series, interval_s, seconds):
    """A row: machines that have been connected before the time begins, so that no connection is opened in it."""
    with Measured(url) as gateway:
        at_ns = soon()
        with contextlib.ExitStack() as stack:
            fleets = [stack.enter_context(Fleet(gateway.url, at_ns, machines=min(machines, MACHINES_OF_A_PROCESS), first=first,
                                                series=series, interval=interval_s * 1000,
                                                pushes=(WARM_UP_S + interval_s + seconds) // interval_s + 2))
                      for first in range(0, machines, MACHINES_OF_A_PROCESS)]
            begin_ns = at_ns + (WARM_UP_S + interval_s) * 10**9
            end_ns = begin_ns + seconds * 10**9
            wait_until(begin_ns)
            begin_s = gateway.cpu_s()
            wait_until(end_ns)
            cpu_s, memory_kib = gateway.cpu_s() - begin_s, gateway.memory_kib('VmHWM')
            for fleet in fleets:
                fleet.wait()
        n = sum(begin_ns <= moment < end_ns for fleet in fleets for _, moment in fleet.requests)
        requests, size, pushed, delivered = (sum(fleet.counts[name] for fleet in fleets)
                                             for name in ('requests', 'bytes_sent', 'pushed', 'delivered'))
        assert delivered == pushed
        print(f'{machines:5} machines of {series:4} series every {interval_s:2} s: {n / seconds:6.1f} requests/s, '
              f'{cpu_s / seconds * 100:5.1f} % of a CPU, {cpu_s / n * 1e6:6.0f} us a request, '
              f'{cpu_s / n / series * 1e6:6.2f} us a point, at 100 %: {n / cpu_s:6.0f} requests/s, '
              f'{n * series / cpu_s:8.0f} points/s; {memory_kib / 1024:5.0f} MiB at most, '
              f'{size / requests:6.0f} bytes a request', flush=True)


def replay(url, seconds):
    """The same for what this machine would push now, again and again."""
    body = subprocess.run(['build/bpfpush', 'dump', 'otlp', '--for=5s'], check=True, capture_output=True).stdout
    text = subprocess.run(['protoc', '--proto_path=proto', '--decode=otlp.ExportMetricsServiceRequest', 'otlp-metrics.proto'],
                          input=body, check=True, capture_output=True).stdout
    points, body = text.count(b'data_points {'), gzip.compress(body, 1)
    with Measured(url) as gateway:
        connection = http.client.HTTPConnection('127.0.0.1', gateway.otlp_ports[0])
        n, begin_s, end = 0, gateway.cpu_s(), time.monotonic() + seconds
        while time.monotonic() < end:
            connection.request('POST', '/v1/metrics', body, {'Content-Type': 'application/x-protobuf', 'Content-Encoding': 'gzip'})
            connection.getresponse().read()
            n += 1
            time.sleep(0.01)
        cpu_s = gateway.cpu_s() - begin_s
        print(f'a push of this machine, {points} points, {len(body)} bytes: '
              f'{n / seconds:6.1f} requests/s, {cpu_s / n * 1e6:6.0f} us a request, {cpu_s / n / points * 1e6:6.2f} us a point, '
              f'at 100 %: {n / cpu_s:6.0f} requests/s, {n * points / cpu_s:8.0f} points/s', flush=True)


def fill(machines, series):
    """The store is gone: what the Collector's memory is when its queue is full."""
    with Measured('http://127.0.0.1:1') as gateway:
        empty_kib = gateway.memory_kib()
        with Fleet(gateway.url, soon(), machines=machines, series=series, interval=1000, pushes=1000):
            log = ''
            while not any(reason in log for reason in ('queue is full', 'high memory', 'Memory usage is above')):
                time.sleep(0.5)
                log = gateway.log_text()
            print(f'{machines:5} machines of {series:4} series, no store: {empty_kib / 1024:.0f} MiB empty, '
                  f'{gateway.memory_kib("VmHWM") / 1024:.0f} MiB when it refuses: '
                  f'{"the queue is full" if "queue is full" in log else "memory_limiter"}', flush=True)


def outage(url):
    """Ten intervals without a receiver; the retries have the default's ratio to the interval."""
    machines, interval_s, normal = 400, 5, 400 / 10
    with Measured(url) as gateway:
        at_ns = soon()
        fleets = {temporality: Fleet(gateway.url, at_ns, f'temporality={temporality}', 'retry_max=15s', machines=machines,
                                     first=first, interval=interval_s * 1000, pushes=20)
                  for first, temporality in ((0, 'cumulative'), (machines, 'delta'))}
        wait_until(at_ns + 2 * interval_s * 10**9)
        gateway.stop()
        wait_until(at_ns + 12 * interval_s * 10**9)
        back_ns = now_ns()
        gateway.come_back()
        for temporality, fleet in fleets.items():
            with fleet:
                fleet.wait()
            most = busiest([moment for _, moment in fleet.requests if moment >= back_ns], interval_s * 10**8)
            print(f'{machines} machines, {temporality}, after ten intervals without a receiver: the busiest tenth of an interval '
                  f'has {most} requests, {most / normal:.2f} times as many as usual', flush=True)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    raise_files_limit()
    sink = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Sink)
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    url = f'http://127.0.0.1:{sink.server_port}'
    for machines, series, interval_s in ((1000, 10, 2), (400, 300, 2), (200, 1000, 2), (4000, 10, 10)):
        measure(url, machines, series, interval_s, seconds)
    replay(url, seconds)
    fill(400, 300)
    outage(url)


if __name__ == '__main__':
    main()
