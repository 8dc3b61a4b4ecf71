# SPDX-License-Identifier: Apache-2.0
"""What the commands print and how they exit, as a person meets them."""

import json
import re
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
        self.assertEqual(self.refuse("dump", "foo"), 'bpfpush dump: there is no stage "foo"; name one of descriptor, shape, snapshot, batch and otlp\n')
        self.assertEqual(self.refuse("dump"), "bpfpush dump: name a stage: descriptor, shape, snapshot, batch or otlp\n")

    def test_mistakes_about_collectors_have_their_line(self):
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            file.write("[agent]\ncollectors = memory\ncollectors = sycalls\ncollector_directory = /nonexistent/x\n")
            file.flush()
            result = subprocess.run([BPFPUSH.path, "check", f"--config={file.name}"], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 78)
        said = result.stderr.replace(file.name, "FILE").splitlines()
        self.assertEqual([line.split(" ")[0] for line in said], ["FILE:4:", "FILE:3:"])
        self.assertIn("collector directory /nonexistent/x cannot be used: No such file or directory", said[0])
        self.assertIn('there is no collector "sycalls"', said[1])

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

    def test_every_setting_is_listed_with_its_value(self):
        text = BPFPUSH.run("list", "--for=1ms", *HERE, "syscalls")
        self.assertEqual(re.findall(r"^  setting  (\w+ = \S+)", text, re.MULTILINE),
                         ["per_process = no", "syscalls_slots = 2048", "interrupted_slots = 256", "durations_slots = 256",
                          "duration = none"])
        item = json.loads(BPFPUSH.run("list", "--json", "--for=1ms", *HERE, "syscalls"))
        settings = {setting["name"]: setting for setting in item["settings"]}
        self.assertEqual(settings["per_process"], {"name": "per_process", "description": "One series for each process", "value": "no"})
        self.assertEqual(settings["syscalls_slots"],
                         {"name": "syscalls_slots", "description": "Keys for each CPU in table syscalls", "value": "2048"})
        self.assertEqual((settings["duration"]["default"], settings["duration"]["value"]), ("none", "none"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
