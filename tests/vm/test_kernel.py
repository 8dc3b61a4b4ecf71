#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One kernel: which hooks bpfpush attaches, against tests/vm/golden/KERNEL, and the counted tests of tests/bpf.

    test_kernel.py KERNEL [NAME...]     NAME: only this module, class or case of tests/bpf, such as
                                        test_network.UdpTest; "none": none

With GOLDEN_UPDATE=1 in the environment the golden file and the table of docs/kernels.md are
written again.
"""

import os
import sys
import unittest

from guest import COMPLAINT, main, run_guest
from hooks import Golden, lines_of
from kernels import write_page

# Those whose figures depend on the kernel.
COUNTED = ["test_" + name for name in (
    "block", "cgroup", "compat", "dns", "drops", "fileio", "filesystem", "hardirq", "memory", "network", "pagecache", "probes", "process",
    "scheduler", "softirq", "syscalls", "task", "tcppeer", "tcpstate", "throttle")]
# The native kernel counts them too, and they are the same on all kernels between the oldest and the newest.
ELSEWHERE = {"6.12": {"test_block", "test_dns", "test_drops", "test_hardirq", "test_process", "test_softirq", "test_tcppeer"}}
# But not what needs a compiler, and not what takes half a minute each.
LEFT_OUT = ["test_network.TcpTest.test_no_byte_is_lost_if_the_last_changes_of_state_are_missed",
            "test_network.TcpTest.test_connections_that_close_while_they_are_read_are_counted_once",
            "test_task.TaskTest.test_only_those_that_are_asked_have_processes"]
CAPABILITIES = "+bpf,+perfmon"
SCRIPT = """\
cat >/tmp/left-out <<'END'
{left_out}
END
cat >/tmp/deviations <<'END'
{deviations}
END
uname -r >/result/version
bpfpush list --json --config=/dev/null --for=1ms >/result/root 2>/result/root.errors
echo $? >/result/root.status
setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps={rights} --ambient-caps={rights} \\
	bpfpush list --json --config=/dev/null --for=1ms >/result/service 2>/result/service.errors
echo $? >/result/service.status
[ "$(cat /result/root.status)" != 0 ] || python3 /tests/vm/counted.py /tmp/left-out /tmp/deviations {names}
echo $? >/result/counted
"""
kernel, names = "6.1", COUNTED


class TestKernel(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.golden = Golden(kernel)
        script = SCRIPT.format(left_out="\n".join(LEFT_OUT), deviations="\n".join(cls.golden.deviations), rights=CAPABILITIES,
                               names=" ".join(names))
        cls.guest = run_guest(script, kernel=kernel, memory_mb=768, threads="single", timeout_s=1800)
        print(cls.guest.output)
        cls.version = cls.guest.file("version").strip()
        print(f"Linux {cls.version}; the golden file is of {cls.golden.version}")

    def refusals(self):
        """What is said instead of a list."""
        return [f"{who} ends with {self.guest.file(who + '.status').strip()}: {line.replace(self.version, 'RELEASE')}" for who in ("root", "service")
                if self.guest.file(who + ".status").strip() != "0" for line in self.guest.file(who + ".errors").splitlines()]

    def test_hooks_are_those_of_the_golden_file(self):
        lines = self.refusals() or lines_of(self.guest.file("root"), self.guest.file("service"))
        if os.environ.get("GOLDEN_UPDATE"):
            self.golden.version, self.golden.lines = self.version, lines
            self.golden.write()
            write_page()
        self.assertEqual(lines, self.golden.lines)

    def test_counted_tests_pass(self):
        self.assertEqual(self.guest.file("counted"), "0\n")

    def test_the_kernel_has_nothing_to_complain_of(self):
        self.assertNotRegex(self.guest.kernel_log, COMPLAINT)


if __name__ == "__main__":
    kernel = sys.argv[1]
    names = sys.argv[2:] or [name for name in COUNTED if name not in ELSEWHERE.get(kernel, ())]
    del sys.argv[1:]
    main(kernel=kernel)
