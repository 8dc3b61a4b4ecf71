#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ebpf_exporter's own objects with imported descriptors on a kernel with kprobes and fentry.

    test_guest.py [NAMES...]     NAMES: only these examples, one run for each word"""

import os
import sys
import tempfile
import unittest

import examples

sys.path.append(os.path.join(examples.HERE, "..", "vm"))
from guest import COMPLAINT, main, run_guest

KERNEL = "6.12"
# One map's name twice is one metric with two layouts of buckets: never in one run.
RUNS = ["accept-latency tcp-syn-backlog ext4dist xfsdist cephfs-dist cfs-throttling cgroup-rstat-flushing icmp-ip inet-frags kstack cachestat",
        "tcp-syn-backlog-exp2zero oomkill pci bpf-jit shrinklat regexp tcp-retransmit tcp-window-clamps unix-socket-backlog unix-accept-latency "
        "cachestat-pre-kernel-5.16", "sock-trace cfs-throttling-trace"]
runs = RUNS


class TestGuest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="bpfpush-judge.") as directory:
            examples.prepare(directory, [name for run in runs for name in run.split()])
            files = {os.path.join(directory, name): "/judge/" + name for name in os.listdir(directory)}
            files.update({os.path.join(examples.HERE, name): "/tests/judge/" + name for name in ("judge.py", "inside.py", "spans.py")})
            script = "export BPFPUSH=bpfpush BPFPUSH_WORKLOADS=/usr/bin\nstatus=0\n" + "".join(
                f"python3 -B /tests/judge/inside.py /judge {run} || status=1\n" for run in runs) + "exit $status\n"
            cls.guest = run_guest(script, kernel=KERNEL, memory_mb=1024, programs=files)
        print(cls.guest.output)

    def test_examples_count_what_the_kernel_counts(self):
        self.assertEqual(self.guest.status, 0)

    def test_the_kernel_has_nothing_to_complain_of(self):
        self.assertNotRegex(self.guest.kernel_log, COMPLAINT)


if __name__ == "__main__":
    examples.skip_if_missing()
    runs = sys.argv[1:] or RUNS
    del sys.argv[1:]
    main(kernel=KERNEL)
