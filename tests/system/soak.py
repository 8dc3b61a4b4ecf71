#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed service for minutes, ended again and again at random moments, while workloads count themselves: soak.py [SECONDS]

Prints a table of figures. Exits with 1 if the Collector's totals are not what the workloads made, to the last call, or a series
began again. What StatsD was told is only shown: a datagram that was being sent when the agent was killed may come twice.
"""

import os
import random
import sys
import tempfile
import time

from counting import WORKLOADS, Counting
from machine import Machine
from packages import PACKAGES, debs

# {what happens: a command; @PID@ is the agent}. A kill comes at any moment, for example in the middle of a collection.
EVENTS = {
    "kill": "kill -KILL @PID@",
    "kill twice": "kill -KILL @PID@; sleep 0.$((RANDOM % 10))$((RANDOM % 10)); systemctl kill --kill-whom=main --signal=KILL bpfpush",
    "restart": "systemctl restart bpfpush",
    "reload": "systemctl reload bpfpush",
    "reexec": "systemctl daemon-reexec; kill -KILL @PID@",
    "stop by signal": "kill -TERM @PID@",
}
QUICK = "[Service]\\nRestartSec=100ms\\n"


def disturb(machine, counting, seconds):
    """Returns {event: how often}."""
    counts, end = dict.fromkeys(EVENTS, 0), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(random.uniform(0, 2.5))
        pid = machine.out("systemctl show bpfpush --property=MainPID --value")
        if pid == "0":
            continue
        event = random.choice(list(EVENTS))
        machine.run(EVENTS[event].replace("@PID@", pid), check=False)
        machine.until("it runs", "systemctl is-active bpfpush")
        counts[event] += 1
        if sum(counts.values()) % 10 == 0:
            counting.wait_delivered()
            print(f"{int(end - time.monotonic())} s left, {sum(counts.values())} events, {len(counting.starts())} start times", flush=True)
    return counts


def main(seconds):
    old, _ = debs()
    with tempfile.TemporaryDirectory(prefix="bpfpush-soak.") as counts, Counting() as counting, \
            Machine([(PACKAGES, "/packages"), (WORKLOADS, "/workloads"), (counts, "/counts")]) as machine:
        machine.run(f"mkdir -p /etc/systemd/system/bpfpush.service.d /etc/bpfpush/bpfpush.conf.d; printf '{QUICK}' >/etc/systemd/system/bpfpush.service.d/quick.conf")
        machine.run(f"cat >/etc/bpfpush/bpfpush.conf.d/50-test.conf <<'END'\n{counting.config()}END")
        machine.run(f"dpkg --install /packages/{os.path.relpath(old, PACKAGES)}")
        counting.start(machine, counts)
        events = disturb(machine, counting, seconds)
        counting.finish()
        wrong = counting.differences()
        starts = counting.starts()
        if wrong:
            print(machine.run("journalctl --no-pager --unit=bpfpush --priority=warning | tail -n 40").stdout)
    for event, count in events.items():
        print(f"{event:16} {count}")
    print(f"calls            {sum(counting.expected.values())} of {len(counting.expected)} series that ended")
    print(f"start times      {len(starts)}")
    print(f"wrong            {len(wrong)} figures", *wrong[:20], sep="\n")
    return bool([line for line in wrong if not line.startswith("statsd")]) or len(starts) != 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
