#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one run of each hook costs, for collectors that are off by default: beside an empty program at the same hook.

    bench-collectors.py BPFPUSH [--rounds=N] [COLLECTOR...]

The kernel times both programs while a workload runs (kernel.bpf_stats_enabled): each sees the same events. What
calling a program costs, some 20 to 100 ns by the kind of hook, is in neither figure. A new collector is a row of ROWS.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
COMPILE = ["clang", "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-Wall", "-Werror",
           "-I" + os.path.join(HERE, "..", "..", "bpf", "include"), "-idirafter", f"/usr/include/{os.uname().machine}-linux-gnu"]
OBJECT = """\
#include "kernel.h"
char LICENSE[] SEC("license") = "Dual BSD/GPL";
struct {{ __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, u64); }} runs SEC(".maps");
{programs}
"""
PROGRAM = 'SEC("{type}") int empty_{number}(void *ctx) {{ return 0; }}\n'
DESCRIPTOR = "[collector]\ndescription = Empty programs\n[metric runs]\nname = empty.runs\nunit = {run}\ndescription = Nothing\n"
CLOCK = "perf_event/cpu-clock"  # instead of events of the processor, which virtual machines often lack
SAMPLED = "event = cpu-clock\nperiod = 1000000\n"

FORKS = ["sh", "-c", "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i + 1)); done"]
DISK = ["sh", "-c", "f=$(mktemp -p /var/tmp); dd if=/dev/zero of=$f bs=4k count=2000 oflag=direct 2>/dev/null; "
                    "dd if=$f of=/dev/null bs=4k iflag=direct 2>/dev/null; rm $f"]
DROPS = [sys.executable, "-c", "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                               "for i in range(50000): s.sendto(b'x', ('127.0.0.1', 9))"]
CALLS = [sys.executable, "-c", "import os\nfor i in range(100000): os.getppid()"]
WRITES = ["sh", "-c", "f=$(mktemp -p /var/tmp); dd if=/dev/zero of=$f bs=4k count=20000 2>/dev/null; rm $f"]
LOOKUPS = [sys.executable, "-c", "import socket\nfor i in range(10000): socket.getaddrinfo('127.0.0.1', 1)"]
CGROUPS = ["sh", "-c", "d=$(sed -n 's/^[^ ]* \\([^ ]*\\) cgroup2 .*/\\1/p' /proc/mounts | head -1)/bpfpush-bench-$$; "
                       "i=0; while [ $i -lt 1000 ]; do mkdir $d; rmdir $d; i=$((i + 1)); done"]
REFUSED = [sys.executable, "-c", "import socket\nfor i in range(5000): socket.socket().connect_ex(('127.0.0.1', 1))"]
# The collector, its settings (with "hook" it is a probe), a workload, the hooks that its programs attach to.
ROWS = [
    ("block", {}, DISK, ["tp_btf/block_rq_issue", "tp_btf/block_rq_complete"]),
    ("process", {}, FORKS, ["tp_btf/task_newtask", "tp_btf/sched_process_exec", "tp_btf/sched_process_exit"]),
    ("softirq", {}, DROPS, ["tp_btf/softirq_entry", "tp_btf/softirq_exit"]),
    ("hardirq", {}, DISK, ["tp_btf/irq_handler_entry", "tp_btf/irq_handler_exit"]),
    ("drops", {}, DROPS, ["tp_btf/kfree_skb"]),
    ("probe_count", {"hook": "uprobe:libc:getppid", "by": "unit"}, CALLS, ["uprobe/libc:getppid"]),
    ("probe_comm", {"hook": "uprobe:libc:getppid", "by": "unit, process, comm, arg0"}, CALLS, ["uprobe/libc:getppid"]),
    ("probe_time", {"hook": "uprobe:libc:getppid", "by": "unit", "measure": "latency"}, CALLS,
     ["uprobe/libc:getppid", "uretprobe/libc:getppid"]),
    ("probe_event", {"hook": "tracepoint:sched:sched_switch", "by": "unit"}, FORKS, ["raw_tp/sched_switch"]),
    ("dns", {}, LOOKUPS, ["uprobe/libc.so.6:getaddrinfo", "uretprobe/libc.so.6:getaddrinfo"]),
    ("pagecache", {}, WRITES, ["tp_btf/mm_filemap_add_to_page_cache", "tp_btf/writeback_dirty_folio"]),
    ("tcppeer", {}, REFUSED, ["tp_btf/inet_sock_set_state", "tp_btf/tcp_destroy_sock"]),
    ("throttle", {}, CGROUPS, ["tp_btf/cgroup_rmdir", "iter/cgroup"]),
    ("usage", {}, CGROUPS, ["iter/cgroup"]),
    ("hardware", {}, CALLS, [CLOCK]),
    ("filesystem", {}, WRITES, ["fentry/vfs_write", "fexit/vfs_write"]),
    ("tcpstate", {}, REFUSED, ["tp_btf/inet_sock_set_state", "tp_btf/tcp_destroy_sock"]),
]


def write_sampled(bpfpush, directory, name):
    """The collector with other events."""
    path = os.path.join(os.path.dirname(bpfpush), "bpf", name)
    shutil.copy(path + ".bpf.o", directory)
    with open(path + ".conf", encoding="ascii") as file, open(os.path.join(directory, name + ".conf"), "w", encoding="ascii") as to:
        to.write(re.sub(r"event = .*\nperiod = .*\n", SAMPLED, file.read()))


def write_empty(directory, sections):
    programs = "".join(PROGRAM.format(type=section.removesuffix("/cpu-clock"), number=number) for number, section in enumerate(sections))
    with open(os.path.join(directory, "empty.conf"), "w", encoding="ascii") as file:
        file.write(DESCRIPTOR + "".join(f"[program empty_{number}]\n{SAMPLED}" for number, section in enumerate(sections) if section == CLOCK))
    subprocess.run(COMPILE + ["-xc", "-", "-c", "-o", os.path.join(directory, "empty.bpf.o")], check=True,
                   input=OBJECT.format(programs=programs), text=True)


def write_config(path, name, settings):
    with open(path, "w", encoding="ascii") as file:
        kind = "probe" if "hook" in settings else "collector"
        file.write(f"[{kind} {name}]\n" + "".join(f"{key} = {value}\n" for key, value in settings.items()))


def measure(bpfpush, directory, row):
    """{(collector, section): (runs, ns a run)} of the programs that ran."""
    name, settings, workload, _ = row
    config = os.path.join(directory, "config")
    write_config(config, name, settings)
    done = subprocess.run([bpfpush, "list", "--json", "--config=" + config, "--collector-directory=" + directory, name, "empty", "--",
                           *workload], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, os.EX_UNAVAILABLE):  # not what this kernel or these rights refuse
        done.check_returncode()
    listed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"collector"')]
    return {(collector["collector"], program["section"]): (program["runs"], program["run_time_ns"] / program["runs"])
            for collector in listed for program in collector["programs"] if program["runs"]}


def report(bpfpush, row, rounds):
    with tempfile.TemporaryDirectory(prefix="bpfpush-bench.") as directory:
        write_empty(directory, row[3])
        if CLOCK in row[3]:
            write_sampled(bpfpush, directory, row[0])
        seen = [measure(bpfpush, directory, row) for _ in range(rounds)]
    for section in row[3]:
        both = [(own[0], empty[1], own[1]) for own, empty in ((one.get((row[0], section)), one.get(("empty", section))) for one in seen)
                if own and empty]
        if not both:
            print(f"{row[0]:<12} {section:<36} does not run here", flush=True)
            continue
        runs, empty, own = (statistics.median(values) for values in zip(*both))
        print(f"{row[0]:<12} {section:<36} {runs:>9.0f} {empty:>9.0f} {own:>9.0f} {own - empty:>+9.0f}", flush=True)


def main():
    bpfpush, arguments = os.path.realpath(sys.argv[1]), sys.argv[2:]
    rounds = next((int(word.split("=")[1]) for word in arguments if word.startswith("--rounds=")), 5)
    names = [word for word in arguments if not word.startswith("--")]
    print(f"{'collector':<12} {'hook':<36} {'runs':>9} {'empty':>9} {'collector':>9} {'added':>9}   ns a run, medians of {rounds}")
    for row in ROWS:
        if not names or row[0] in names:
            report(bpfpush, row, rounds)


if __name__ == "__main__":
    main()
