#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every shipped pair of object and descriptor is opened and checked by somebody without any right."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import rights

BUILD = os.environ.get("BUILD_DIR") or os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "build"))
SOURCES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "bpf")

# What the six collectors report: a name that goes is missed by somebody's dashboard.
METRICS = {
    "syscalls": {"bpfpush.syscall.count", "bpfpush.syscall.duration"},
    "network": {"process.network.io", "bpfpush.udp.datagrams", "bpfpush.tcp.connections", "bpfpush.tcp.retransmits",
                "bpfpush.tcp.rtt", "bpfpush.tcp.connection.duration"},
    "fileio": {"bpfpush.file.io", "bpfpush.file.operations", "bpfpush.file.operation.duration", "process.disk.io"},
    "scheduler": {"process.context_switches", "bpfpush.scheduler.run_queue.duration", "bpfpush.scheduler.cpu.time",
                  "bpfpush.scheduler.migrations"},
    "memory": {"process.paging.faults", "bpfpush.memory.oom_kills", "bpfpush.memory.reclaim.duration"},
    "tcpstate": {"bpfpush.tcp.state.transitions", "system.network.connection.count"},
}


def names(pattern, ending):
    return sorted(os.path.basename(path)[:-len(ending)] for path in glob.glob(os.path.join(pattern, "*" + ending)))


class TestCollectors(unittest.TestCase):
    """The pairs are copied to where anybody may read them: the tree may lie in a private directory."""

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-collectors."))
        os.chmod(cls.directory, 0o755)
        cls.bpfpush = shutil.copy(os.path.join(BUILD, "bpfpush"), cls.directory)
        cls.config = os.path.join(cls.directory, "empty.conf")
        open(cls.config, "w", encoding="ascii").close()

    def place(self, *only):
        """A new directory with copies of all pairs, or of some."""
        directory = tempfile.mkdtemp(dir=self.directory)
        os.chmod(directory, 0o755)
        for ending in (".bpf.o", ".conf"):
            for name in only or names(os.path.join(BUILD, "bpf"), ending):
                shutil.copy(os.path.join(BUILD, "bpf", name + ending), directory)
        return directory

    def check(self, directory, name):
        done = subprocess.run([self.bpfpush, "check", f"--config={self.config}", f"--collector-directory={directory}", name],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                              preexec_fn=rights.become_nobody)
        return done.returncode, done.stdout + done.stderr

    def test_every_program_of_the_tree_has_its_pair_in_the_build(self):
        shipped = names(SOURCES, ".bpf.c")
        self.assertLessEqual(set(METRICS), set(shipped))
        for ending in (".bpf.o", ".conf"):
            self.assertEqual(names(os.path.join(BUILD, "bpf"), ending), shipped)

    def test_every_pair_is_whole(self):
        directory = self.place()
        for name in names(SOURCES, ".bpf.c"):
            with self.subTest(name):
                code, output = self.check(directory, name)
                self.assertEqual(code, 0, output)
                self.assertIn(name, output)

    def test_the_six_report_what_they_promise(self):
        for name, promised in METRICS.items():
            done = subprocess.run([self.bpfpush, "dump", f"--config={self.config}", f"--collector-directory={self.place()}",
                                   "descriptor", name], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                                  check=False, preexec_fn=rights.become_nobody)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLessEqual(promised, set(re.findall(r"^metric \S+ -> (\S+)", done.stdout, re.MULTILINE)), name)

    def test_an_object_that_is_cut_off_is_refused(self):
        for name in names(SOURCES, ".bpf.c"):
            directory = self.place(name)
            path = os.path.join(directory, name + ".bpf.o")
            os.truncate(path, os.path.getsize(path) // 2)
            with self.subTest(name):
                code, output = self.check(directory, name)
                self.assertEqual(code, 78, output)
                self.assertIn(name + ".bpf.o", output)

    def test_a_descriptor_of_another_object_is_refused(self):
        shipped = names(SOURCES, ".bpf.c")
        for name, other in zip(shipped, shipped[1:] + shipped[:1]):
            directory = self.place(name)
            shutil.copy(os.path.join(BUILD, "bpf", other + ".conf"), os.path.join(directory, name + ".conf"))
            with self.subTest(name):
                code, output = self.check(directory, name)
                self.assertEqual(code, 78, output)
                self.assertIn(f"{name}.conf:", output)


    def test_a_pair_with_a_strange_file_name_is_refused(self):
        for strange in (b"x\xffy", b"x y", b"x:y", b"-x", b"x" * 64):
            directory = self.place("memory")
            for ending in (b".bpf.o", b".conf"):
                shutil.copy(os.path.join(directory.encode(), b"memory" + ending),
                            os.path.join(directory.encode(), strange + ending))
            config = os.path.join(self.directory, "strange.conf")
            with open(config, "w", encoding="ascii") as file:
                file.write(f"[agent]\ncollector_directory = {directory}\n")
            with self.subTest(strange):
                done = subprocess.run([self.bpfpush, "check", f"--config={config}"], stdin=subprocess.DEVNULL,
                                      capture_output=True, timeout=60, check=False, preexec_fn=rights.become_nobody)
                self.assertEqual(done.returncode, 78)
                self.assertIn(f'{directory}: "', done.stderr.decode())
                self.assertIn("cannot be a collector's name", done.stderr.decode())


    def test_a_file_name_makes_a_sound_attribute(self):
        directory = self.place("tcpstate")
        with open(os.path.join(directory, "tcpstate.conf"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(directory, "My-pair.conf"), "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?m)^\[label transitions\.from\]\n(.+\n)+", "", text))
        shutil.copy(os.path.join(directory, "tcpstate.bpf.o"), os.path.join(directory, "My-pair.bpf.o"))
        done = subprocess.run([self.bpfpush, "dump", f"--config={self.config}", f"--collector-directory={directory}", "shape",
                               "My-pair"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                              preexec_fn=rights.become_nobody)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\bfrom .* -> my_pair\.from\n")


if __name__ == "__main__":
    if not os.access(os.path.join(BUILD, "bpfpush"), os.X_OK):
        print("skipped: bpfpush is not built")
        sys.exit(77)
    if rights.nobody_refusal():
        print(f"skipped: needs {rights.nobody_refusal()}")
        sys.exit(77)
    unittest.main()
