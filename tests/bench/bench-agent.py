#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent costs by itself: its start, memory and CPU, the kernel memory and time of its programs.

    bench-agent.py BPFPUSH [STARTS [SECONDS]]
    bench-agent.py BPFPUSH exporters [SECONDS]
    bench-agent.py BPFPUSH units [SECONDS]

It runs as the service does (NOTIFY_SOCKET, OTLP to a sink on this machine, a collection every 10 s, the
default collectors and the one that names cgroups). With "exporters" it runs with each exporter alone and with
OTLP beside each other one, in turn, and collects every second. With "units" there are 300 units, each of which
makes calls of 44 kinds between any two collections.
"""

import http.server
import os
import re
import socket
import socketserver
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "bpf"))
import harness

INTERVAL = 10
UNITS = 300
STATISTICS = "/proc/sys/kernel/bpf_stats_enabled"


class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


class StreamSink(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(65536):
            pass


class DatagramSink(socketserver.BaseRequestHandler):
    def handle(self):
        pass


def start_sink(server):
    """A process of its own, so that its work is nobody's here."""
    pid = os.fork()
    if not pid:
        try:
            server.serve_forever()
        finally:
            os._exit(0)
    server.server_close()
    return pid, server.server_address[1]


def read(path):
    with open(path) as file:
        return file.read()


class Agent:
    def __init__(self, command, directory):
        path = os.path.join(directory, "notify")
        if os.path.exists(path):
            os.unlink(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            notify.settimeout(30)
            began = time.monotonic()
            self.process = subprocess.Popen(command, env=dict(os.environ, NOTIFY_SOCKET=path), stderr=subprocess.DEVNULL)
            while b"READY=1" not in notify.recv(65536):
                pass
            self.ready_ms = (time.monotonic() - began) * 1e3
        self.cpu_ready_ms = self.cpu_ms()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.wait()

    def proc(self, name):
        return f"/proc/{self.process.pid}/{name}"

    def cpu_ms(self):
        """The scheduler's clock: user and system."""
        return int(read(self.proc("schedstat")).split()[0]) / 1e6

    def memory_kib(self):
        return {name: int(size) for name, size in re.findall(r"^(\w+): +(\d+) kB", read(self.proc("smaps_rollup")), re.M)}

    def mapped_tables_kib(self):
        parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", read(self.proc("smaps")), flags=re.M)
        return sum(int(re.search(r"^Pss: +(\d+)", part, re.M).group(1)) for part in parts if "bpf-map" in part.split("\n")[0])

    def descriptors(self, kind):
        """By id: the same map may be held twice."""
        found = {}
        for fd in os.listdir(self.proc("fd")):
            try:
                if os.readlink(self.proc(f"fd/{fd}")) != f"anon_inode:bpf-{kind}":
                    continue
                info = dict(re.findall(r"^(\w+):\t(\S+)", read(self.proc(f"fdinfo/{fd}")), re.M))
            except FileNotFoundError:  # a socket of the moment
                continue
            found[info[f"{kind}_id"]] = info
        return found.values()

    def map_bytes(self):
        return sum(int(info["memlock"]) for info in self.descriptors("map"))

    def program_ns(self):
        programs = self.descriptors("prog")
        return sum(int(info["run_time_ns"]) for info in programs), sum(int(info["run_cnt"]) for info in programs)


def spread(values, unit):
    return f"{statistics.median(values):.1f} {unit} median ({min(values):.1f} to {max(values):.1f})"


def measure_starts(command, directory, n):
    ready, cpu = [], []
    for _ in range(n):
        with Agent(command, directory) as agent:
            ready.append(agent.ready_ms)
            cpu.append(agent.cpu_ready_ms)
    print(f"start to READY=1, {n} starts: {spread(ready, 'ms')}")
    print(f"CPU until then:             {spread(cpu, 'ms')}")


def measure_steady(command, directory, seconds):
    with Agent(command, directory) as agent:
        time.sleep(INTERVAL * 1.5)
        pss, cpu, before = [], [], agent.cpu_ms()
        for _ in range(max(1, seconds // INTERVAL)):
            time.sleep(INTERVAL)
            now, memory = agent.cpu_ms(), agent.memory_kib()
            cpu.append(now - before)
            pss.append(memory["Pss"] / 1024)
            before = now
        private = memory["Private_Clean"] + memory["Private_Dirty"]
        print(f"CPU a cycle of {INTERVAL} s, {len(cpu)} cycles: {spread(cpu, 'ms')}: {sum(cpu) / len(cpu) * 60 / INTERVAL / 1e3:.4f} s a minute")
        print(f"PSS:                        {spread(pss, 'MiB')}")
        print(
            f"  at the end: RSS {memory['Rss'] / 1024:.1f} MiB, anonymous {memory['Pss_Anon'] / 1024:.1f}, "
            f"of files {memory['Pss_File'] / 1024:.1f}, mapped tables {agent.mapped_tables_kib() / 1024:.1f}, "
            f"shared with nobody {private / 1024:.1f}"
        )
        maps = agent.descriptors("map")
        print(f"kernel memory of {len(maps)} maps:   {agent.map_bytes() / 2**20:.2f} MiB on {os.cpu_count()} CPUs")


def measure_units(command, directory, seconds):
    with harness.Cgroup("bench") as cgroup:
        live = [harness.workload("units"), "live", cgroup.directory, str(UNITS)]
        with subprocess.Popen(live, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as units:
            units.stdout.readline()  # all have called once
            with Agent(command, directory) as agent:
                cpu = []
                for _ in range(2 + max(1, seconds // INTERVAL)):  # two in which series are new
                    units.stdin.write(b"\n")
                    units.stdin.flush()
                    before = agent.cpu_ms()
                    time.sleep(INTERVAL)
                    cpu.append(agent.cpu_ms() - before)
                memory = agent.memory_kib()
            units.stdin.close()
    print(f"CPU a cycle, {UNITS} units:     {spread(cpu[2:], 'ms')}; the first two {cpu[0]:.1f}, {cpu[1]:.1f}")
    print(f"PSS then:                   {memory['Pss'] / 1024:.1f} MiB, anonymous {memory['Pss_Anon'] / 1024:.1f}")


def measure_programs(command, directory, seconds):
    """Apart from the rest: the statistics themselves cost each run two clock readings."""
    was = read(STATISTICS)
    with Agent(command, directory) as agent:
        try:
            with open(STATISTICS, "w") as file:
                file.write("1")
            began, (ns, runs) = time.monotonic(), agent.program_ns()
            time.sleep(seconds)
            ended, (ns_end, runs_end) = time.monotonic(), agent.program_ns()
        finally:
            with open(STATISTICS, "w") as file:
                file.write(was)
    minutes = (ended - began) / 60
    print(
        f"programs in the kernel, {seconds} s: {(ns_end - ns) / 1e9 / minutes:.4f} s a minute, "
        f"{(runs_end - runs) / minutes / 60:.0f} runs a second, {(ns_end - ns) / max(1, runs_end - runs):.0f} ns a run"
    )


LOCAL = ("127.0.0.1", 0)
EXPORTERS = {
    "otlp": (lambda: http.server.HTTPServer(LOCAL, Sink), "http://127.0.0.1:{}"),
    "statsd": (lambda: socketserver.UDPServer(LOCAL, DatagramSink), "127.0.0.1:{}"),
    "graphite": (lambda: socketserver.ThreadingTCPServer(LOCAL, StreamSink), "127.0.0.1:{}"),
}
SETS = [["otlp"], ["statsd"], ["graphite"], ["otlp", "statsd"], ["otlp", "graphite"], ["otlp", "statsd", "graphite"]]
ROUNDS = 2  # the same sets again: what else this machine does changes


def measure_set(bpfpush, directory, names, ports, seconds):
    """CPU in ms a minute, and of memory the medians of PSS and of what no file holds in MiB, from 5 s after the start on."""
    config = os.path.join(directory, "bpfpush.conf")
    with open(config, "w") as file:
        for name in names:
            file.write(f"[exporter {name}]\ntype = {name}\nendpoint = {EXPORTERS[name][1].format(ports[name])}\n")
    with Agent([bpfpush, "run", f"--config={config}", "--interval=1s"], directory) as agent:
        time.sleep(5)
        memory, began, before = [], time.monotonic(), agent.cpu_ms()
        while time.monotonic() - began < seconds:
            time.sleep(1)
            memory.append(agent.memory_kib())
        cpu = (agent.cpu_ms() - before) * 60 / (time.monotonic() - began)
        return cpu, *(statistics.median(kib[name] / 1024 for kib in memory) for name in ("Pss", "Pss_Anon"))


def measure_exporters(bpfpush, seconds):
    sinks, ports, found = [], {}, {}
    try:
        for name, (server, _) in EXPORTERS.items():
            pid, ports[name] = start_sink(server())
            sinks.append(pid)
        with tempfile.TemporaryDirectory() as directory:
            for _ in range(ROUNDS):
                for names in SETS:
                    found.setdefault("+".join(names), []).append(measure_set(bpfpush, directory, names, ports, seconds))
    finally:
        for pid in sinks:
            os.kill(pid, 15)
            os.waitpid(pid, 0)
    for names, values in found.items():
        cpu, pss, anonymous = ([f"{value:.2f}" for value in column] for column in zip(*values))
        print(f"{names:22} CPU {', '.join(cpu)} ms a minute; PSS {', '.join(pss)} MiB, anonymous {', '.join(anonymous)}")


def main():
    bpfpush = os.path.abspath(sys.argv[1])
    if sys.argv[2:3] == ["exporters"]:
        measure_exporters(bpfpush, int(sys.argv[3]) if len(sys.argv) > 3 else 30)
        return
    is_units = sys.argv[2:3] == ["units"]
    starts = int(sys.argv[2]) if len(sys.argv) > 2 and not is_units else 11
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 120
    sink, port = start_sink(http.server.HTTPServer(LOCAL, Sink))
    try:
        with tempfile.TemporaryDirectory() as directory:
            config = os.path.join(directory, "bpfpush.conf")
            with open(config, "w") as file:
                file.write(f"[exporter otlp]\ntype = otlp\nendpoint = http://127.0.0.1:{port}\n")
            command = [bpfpush, "run", f"--config={config}", f"--interval={INTERVAL}s"]
            if is_units:
                measure_units(command, directory, seconds)
                return
            measure_starts(command, directory, starts)
            measure_steady(command, directory, seconds)
            measure_programs(command, directory, min(seconds, 60))
    finally:
        os.kill(sink, 15)
        os.waitpid(sink, 0)


main()
