#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ebpf_exporter's own objects with imported descriptors on the running kernel: those that need neither kprobes nor fentry.

    test_native.py [NAME...]     NAME: only these examples"""

import ctypes
import os
import subprocess
import sys
import tempfile
import unittest

import examples

CLONE_NEWNS, CLONE_NEWNET, MS_REC, MS_PRIVATE = 0x20000, 0x40000000, 0x4000, 0x40000  # sched.h, sys/mount.h
NAMES = ["syscalls", "cgroup", "cgroup_id_map", "cgroup_id_map_cgrp_storage", "kfree_skb", "udp-drops", "xdp", "percpu-softirq", "softirq-latency",
         "softirq-latency-net-rx", "timers", "raw-tracepoints", "biolatency", "uprobe", "usdt", "llcstat"]
SPANS = ["exec-trace", "bio-trace", "sched-trace"]


def enter_namespaces():
    """Its own lo, and its own tracefs."""
    libc = ctypes.CDLL(None, use_errno=True)
    tracing = tempfile.mkdtemp(prefix="bpfpush-judge.")
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) or \
            libc.mount(b"tracefs", tracing.encode(), b"tracefs", 0, None):
        print(f"skipped: needs its own network and tracefs: {os.strerror(ctypes.get_errno())}")
        sys.exit(77)
    os.environ["JUDGE_TRACING"] = tracing
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class TestNative(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-judge."))
        examples.prepare(cls.directory, NAMES)
        for name in NAMES:
            examples.amend(cls.directory, judge.RENAMED.get(name, name), judge.EXAMPLES[name].amends)
        cls.addClassCleanup(judge.harness.leftovers.remove_cgroups, judge.harness.cgroup_root())
        cls.results, cls.done = {}, []
        for names in (set(NAMES) - set(SPANS), set(NAMES) & set(SPANS)):
            if names:
                results, done = judge.count(sorted(names), cls.directory)
                cls.results.update(results)
                cls.done.append(done)

    def test_all_run(self):
        self.assertEqual([(done.returncode, done.stderr) for done in self.done], [(0, "")] * len(self.done))


def add_tests():
    for name in NAMES:
        def test(self, name=name):
            judge.EXAMPLES[name].check(self, *self.results[name])
        setattr(TestNative, "test_" + name.replace("-", "_"), test)


if __name__ == "__main__":
    examples.skip_if_missing()
    NAMES = sys.argv[1:] or NAMES + SPANS
    del sys.argv[1:]
    enter_namespaces()
    import judge
    import spans  # noqa: F401
    add_tests()
    if judge.harness.missing():
        print("skipped: needs " + judge.harness.missing())
        sys.exit(77)
    judge.harness.leftovers.remove_cgroups(judge.harness.cgroup_root())
    unittest.main(verbosity=2)
