#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two CPUs where 128 are possible, as many virtual machines have it, and a CPU that comes online after the start."""

import os
import re
import sys
import unittest

from guest import COMPLAINT, main, run_guest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "bpf"))
from scale import CALL, COUNT, N_CALLS, UNIT, Sums, Truth, differences

N_UNITS = 40
LIMIT_BYTES = 8 << 20

# Both runs of the agent end by themselves, with a last collection, when the units have done their work.
SCRIPT = f"""\
cat >/tmp/agent.conf <<'END'
[exporter points]
type = json
path = /tmp/points
END
mkfifo /tmp/hold
start() {{ # RUN
	echo "$1: starting"
	rm -f /tmp/points
	bpfpush run --config=/tmp/agent.conf 2>/result/$1.log &
	agent=$!
	while ! grep -q started /result/$1.log; do
		[ -d /proc/$agent ] || exit 1
		sleep 0.1
	done
}}
count() {{ # RUN
	echo "$1: counting"
	mkdir /sys/fs/cgroup/$1
	workload-units live /sys/fs/cgroup/$1 {N_UNITS} </tmp/hold >/result/$1.truth &
	workload=$!
	exec 9>/tmp/hold
	while [ -z "$(tail -n 1 /result/$1.truth)" ]; do
		[ -d /proc/$workload ] || exit 2
		sleep 0.1
	done
	echo "$1: stopping"
	kill $agent
	wait $agent
	echo "$1: ending the units"
	exec 9>&-
	wait $workload || exit 3
	grep -vE '"kind":"(histogram|gauge)"' /tmp/points >/result/$1.points
}}
cat /sys/devices/system/cpu/possible /sys/devices/system/cpu/online >/result/cpus

start both
for info in /proc/$agent/fdinfo/*; do
	! grep -s map_id $info || grep memlock $info
done >/result/maps
count both

echo 0 >/sys/devices/system/cpu/cpu1/online
start late
echo 1 >/sys/devices/system/cpu/cpu1/online
count late
"""


class TestCpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.guest = run_guest(SCRIPT, cpus="2,maxcpus=128")
        if cls.guest.status:
            raise AssertionError(f"the script ended with {cls.guest.status}:\n{cls.guest.output}\n{cls.guest.files}")
        if cls.guest.file("cpus") != "0-127\n0-1\n":
            raise unittest.SkipTest("this kernel ignores CPUs that QEMU may add later")

    def check_exact(self, run):
        truth, seen = Truth(run, self.guest.file(f"{run}.truth")), Sums(self.guest.file(f"{run}.points").splitlines())
        expected = truth.by_unit()
        self.assertEqual(len(expected), N_UNITS * N_CALLS)
        wrong = differences(expected, seen.sums(COUNT, UNIT, CALL))
        self.assertEqual(wrong[:5], [], f"{len(wrong)} of {len(expected)} pairs")
        sent = seen.sums("process.network.io", UNIT, **{"network.io.direction": "transmit"})
        self.assertEqual(differences(truth.other("sent"), sent), [])
        self.assertEqual(seen.overflows(), {})

    def test_counts_are_exact(self):
        self.check_exact("both")

    def test_a_cpu_that_comes_online_later_is_counted_exactly(self):
        self.check_exact("late")

    def test_maps_take_the_memory_of_two_cpus(self):
        sizes = dict(re.findall(r"map_id:\s*(\d+)\nmemlock:\s*(\d+)", self.guest.file("maps")))
        self.assertGreater(len(sizes), 20)
        self.assertLessEqual(sum(map(int, sizes.values())), LIMIT_BYTES)

    def test_every_collector_starts_whole(self):
        for run in ("both", "late"):
            log = self.guest.file(f"{run}.log")
            self.assertIn("started: 7 collectors", log)
            known = ("the kernel's tables have room for ", "started: ", "stopped", "numbers are too low, because the kernel skipped events",
                     "the kernel no longer skips events", "RUNTIME_DIRECTORY is not set")
            self.assertEqual([line for line in log.splitlines() if not line.startswith(known)], [])

    def test_the_kernel_has_nothing_to_complain_of(self):
        self.assertNotRegex(self.guest.kernel_log, COMPLAINT)


if __name__ == "__main__":
    main()
