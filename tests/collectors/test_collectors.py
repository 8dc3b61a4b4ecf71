#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every shipped collector, its descriptor and its object, is opened and checked by somebody without any right."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import rights
from patience import PATIENCE_S

BUILD = os.environ.get("BUILD_DIR") or os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "build"))
SOURCES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "bpf")

# What the collectors report: a name that goes is missed by somebody's dashboard.
METRICS = {
    "syscalls": {"bpfpush.syscalls", "bpfpush.syscall.duration"},
    "network": {"process.network.io", "bpfpush.udp.datagrams", "bpfpush.tcp.connections", "bpfpush.tcp.retransmits",
                "bpfpush.tcp.rtt", "bpfpush.tcp.connection.duration"},
    "fileio": {"bpfpush.file.io", "bpfpush.file.operations", "bpfpush.file.operation.duration", "process.disk.io"},
    "scheduler": {"process.context_switches", "bpfpush.scheduler.run_queue.duration", "bpfpush.scheduler.cpu.time",
                  "bpfpush.scheduler.migrations"},
    "memory": {"process.paging.faults", "bpfpush.memory.oom_kills", "bpfpush.memory.reclaim.duration"},
    "tcpstate": {"bpfpush.tcp.state.transitions", "system.network.connection.count"},
    "usage": {"bpfpush.cgroup.memory.usage", "bpfpush.cgroup.tasks", "bpfpush.cgroup.pressure.time"},
    "throttle": {"bpfpush.cgroup.cpu.periods", "bpfpush.cgroup.cpu.throttled_periods", "bpfpush.cgroup.cpu.throttled_time"},
    "dns": {"dns.lookup.duration"},
    "pagecache": {"bpfpush.page_cache.accesses", "bpfpush.page_cache.misses", "bpfpush.page_cache.added", "bpfpush.page_cache.dirtied"},
    "filesystem": {"bpfpush.filesystem.operation.duration"},
    "tcppeer": {"bpfpush.tcp.peer.connections", "bpfpush.tcp.peer.io", "bpfpush.tcp.peer.retransmits"},
    "hardware": {"bpfpush.cpu.cycles", "bpfpush.cpu.instructions", "bpfpush.cpu.cache.references", "bpfpush.cpu.cache.misses",
                 "bpfpush.cpu.branch.misses"},
}


def names(pattern, ending):
    return sorted(os.path.basename(path)[:-len(ending)] for path in glob.glob(os.path.join(pattern, "*" + ending)))


def object_of(name):
    with open(os.path.join(SOURCES, name + ".conf"), encoding="utf-8") as file:
        shared = re.search(r"(?m)^object = (.+)$", file.read())
    return shared.group(1) if shared else name


class TestCollectors(unittest.TestCase):
    """The files are copied to where anybody may read them: the tree may lie in a private directory."""

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-collectors."))
        os.chmod(cls.directory, 0o755)
        cls.bpfpush = shutil.copy(os.path.join(BUILD, "bpfpush"), cls.directory)
        cls.config = os.path.join(cls.directory, "empty.conf")
        open(cls.config, "w", encoding="ascii").close()

    def place(self, *only):
        """A new directory with copies of all collectors, or of some."""
        directory = tempfile.mkdtemp(dir=self.directory)
        os.chmod(directory, 0o755)
        for name in only or names(SOURCES, ".conf"):
            for file in (name + ".conf", object_of(name) + ".bpf.o"):
                shutil.copy(os.path.join(BUILD, "bpf", file), directory)
        return directory

    def check(self, directory, name):
        done = subprocess.run([self.bpfpush, "check", f"--config={self.config}", f"--collector-directory={directory}", name],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              preexec_fn=rights.become_nobody)
        return done.returncode, done.stdout + done.stderr

    def test_all_of_the_tree_is_in_the_build_and_used(self):
        shipped = names(SOURCES, ".conf")
        self.assertLessEqual(set(METRICS), set(shipped))
        self.assertEqual(names(os.path.join(BUILD, "bpf"), ".conf"), shipped)
        objects = names(SOURCES, ".bpf.c")
        # A [probe] section takes the place of a descriptor.
        self.assertEqual({object_of(name) for name in shipped} | {"probe", "probe-event", "probe-text"}, set(objects))
        self.assertLessEqual(set(objects), set(names(os.path.join(BUILD, "bpf"), ".bpf.o")))

    def test_every_collector_is_whole(self):
        directory = self.place()
        for name in names(SOURCES, ".conf"):
            with self.subTest(name):
                code, output = self.check(directory, name)
                self.assertEqual(code, 0, output)
                self.assertIn(name, output)

    def descriptor(self, directory, name):
        done = subprocess.run([self.bpfpush, "dump", f"--config={self.config}", f"--collector-directory={directory}", "descriptor",
                               name], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              preexec_fn=rights.become_nobody)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_they_report_what_they_promise(self):
        directory = self.place()
        for name, promised in METRICS.items():
            found = re.findall(r"^\[metric \S+\] name=(\S+)", self.descriptor(directory, name), re.MULTILINE)
            self.assertLessEqual(promised, set(found), name)

    def test_a_histogram_of_the_tree_has_at_most_twenty_buckets(self):
        """As man bpfpush.conf says of `buckets`. Each has one bucket below its range, and one above."""
        directory, ranges = self.place(), {}
        for name in names(SOURCES, ".conf"):
            for found in re.finditer(r"^\[metric (\S+)\] .* range=(-?\d+)\.\.(-?\d+)(?: step (\d+))?$",
                                     self.descriptor(directory, name), re.MULTILINE):
                ranges[name, found[1]] = (int(found[3]) - int(found[2])) // int(found[4] or 1) + 2
        self.assertIn(("network", "times.rtt"), ranges)
        self.assertEqual({histogram: n for histogram, n in ranges.items() if n > 20}, {})

    def available(self, directory, *arguments, section=""):
        config = os.path.join(self.directory, "available.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(section)
        done = subprocess.run([self.bpfpush, "list", "--available", f"--config={config}", f"--collector-directory={directory}",
                               *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              preexec_fn=rights.become_nobody)
        return done.returncode, done.stdout, done.stderr

    def test_all_that_could_be_switched_on_are_listed(self):
        empty = tempfile.mkdtemp(dir=self.directory)
        os.chmod(empty, 0o755)
        os.mkdir(os.path.join(self.directory, "bpf"))
        open(os.path.join(self.directory, "build.ninja"), "w", encoding="ascii").close()
        self.addCleanup(os.remove, os.path.join(self.directory, "build.ninja"))
        self.addCleanup(shutil.rmtree, os.path.join(self.directory, "bpf"))
        for name in names(SOURCES, ".conf"):
            shutil.copy(os.path.join(BUILD, "bpf", name + ".conf"), os.path.join(self.directory, "bpf"))
        status, text, errors = self.available(empty, "--json", section="[collector block]\n[collector memory]\nenabled = no\n")
        self.assertEqual((status, errors), (0, ""))
        listed = {line["collector"]: line for line in map(json.loads, text.splitlines())}
        self.assertEqual(sorted(listed), names(SOURCES, ".conf"))
        self.assertEqual({name for name, line in listed.items() if line["enabled"]},
                         {"block", "cgroup", "fileio", "network", "scheduler", "syscalls", "tcpstate", "usage"})
        for name, line in listed.items():
            self.assertLessEqual(set(line["cost"].split(", ")), {"walk", "rare", "hot", "clock"}, name)
            self.assertTrue(line["description"], name)

    def test_own_collectors_are_on_and_listed_first(self):
        directory = self.place("block")
        with open(os.path.join(directory, "own.conf"), "w", encoding="ascii") as file:
            file.write("[collector]\ndescription = Mine\n")
        status, text, errors = self.available(directory)
        self.assertEqual((status, errors), (0, ""))
        self.assertRegex(text, r"(?m)\Ablock +on +clock +Operations of disks.*\nown +on +- +Mine$")

    def test_a_list_of_all_has_no_names_and_no_command(self):
        for words, reason in (["block"], "their names"), (["--", "true"], '"--" and the command'):
            self.assertEqual(self.available(self.place("block"), *words),
                             (64, "", f"bpfpush list: --available shows all collectors: remove {reason}\n"))

    def test_an_object_that_is_cut_off_is_refused(self):
        for name in names(SOURCES, ".conf"):
            directory = self.place(name)
            path = os.path.join(directory, object_of(name) + ".bpf.o")
            os.truncate(path, os.path.getsize(path) // 2)
            with self.subTest(name):
                code, output = self.check(directory, name)
                self.assertEqual(code, 78, output)
                self.assertIn(os.path.basename(path), output)

    def test_a_descriptor_of_another_object_is_refused(self):
        objects = names(SOURCES, ".bpf.c")
        following = dict(zip(objects, objects[1:] + objects[:1]))
        for name in names(SOURCES, ".conf"):
            directory, own = self.place(name), object_of(name)
            shutil.copy(os.path.join(BUILD, "bpf", following[own] + ".bpf.o"), os.path.join(directory, own + ".bpf.o"))
            with self.subTest(name):
                code, output = self.check(directory, name)
                self.assertEqual(code, 78, output)
                self.assertIn(f"{name}.conf:", output)


    def test_a_pair_with_a_strange_file_name_is_refused(self):
        for strange in (b"x\xffy", b"x y", b"x:y", b"-x", b"x" * 64):
            directory = self.place("cgroup")
            for ending in (b".bpf.o", b".conf"):
                shutil.copy(os.path.join(directory.encode(), b"cgroup" + ending),
                            os.path.join(directory.encode(), strange + ending))
            config = os.path.join(self.directory, "strange.conf")
            with open(config, "w", encoding="ascii") as file:
                file.write(f"[agent]\ncollector_directory = {directory}\n")
            with self.subTest(strange):
                done = subprocess.run([self.bpfpush, "check", f"--config={config}"], stdin=subprocess.DEVNULL,
                                      capture_output=True, timeout=PATIENCE_S, check=False, preexec_fn=rights.become_nobody)
                self.assertEqual(done.returncode, 78)
                self.assertIn(f'{directory}: "', done.stderr.decode())
                self.assertIn("cannot be a collector's name", done.stderr.decode())


    def test_a_file_name_makes_a_sound_attribute(self):
        directory = self.place("tcpstate")
        with open(os.path.join(directory, "tcpstate.conf"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(directory, "My-pair.conf"), "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?m)^\[label transitions\.from\]\n(.+\n)+|^object = .+\n", "", text))
        shutil.copy(os.path.join(directory, object_of("tcpstate") + ".bpf.o"), os.path.join(directory, "My-pair.bpf.o"))
        done = subprocess.run([self.bpfpush, "dump", f"--config={self.config}", f"--collector-directory={directory}", "shape",
                               "My-pair"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
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
