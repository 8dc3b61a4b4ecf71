#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rig itself: systemd runs, BPF is allowed, exit codes come out and changes do not."""

import os
import subprocess
import sys
import unittest

from container import OwnCgroup, Unavailable, leftovers, rootfs, run_container
from patience import wait

# A test that is killed: what it has started lives on in its cgroup, below a directory of this machine.
KILLED = """
import os, subprocess, sys, time
directory = os.path.join(sys.argv[1], sys.argv[2] + str(os.getpid()), "inside")
os.makedirs(directory)
left = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
with open(os.path.join(directory, "cgroup.procs"), "w") as procs:
    procs.write(str(left.pid))
print(directory, flush=True)
time.sleep(1000)
"""


class TestContainer(unittest.TestCase):
    def test_systemd_is_the_first_process_and_reaches_running(self):
        result = run_container("cat /proc/1/comm; systemctl is-system-running --wait; systemctl --failed --no-legend --plain")
        self.assertEqual((result.output.split("\n")[:2], result.status), (["systemd", "running"], 0), result.output)

    def test_the_exit_code_and_files_of_the_script_come_out(self):
        result = run_container("echo kept >/result/note; echo said; exit 7")
        self.assertEqual((result.status, result.output, result.file("note")), (7, "said\n", "kept\n"))

    def test_the_kernel_is_this_one_with_its_types(self):
        result = run_container("uname -r; stat -c %s /sys/kernel/btf/vmlinux; mount -t bpf bpf /sys/fs/bpf 2>&1; ulimit -l")
        self.assertEqual(result.output.split("\n")[:2],
                         [os.uname().release, str(os.path.getsize("/sys/kernel/btf/vmlinux"))])

    def test_what_the_script_changes_is_thrown_away(self):
        before = subprocess.run(["ls", "-lR", "--time-style=full-iso", rootfs() + "/etc"], capture_output=True, check=True).stdout
        self.assertEqual(run_container("touch /etc/changed && rm /etc/hostname").status, 0)
        after = subprocess.run(["ls", "-lR", "--time-style=full-iso", rootfs() + "/etc"], capture_output=True, check=True).stdout
        self.assertEqual(before, after)

    def test_journal_entries_can_be_read_back(self):
        result = run_container("logger -p user.warning -t rig hello; journalctl --sync; journalctl -t rig -o json --output-fields=MESSAGE,PRIORITY")
        self.assertIn('"PRIORITY":"4"', result.output.replace(" ", ""))

    def test_what_a_killed_test_left_running_is_ended_and_that_of_a_running_one_is_not(self):
        hierarchy = next(path for path in OwnCgroup.HIERARCHIES if os.path.exists(os.path.join(path, "cgroup.procs")))
        for name in ("bpfpush-left-", "bpfpush-test-left-0-", "bpfpush-test-left-again-é1.x-"):
            with self.subTest(name):
                self.check_killed(hierarchy, name)

    def check_killed(self, hierarchy, name):
        with subprocess.Popen([sys.executable, "-c", KILLED, hierarchy, name], stdout=subprocess.PIPE, text=True) as test:
            directory = test.stdout.readline().strip()
            leftovers.remove_cgroups(hierarchy)
            with open(os.path.join(directory, "cgroup.procs"), encoding="ascii") as procs:
                self.assertEqual(procs.read().count("\n"), 1)
            test.kill()

        def is_removed():
            leftovers.remove_cgroups(hierarchy)
            return not os.path.exists(os.path.dirname(directory))
        wait(is_removed, "it is removed")


if __name__ == "__main__":
    try:
        rootfs()
    except Unavailable as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
