# SPDX-License-Identifier: Apache-2.0
"""Completion offers what the program knows: commands, options, values and the names of collectors."""

import os
import re
import shutil
import subprocess
import sys
import unittest

import program

BPFPUSH = program.arguments()
DIRECTORY = sys.argv.pop(1)
NAMES = sorted(sys.argv.pop(1).split(","))


def lines_of(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line.split("\t")[0] for line in result.stdout.splitlines() if line]


def complete_bash(*words):
    script = ('source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bpfpush;'
              'printf "%s\\n" "${COMPREPLY[@]}"')
    return lines_of("bash", "--norc", "-c", script, "bash", os.path.join(program.ROOT, "completions/bpfpush.bash"), *words)


def complete_fish(line):
    script = 'source $argv[1]; complete -C $argv[2]'
    return lines_of("fish", "--no-config", "-c", script, os.path.join(program.ROOT, "completions/bpfpush.fish"), line)


class BashTest(unittest.TestCase):
    def test_the_first_word_is_a_command(self):
        self.assertEqual(set(complete_bash("bpfpush", "")), set(BPFPUSH.commands()) | {"help", "--help", "--version"})
        self.assertEqual(set(complete_bash("bpfpush", "help", "")), set(BPFPUSH.commands()))

    def test_each_command_has_the_options_that_it_knows(self):
        for command in BPFPUSH.commands():
            expected = {name + ("=" if has_value else "") for name, has_value in BPFPUSH.options(command).items()}
            self.assertEqual(set(complete_bash("bpfpush", command, "--")), expected, command)

    def test_values_are_offered_behind_the_equals_sign_that_bash_splits_at(self):
        self.assertEqual(complete_bash("bpfpush", "once", "--format", "="), ["table", "csv", "json", "bpftrace-json"])
        self.assertEqual(complete_bash("bpfpush", "once", "--format", "=", "b"), ["bpftrace-json"])
        self.assertEqual(complete_bash("bpfpush", "run", "--log-level", "w"), ["warning"])
        self.assertEqual(complete_bash("bpfpush", "once", "--sort", "=", "p9"), ["p90", "p99"])
        self.assertEqual(complete_bash("bpfpush", "once", "--collector-directory", "=", DIRECTORY, "--set", "=", "sys"), ["syscalls."])

    def test_names_of_collectors_come_from_their_directory(self):
        words = ["bpfpush", "once", "--collector-directory", "=", DIRECTORY, ""]
        self.assertLessEqual(set(NAMES), set(complete_bash(*words)))
        self.assertEqual(complete_bash(*words[:-1], "sched"), ["scheduler", "scheduler.cpu.time", "scheduler.migrations", "scheduler.run_queue.duration"])
        self.assertIn("syscall.duration", complete_bash(*words))
        words[1] = "check"
        self.assertNotIn("syscall.duration", complete_bash(*words))

    def test_dump_wants_a_stop_before_collectors(self):
        self.assertEqual(complete_bash("bpfpush", "dump", ""), BPFPUSH.stops())
        self.assertIn("memory", complete_bash("bpfpush", "dump", "--collector-directory", "=", DIRECTORY, "shape", ""))


@unittest.skipUnless(shutil.which("fish"), "fish is not installed")
class FishTest(unittest.TestCase):
    def test_the_first_word_is_a_command(self):
        self.assertEqual(set(complete_fish("bpfpush ")), set(BPFPUSH.commands()) | {"help"})

    def test_each_command_has_the_options_that_it_knows(self):
        for command in BPFPUSH.commands():
            self.assertEqual(set(complete_fish(f"bpfpush {command} --")), set(BPFPUSH.options(command)), command)

    def test_dump_wants_a_stop_before_collectors(self):
        self.assertEqual(set(complete_fish("bpfpush dump ")), set(BPFPUSH.stops()))

    def test_names_of_collectors_come_from_their_directory(self):
        self.assertLessEqual(set(NAMES), set(complete_fish(f"bpfpush check --collector-directory={DIRECTORY} ")))
        self.assertLessEqual({"syscall.duration", *NAMES}, set(complete_fish(f"bpfpush once --collector-directory={DIRECTORY} ")))


class ZshTest(unittest.TestCase):
    """By its text, since only a terminal makes zsh complete."""

    def setUp(self):
        self.text = program.read("completions/bpfpush.zsh")

    def test_each_command_has_the_options_that_it_knows(self):
        common = set(re.findall(r"--[\w-]+", re.search(r"all_options=\((.*?)\n\)", self.text, re.DOTALL).group(1)))
        for command in BPFPUSH.commands():
            self.assertIn(f"\t'{command}:", self.text)
            case = re.search(rf"^{command}\)\n(.*?)\t;;", self.text, re.MULTILINE | re.DOTALL).group(1)
            self.assertEqual(common | set(re.findall(r"'\*?(--[\w-]+)", case)), set(BPFPUSH.options(command)), command)
        self.assertIn("(" + " ".join(BPFPUSH.stops()) + ")", self.text)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_it_parses(self):
        path = os.path.join(program.ROOT, "completions/bpfpush.zsh")
        self.assertEqual(subprocess.run(["zsh", "-n", path], check=False).returncode, 0)


unittest.main(verbosity=2)  # names what it skips
