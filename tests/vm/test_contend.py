#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bpf/test_contend.py on kernels and machines that make it hard to be exact.

    test_contend.py [CLASS]
"""

import unittest

from guest import COMPLAINT, main, run_guest

SCRIPT = """\
export BPFPUSH=/usr/bin/bpfpush BPFPUSH_WORKLOADS=/usr/bin
{before}
python3 /tests/bpf/test_contend.py
status=$?
{after}
exit $status
"""
CPU = "/sys/devices/system/cpu/cpu1/online"
COMING_AND_GOING = f"""\
come_and_go() {{
	while [ ! -e /run/over ]; do
		echo 0 >{CPU} && sleep 0.2 && echo 1 >{CPU} && sleep 0.5 && echo >>/result/times
	done
}}
come_and_go &
"""


class Guest:
    kernel = "6.1"
    before = after = ""
    options = {}

    @classmethod
    def setUpClass(cls):
        cls.guest = run_guest(SCRIPT.format(before=cls.before, after=cls.after), kernel=cls.kernel, **cls.options)
        print(cls.guest.output)

    def test_all_is_exact(self):
        self.assertEqual(self.guest.status, 0)

    def test_the_kernel_has_nothing_to_complain_of(self):
        self.assertNotRegex(self.guest.kernel_log, COMPLAINT)


class Preempting(Guest, unittest.TestCase):
    """The kernel preempts programs, and skips them meanwhile."""

    kernel = "newest"


class Stock(Guest, unittest.TestCase):
    """Debian 12 as it is installed: an ordinary user with two capabilities, and perf_event_paranoid = 3."""

    before = "cat /proc/sys/kernel/perf_event_paranoid >/result/paranoid"

    def test_the_setting_is_the_distribution_s(self):
        self.assertEqual(self.guest.file("paranoid"), "3\n")


class Small(Guest, unittest.TestCase):
    """256 MB of memory, all of the kernel preemptible, and a CPU that comes and goes all the time."""

    kernel = "6.12"
    options = {"append": "preempt=full", "memory_mb": 256}
    before = COMING_AND_GOING
    after = "touch /run/over; wait"

    def test_the_cpu_came_and_went(self):
        self.assertGreater(self.guest.file("times").count("\n"), 5)


if __name__ == "__main__":
    main()
