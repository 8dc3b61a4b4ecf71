# SPDX-License-Identifier: Apache-2.0
"""What the commands print and how they exit, as a person meets them."""

import json
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import program

BPFPUSH = program.arguments()
DIRECTORY = sys.argv.pop(1)
sys.argv.pop(1)
HERE = ["--config=/dev/null", f"--collector-directory={DIRECTORY}"]


class CommandsTest(unittest.TestCase):
    def refuse(self, *arguments):
        """What is said when the arguments are refused."""
        result = subprocess.run([BPFPUSH.path, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 64)
        return result.stderr

    def test_an_unknown_stage_is_named(self):
        self.assertEqual(self.refuse("dump", "foo"), 'bpfpush dump: unknown stage "foo": there are descriptor, shape, snapshot, batch, otlp\n')
        self.assertEqual(self.refuse("dump", "snapshto"), 'bpfpush dump: unknown stage "snapshto": did you mean "snapshot"?\n')
        self.assertEqual(self.refuse("dump"), "bpfpush dump: stage is missing: there are descriptor, shape, snapshot, batch, otlp\n")

    def test_mistakes_about_collectors_have_their_line(self):
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            file.write("[agent]\ncollectors = memory\ncollectors = sycalls\ncollector_directory = /nonexistent/x\n")
            file.flush()
            result = subprocess.run([BPFPUSH.path, "check", f"--config={file.name}"], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 78)
        said = result.stderr.replace(file.name, "FILE").splitlines()
        self.assertEqual([line.split(" ")[0] for line in said], ["FILE:4:", "FILE:3:"])
        self.assertIn("collector directory /nonexistent/x cannot be used: No such file or directory", said[0])
        self.assertIn('collector "sycalls" is not in ', said[1])

    def test_a_section_about_a_metric_needs_the_metric(self):
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            file.write("[agent]\ncollectors = memory\n[metric bpfpush.syscall.cuont]\ndrop_attributes = error.type\n"
                       "[metric bpfpush.memory.oom_kill]\n")
            file.flush()
            config = [f"--config={file.name}", f"--collector-directory={DIRECTORY}"]
            result = subprocess.run([BPFPUSH.path, "check", *config], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 78)
            said = result.stderr.replace(file.name, "FILE").splitlines()
            self.assertTrue(said[0].startswith('FILE:3: unknown metric "bpfpush.syscall.cuont"'), said)
            self.assertTrue(said[1].startswith('FILE:5: unknown metric "bpfpush.memory.oom_kill": did you mean'), said)
            # For another choice on the command line the same file serves.
            BPFPUSH.run("check", *config, "syscalls")

    def test_a_section_about_a_metric_waits_for_its_collector(self):
        section = "[metric bpfpush.syscall.count]\ndrop_attributes = error.type\n"
        for off in ("[agent]\ncollectors = memory\n", "[collector syscalls]\nenabled = no\n"):
            with self.subTest(off), tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
                file.write(off + section)
                file.flush()
                BPFPUSH.run("check", f"--config={file.name}", f"--collector-directory={DIRECTORY}")

    def test_help_that_cannot_be_written_is_an_error(self):
        for arguments in (["--help"], ["list", "--help"], ["help", "list"], ["--version"]):
            with self.subTest(arguments), open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run([BPFPUSH.path, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(result.returncode, 74)
                self.assertIn(": standard output cannot be written: No space left on device\n", result.stderr)

    def test_only_collectors_that_are_named_are_printed(self):
        shape = BPFPUSH.run("dump", *HERE, "shape", "memory")
        self.assertIn("fault_counts (flat table) key", shape)
        self.assertNotIn("created (flat table)", shape)
        self.assertIn("created (flat table)", BPFPUSH.run("dump", *HERE, "shape", "cgroup"))
        listed = BPFPUSH.run("list", "--json", "--for=1ms", *HERE, "memory").splitlines()
        self.assertEqual([json.loads(line)["collector"] for line in listed], ["memory"])
        self.assertIn('{"collector":"cgroup"', BPFPUSH.run("list", "--json", "--for=1ms", *HERE))

    def test_a_run_that_is_stopped_while_it_starts_ends_well(self):
        if "not loaded" in BPFPUSH.run("list", "--for=1ms", *HERE, "memory"):
            self.skipTest("nothing could be attached")
        command = [BPFPUSH.path, "run", *HERE, "--console", "--log-level=debug", "memory"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
            # The first line is about the tables, before they are made.
            said = run.stderr.readline()
            run.send_signal(signal.SIGTERM)
            run.stderr.read()
        self.assertEqual(run.returncode, 0, said)

    def test_a_command_may_take_its_time(self):
        if "not loaded" in BPFPUSH.run("list", "--for=1ms", *HERE, "memory"):
            self.skipTest("nothing could be attached")
        for words in (["list", *HERE, "memory"], ["dump", *HERE, "snapshot", "memory"]):
            with self.subTest(words[0]):
                result = subprocess.run([BPFPUSH.path, *words, "--", "sh", "-c", "sleep 1.5; echo it has ended >&2"],
                                        capture_output=True, text=True, check=True)
                self.assertEqual(result.stderr, "it has ended\n")

    def test_the_budget_is_listed(self):
        text = BPFPUSH.run("list", "--for=1ms", *HERE, "memory")
        if "not loaded" in text:
            self.skipTest("nothing could be attached")
        used, limit, memory, most = map(float, re.search(r"^budget: (\d+) of (\d+) series, ([\d.]+) of ([\d.]+) MiB", text, re.MULTILINE).groups())
        self.assertEqual(limit, 100000)
        self.assertLessEqual(used, limit)
        self.assertTrue(0 < memory < most, text)
        self.assertIn(", 1 entry,", text)
        budget = json.loads(BPFPUSH.run("list", "--json", "--for=1ms", *HERE, "memory"))["budget"]
        self.assertEqual((budget["series_limit"], budget["memory_limit_bytes"] >> 20), (limit, most))

    def test_every_setting_is_listed_with_its_value(self):
        text = BPFPUSH.run("list", "--for=1ms", *HERE, "syscalls")
        self.assertEqual(re.findall(r"^  setting  (\w+ = \S+)", text, re.MULTILINE),
                         ["per_process = no", "duration = none"])
        item = json.loads(BPFPUSH.run("list", "--json", "--for=1ms", *HERE, "syscalls"))
        settings = {setting["name"]: setting for setting in item["settings"]}
        self.assertEqual(settings["per_process"], {"name": "per_process", "description": "One series for each process", "value": "no"})
        self.assertEqual((settings["duration"]["default"], settings["duration"]["value"]), ("none", "none"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
