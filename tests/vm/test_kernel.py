#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One kernel: which hooks bpfpush attaches, against tests/vm/golden/KERNEL, and the counted tests of tests/bpf.

    test_kernel.py KERNEL [NAME...]     NAME: only this module, class or case of tests/bpf, such as
                                        test_network.UdpTest; "none": none

Without names, those of CORE run; with BPFPUSH_TEST_NIGHT=1 in the environment, all of COUNTED do, on the kernels WHOLE. The
golden file says how many that are. With GOLDEN_UPDATE=1, it and the table of docs/kernels.md are written again; a test
that finds a difference fails all the same.
"""

import os
import re
import sys
import unittest

from guest import COMPLAINT, main, run_guest
from hooks import BY_NIGHT, CASES, Golden, lines_of
from image import TESTS
from kernels import write_page

sys.path.append(TESTS)
from night import IS_NIGHT

# Those whose figures depend on the kernel.
COUNTED = ["test_" + name for name in (
    "block", "cgroup", "compat", "dns", "drops", "event_calls", "event_files", "event_probes", "event_tcp", "events", "fileio", "filesystem",
    "hardirq", "memory", "network", "pagecache", "probes", "process", "scheduler", "softirq", "syscalls", "task", "tcppeer", "tcpstate", "throttle", "usage")]
# For each change: each collector counts what it is for, by the hooks that each kernel has in its own way. What else is counted
# takes twice as long and hangs less on the kernel: by night, the oldest and the newest count all.
CORE = [
    "test_block.BlockTest.test_other_disks",
    "test_cgroup.CgroupTest.test_what_a_short_lived_cgroup_used_has_its_path",
    "test_compat",
    "test_dns.DnsTest.test_every_lookup_is_counted_with_its_error",
    "test_drops.DropsTest.test_datagrams_to_no_socket",
    "test_drops.DropsTest.test_datagrams_to_a_full_socket",
    "test_event_calls.LookupTest.test_each_lookup_is_there_with_error_and_duration",
    "test_event_calls.OomTest.test_a_victim_with_the_limit_and_its_memory_as_the_kernel_says",
    "test_event_calls.OpenTest.test_each_call_is_there_with_its_result",
    "test_event_calls.SignalTest.test_each_signal_is_there_with_sender_target_and_result",
    "test_event_files.SlowTest.test_each_is_there_with_its_place_and_result",
    "test_event_probes.EventTest.test_each_call_is_there_with_its_arguments_and_result",
    "test_event_tcp.AcceptTest.test_each_accepted_connection_is_there",
    "test_event_tcp.ConnectTest.test_each_attempt_is_there_with_its_error",
    "test_event_tcp.ConnectionTest.test_each_end_of_each_connection_is_there",
    "test_event_tcp.RetransmitTest.test_each_segment_is_there_that_the_kernel_counted",
    "test_events.ExecTest.test_each_is_there_with_its_arguments",
    "test_events.ExecTest.test_a_flood_is_limited_and_counted",
    "test_events.ExitTest",
    "test_fileio.FileioTest.test_operations_and_bytes_of_regular_files_are_counted",
    "test_fileio.FileioTest.test_failures_are_counted_by_error",
    "test_fileio.FileioTest.test_disk_bytes_are_those_of_the_kernel",
    "test_filesystem.FileSystemTest.test_every_operation_is_timed",
    "test_hardirq",
    "test_memory.FaultsTest.test_children_that_exit_at_once_are_counted",
    "test_memory.FaultsTest.test_pages_that_must_be_read_are_major_faults",
    "test_memory.LimitTest",
    "test_network.TcpTest.test_each_byte_is_counted_once_on_each_side",
    "test_network.TcpTest.test_connections_are_counted_by_role_and_error",
    "test_network.TcpTest.test_lost_segments_are_retransmits_and_no_bytes",
    "test_network.TcpTest.test_what_was_before_is_not_counted",
    "test_network.UdpTest",
    "test_pagecache",
    "test_probes.FunctionTest.test_results_and_errors",
    "test_probes.FunctionTest.test_calls_that_do_not_return_are_lost_and_spoil_no_other",
    "test_probes.KernelTest.test_results_and_errors",
    "test_probes.KernelTest.test_latency",
    "test_probes.KernelTest.test_a_name_that_several_functions_have",
    "test_probes.EventTest",
    "test_process",
    "test_scheduler.SchedulerTest.test_children_that_exit_at_once_are_counted",
    "test_scheduler.SchedulerTest.test_competitors_for_one_cpu_wait",
    "test_scheduler.SchedulerTest.test_moves_are_migrations",
    "test_softirq",
    "test_syscalls.SyscallsTest.test_calls_are_counted_by_name_and_error",
    "test_syscalls.SyscallsTest.test_calls_fail_only_with_the_errors_they_had",
    "test_syscalls.SyscallsTest.test_a_birth_is_one_call_and_not_two",
    "test_syscalls.SyscallsTest.test_unknown_numbers_share_one_series",
    "test_syscalls.SyscallsTest.test_calls_of_32_bit_code_are_not_taken_for_others",
    "test_syscalls.SyscallsTest.test_interrupted_calls_have_lasted_until_the_signal",
    "test_task.TaskTest.test_all_together_are_exact",
    "test_tcppeer.PeerTest.test_connections_and_bytes_are_counted_by_address",
    "test_tcpstate.TransitionsTest.test_every_change_of_state_is_counted_on_its_owner",
    "test_tcpstate.CountTest.test_sockets_older_than_the_agent_are_counted_on_their_owner",
    "test_tcpstate.CountTest.test_sockets_are_counted_in_every_network_namespace",
    "test_throttle.ThrottleTest.test_growth_is_that_of_cpu_stat",
    "test_usage"]
WHOLE = ("6.1", "newest")
LEFT_OUT = [
    # These need a compiler, or take half a minute each.
    "test_network.TcpTest.test_no_byte_is_lost_if_the_last_changes_of_state_are_missed",
    "test_network.TcpTest.test_connections_that_close_while_they_are_read_are_counted_once",
    "test_task.TaskTest.test_only_those_that_are_asked_have_processes",
    # These are about what the agent makes of what was counted, which is the same on all kernels.
    "test_cgroup.CgroupTest.test_attributes_that_are_left_out_add_up",
    "test_cgroup.CgroupTest.test_brief_processes_are_summed_in_their_unit",
    "test_cgroup.CgroupTest.test_units_are_folded_and_chosen",
    "test_cgroup.CgroupTest.test_what_nobody_knows_is_one_series",
    "test_network.TcpTest.test_processes_are_told_apart_for_one_of_two_collectors",
    "test_probes.CommandTest",
    "test_syscalls.InventedTest",
    "test_syscalls.SyscallsTest.test_a_parallel_cgroup_does_not_mix_in",
    "test_tcppeer.PeerTest.test_peers_without_room_are_counted_together"]
# All that are shipped, but the one that counts what no emulated CPU has.
COLLECTORS = sorted(name.removesuffix(".conf") for name in os.listdir(os.path.join(TESTS, "..", "bpf"))
                    if name.endswith(".conf") and name != "hardware.conf")
CAPABILITIES = "+bpf,+perfmon"
SCRIPT = """\
cat >/tmp/left-out <<'END'
{left_out}
END
cat >/tmp/deviations <<'END'
{deviations}
END
uname -r >/result/version
printf '[agent]\\ncollectors = {collectors}\\nmemory_limit = 64MiB\\n' >/tmp/all.conf # a guest is small, and all are many
bpfpush list --json --config=/tmp/all.conf --for=1ms >/result/root 2>/result/root.errors
echo $? >/result/root.status
setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps={rights} --ambient-caps={rights} \\
	bpfpush list --json --config=/tmp/all.conf --for=1ms >/result/service 2>/result/service.errors
echo $? >/result/service.status
[ "$(cat /result/root.status)" != 0 ] || [ -z "{names}" ] || {{
	python3 /tests/vm/counted.py /tmp/left-out /tmp/deviations /result/cases {names}
	echo $? >/result/counted
}}
"""
kernel, names, count = "6.1", CORE, CASES


class TestKernel(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.golden = Golden(kernel)
        script = SCRIPT.format(left_out="\n".join(LEFT_OUT), deviations="\n".join(cls.golden.deviations), rights=CAPABILITIES,
                               names=" ".join(names), collectors=", ".join(COLLECTORS))
        # What keeps programs from guessing what the kernel knows costs time; the guests of other tests have it.
        cls.guest = run_guest(script, kernel=kernel, append="mitigations=off", memory_mb=768, threads="single")
        print(cls.guest.output)
        cls.version = cls.guest.file("version").strip()
        print(f"Linux {cls.version}; the golden file is of {cls.golden.version}")
        cls.lines = cls.refusals() or lines_of(cls.guest.file("root"), cls.guest.file("service"))
        if os.environ.get("GOLDEN_UPDATE"):
            cls.write_golden()

    @classmethod
    def refusals(cls):
        """What is said instead of a list."""
        return [f"{who} ends with {cls.guest.file(who + '.status').strip()}: {line.replace(cls.version, 'RELEASE')}" for who in ("root", "service")
                if cls.guest.file(who + ".status").strip() != "0" for line in cls.guest.file(who + ".errors").splitlines()]

    @classmethod
    def write_golden(cls):
        """What is compared stays the golden file as it was."""
        new = Golden(kernel)
        new.version, new.lines = cls.version, cls.lines
        if count and not cls.refusals():
            new.counts[count] = cls.guest.file("cases").strip()
        new.write()
        write_page()

    def test_hooks_are_those_of_the_golden_file(self):
        self.assertEqual(self.lines, self.golden.lines)

    def test_no_module_is_forgotten(self):
        self.assertEqual({name.partition(".")[0] for name in CORE}, set(COUNTED))

    def test_counted_tests_pass(self):
        if not names:
            self.skipTest("none was asked for")
        self.assertEqual(self.guest.file("counted"), "" if self.refusals() else "0\n")

    def test_none_of_the_counted_tests_is_missing(self):
        if not count and not (names and all(re.fullmatch(r"test_\w+\.\w+\.test_\w+", name) for name in names)):
            self.skipTest("it is not known how many were asked for")
        # The second look asks for the cases that failed, and a case that is skipped then has not passed.
        expected = self.golden.counts.get(count, "") if count else f"{len(names)} run, 0 skipped"
        self.assertEqual(self.guest.file("cases").strip(), expected)

    def test_the_kernel_has_nothing_to_complain_of(self):
        self.assertNotRegex(self.guest.kernel_log, COMPLAINT)


if __name__ == "__main__":
    kernel = sys.argv[1]
    if IS_NIGHT and kernel in WHOLE:
        names, count = COUNTED, BY_NIGHT
    if len(sys.argv) > 2:
        names, count = [name for name in sys.argv[2:] if name != "none"], None
    del sys.argv[1:]
    main(kernel=kernel)
