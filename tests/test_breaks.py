#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks one thing in a copy of this tree and runs a test that must see it, suite by suite: a suite that stays green would
show nothing. Needs what ./dev test full has fetched.

    test_breaks.py [TestBreaks.test_SUITE...]
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.append(os.path.join(ROOT, "tests", "lint"))
import source  # pylint: disable=wrong-import-position

# suite: (test, file, what stands there, what stands there instead)
BREAKS = {
    "lint": ("prose", "README.md", "bpfpush is a small native agent", "bpfpush is a small native agent " + "x" * 200),
    "unit": ("buf", "src/util/buf.c", "needed - 1 > buf->limit_bytes", "needed - 1 >= buf->limit_bytes"),
    "golden": ("otlp-cumulative-explicit", "src/export/otlp/message/point.c", "(double)raw / (double)metric->divisor", "(double)raw"),
    "collectors": ("dump", "bpf/scheduler.conf", "unit = {migration}", "unit = {move}"),
    "bpf": ("syscalls", "bpf/task/syscalls.h", "table_count(&value->count, 1, is_own)",
            "table_count(&value->count, bpf_get_prandom_u32() & 255 ? 1 : 2, is_own)"),
    "peers": ("otlp-scripted", "src/export/otlp/answer.c", "{ 502, 504, OTLP_AGAIN }", "{ 502, 503, OTLP_AGAIN }"),
    "system": ("service", "systemd/bpfpush.service.in", "Type=notify", "Type=exec"),
    "vm": ("5.10", "src/collector/kernel/kernel.c", "is too old", "is old"),
}


class TestBreaks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="bpfpush-breaks.")
        cls.addClassCleanup(place.cleanup)
        cls.top = place.name
        for path in source.files():
            os.makedirs(os.path.dirname(os.path.join(cls.top, path)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, path), os.path.join(cls.top, path))
        cls.run_there("meson", "setup", "build", check=True)
        cls.run_there("ninja", "-C", "build", check=True)

    @classmethod
    def run_there(cls, *words, **options):
        return subprocess.run(words, cwd=cls.top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)

    def look(self, suite, test):
        """(whether it passed, output) of one test of the copy."""
        self.run_there("ninja", "-C", "build", check=True)
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.top, "build", "meson-logs", suite + ".json"))
        run = self.run_there("meson", "test", "-C", "build", "--no-rebuild", "--print-errorlogs", "--suite", suite, "--logbase", suite, test)
        done = self.run_there(sys.executable, "-B", "tests/summary.py", f"build/meson-logs/{suite}.json")
        return done.returncode == 0, run.stdout + done.stdout

    def check(self, suite):
        test, path, old, new = BREAKS[suite]
        path = os.path.join(self.top, path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
        is_green, output = self.look(suite, test)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.assertFalse(is_green, output)
        self.assertIn(f"FAILED {test} (FAIL)", output)
        is_green, output = self.look(suite, test)
        self.assertTrue(is_green, output)

    def test_every_suite_but_fuzz_has_a_break(self):
        """What a fuzzer finds is in test_gate.py."""
        suites = subprocess.run(["sed", "-n", 's/^SUITES="\\(.*\\)"/\\1/p', os.path.join(ROOT, "dev")], capture_output=True, text=True, check=True).stdout
        self.assertEqual({*BREAKS, "fuzz"}, set(suites.split()))


for each in BREAKS:
    setattr(TestBreaks, "test_" + each, lambda self, suite=each: self.check(suite))


if __name__ == "__main__":
    unittest.main(verbosity=2)
