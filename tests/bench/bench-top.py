#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `bpfpush top` costs with 500 units, in a terminal of 200x50: % of a CPU, of the process and of its programs.
First the units are idle, then each makes calls of 44 kinds on every CPU, each second (workload-units.c).

usage: bench-top.py [UNITS [SECONDS]]      with BPFPUSH and BPFPUSH_WORKLOADS as tests/bpf takes them
"""
import os
import subprocess
import sys
import time

sys.path += [os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', place) for place in ('bpf', 'top')]
from harness import Cgroup, workload
from screen import Screen


def cpu_s(pid):
    with open('/proc/%d/stat' % pid) as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def programs(pid):
    """How long the programs ran that this process has open, and how often: kernel.bpf_stats_enabled is set."""
    ids, total, runs = set(), 0, 0
    for name in os.listdir('/proc/%d/fdinfo' % pid):
        try:
            with open('/proc/%d/fdinfo/%s' % (pid, name)) as file:
                fields = dict(line.split(':\t', 1) for line in file.read().splitlines() if ':\t' in line)
        except FileNotFoundError:
            continue
        if 'run_time_ns' in fields and fields['prog_id'] not in ids:
            ids.add(fields['prog_id'])
            total += int(fields['run_time_ns'])
            runs += int(fields['run_cnt'])
    return total / 1e9, runs


def main():
    units, seconds = [int(word) for word in sys.argv[1:]] + [500, 20][len(sys.argv) - 1:]
    subprocess.run(['sysctl', '-q', 'kernel.bpf_stats_enabled=1'], check=True)
    try:
        with Cgroup('top') as cgroup, \
                subprocess.Popen([workload('units'), 'live', cgroup.directory, str(units)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True) as process, Screen(200, 50, '--interval=1s') as screen:
            process.stdout.readline()
            screen.wait(lambda text: 'of a CPU' in text)
            pid = screen.pid()
            for what, line in (('idle', ''), ('44 kinds', '\n')):
                before = time.monotonic(), cpu_s(pid), *programs(pid)
                for _ in range(seconds):
                    process.stdin.write(line)
                    process.stdin.flush()
                    time.sleep(1)
                after = time.monotonic(), cpu_s(pid), *programs(pid)
                elapsed, agent, kernel, runs = (late - early for early, late in zip(before, after))
                print('%-12s agent %5.2f %%  programs %5.2f %%, %6.0f runs a second  %s' % (
                    what, 100 * agent / elapsed, 100 * kernel / elapsed, runs / elapsed,
                    screen.lines()[1].strip()), flush=True)
            process.stdin.close()
    finally:
        subprocess.run(['sysctl', '-q', 'kernel.bpf_stats_enabled=0'], check=True)


if __name__ == '__main__':
    main()
