#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hooks that a descriptor names and the native kernel may not have: kprobes; and perf events on CPUs that go and come.
The object is that of tests/bpf/own/hooks."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

from guest import COMPLAINT, main, run_guest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.append(os.path.join(HERE, "..", "bpf"))
from test_hooks import METRIC, TARGETS

N = 300
CPU_LOG = "does not run on a CPU"
SCRIPT = f"""\
sysctl -qw kernel.perf_event_paranoid=2 2>/dev/null || echo 2 >/proc/sys/kernel/perf_event_paranoid
cat >/tmp/agent.conf <<'END'
[agent]
interval = 1s
collectors = hooks
collector_directory = /tmp/own
[exporter points]
type = json
path = /tmp/points
END
mkdir /tmp/own
cp /given/hooks.bpf.o /tmp/own/
cp /given/kprobes.conf /tmp/own/hooks.conf
bpfpush once --config=/tmp/agent.conf --format=json --whole-machine hooks -- workload-noted {N} >/result/kprobes 2>/result/kprobes.log || exit 1

wait_for_collections() {{
	local start=$(wc -l </tmp/points) seen
	for collection in 1 2; do
		seen=$(wc -l </tmp/points)
		while [ $(wc -l </tmp/points) = $seen ]; do
			[ -d /proc/$agent ] || exit 2
			sleep 0.1
		done
	done
}}
cp /given/events.conf /tmp/own/hooks.conf
cpu=/sys/devices/system/cpu/cpu1/online
echo 0 >$cpu
touch /tmp/points
bpfpush run --config=/tmp/agent.conf 2>/result/events.log &
agent=$!
while ! grep -q started /result/events.log; do
	[ -d /proc/$agent ] || exit 3
	sleep 0.1
done
grep ^CapEff /proc/$agent/status >/result/rights
for turn in late again; do
	echo 0 >$cpu 2>/dev/null
	echo 1 >$cpu
	wait_for_collections
	taskset -c 1 workload-noted {N} >/result/$turn || exit 4
done
kill $agent
wait $agent
cp /tmp/points /result/
"""


def points(text):
    return [json.loads(line) for line in text.splitlines() if '"hooks.hook"' in line]


class HooksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="bpfpush-vm-hooks.") as directory:
            paths = {name: os.path.join(directory, name) for name in ("hooks.bpf.o", "kprobes.conf", "events.conf")}
            subprocess.run([*shlex.split(os.environ["BPF_COMPILE"]), "-c", os.path.join(HERE, "..", "bpf", "own", "hooks.bpf.c"),
                            "-o", paths["hooks.bpf.o"]], check=True)
            cls.describe(paths["kprobes.conf"], {"entry": TARGETS["entry"], "exit_": TARGETS["exit_"]})
            cls.describe(paths["events.conf"], {"fault": TARGETS["fault"]})
            cls.guest = run_guest(SCRIPT, programs={path: "/given/" + name for name, path in paths.items()})
        if cls.guest.status:
            raise AssertionError(f"the script ended with {cls.guest.status}:\n{cls.guest.output}\n{cls.guest.files}")

    @staticmethod
    def describe(path, programs):
        with open(path, "w", encoding="utf-8") as file:
            file.write(METRIC + "".join(f"[program {name}]\n{programs.get(name, 'when = off' + chr(10) + target)}\n"
                                        for name, target in TARGETS.items()))

    def test_targets_of_kprobes(self):
        self.assertEqual(self.guest.file("kprobes.log"), "")
        self.assertEqual({point["attributes"]["hooks.hook"]: point["total"] for point in points(self.guest.file("kprobes"))},
                         {"entry": N, "exit": N})

    def test_a_cpu_that_comes_online_is_counted_each_time(self):
        faults = sum(json.loads(self.guest.file(turn))["faults"] for turn in ("late", "again"))
        last = [point["total"] for point in points(self.guest.file("points")) if point["attributes"]["hooks.hook"] == "fault"][-1]
        self.assertEqual(last, faults)
        self.assertGreater(faults, N)
        self.assertNotIn(CPU_LOG, self.guest.file("events.log"))

    def test_of_all_rights_only_that_for_perf_events_is_kept(self):
        self.assertEqual(int(self.guest.file("rights").split()[1], 16), 1 << 38)  # CAP_PERFMON

    def test_the_kernel_has_nothing_to_complain_of(self):
        self.assertNotRegex(self.guest.kernel_log, COMPLAINT)


if __name__ == "__main__":
    main()
