#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py on the logs that meson writes, filled with what unittest really prints and cmocka printed."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

SUMMARY = os.path.join(os.path.dirname(os.path.realpath(__file__)), "summary.py")

CMOCKA_WITH_A_SKIP = """\
[==========] Running 2 test(s).
[ RUN      ] an_address_is_read
[       OK ] an_address_is_read
[ RUN      ] a_report_is_read
needs the right to open a raw socket
[  SKIPPED ] a_report_is_read
[==========] 2 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] a_report_is_read

 1 SKIPPED TEST(S)
"""


def run_unittest(body):
    """(exit status, output) of a script with the given class bodies."""
    script = f"import unittest\n{body}\nunittest.main(verbosity=2)\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def entry(name, output, result="OK", duration=1.0):
    return {"name": f"bpfpush:unit / {name}", "stdout": output, "result": result, "duration": duration}


def summarize(*entries, more=()):
    with tempfile.TemporaryDirectory(prefix="bpfpush-summary.") as top:
        path = os.path.join("build", "meson-logs", "unit.json")
        os.makedirs(os.path.join(top, os.path.dirname(path)))
        with open(os.path.join(top, path), "w", encoding="utf-8") as log:
            log.writelines(json.dumps(item) + "\n" for item in entries)
        done = subprocess.run([sys.executable, SUMMARY, *more, path], capture_output=True, text=True, check=False, cwd=top)
    return done.returncode, done.stdout.splitlines()


class TestSummary(unittest.TestCase):
    def summarize_unittest(self, body):
        status, output = run_unittest(body)
        return summarize(entry("script", output, "FAIL" if status else "OK"))

    def test_a_class_that_cannot_be_set_up_is_one_failure(self):
        status, lines = self.summarize_unittest("""
class A(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("no disk")
    def test_one(self): pass
class B(unittest.TestCase):
    def test_two(self): pass
    def test_three(self): pass
""")
        self.assertEqual((status, lines[-1]), (1, "2 passed, 1 failed, 0 skipped"))

    def test_only_classes_that_cannot_be_set_up(self):
        one = ("class A{0}(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls): raise OSError\n"
               "    def test_one(self): pass\n")
        status, lines = self.summarize_unittest("\n".join(one.format(n) for n in range(13)))
        self.assertEqual((status, lines[-1]), (1, "0 passed, 13 failed, 0 skipped"))

    def test_subtests_that_fail_are_one_test(self):
        status, lines = self.summarize_unittest("""
class A(unittest.TestCase):
    def test_one(self):
        for n in range(5):
            with self.subTest(n=n): self.assertEqual(n, 9)
    def test_two(self): pass
""")
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_an_expected_failure_has_passed_and_an_unexpected_success_has_failed(self):
        body = """
class A(unittest.TestCase):
    @unittest.skip("no 32-bit code")
    def test_one(self): pass
    @unittest.expectedFailure
    def test_two(self): self.fail()
    @unittest.expectedFailure
    def test_three(self): self.fail()
"""
        status, lines = self.summarize_unittest(body)
        self.assertEqual((status, lines[0], lines[-1]), (0, "build/unit: 2 passed, 0 failed, 1 skipped", "2 passed, 0 failed, 1 skipped"))
        status, lines = self.summarize_unittest(body + """
    @unittest.expectedFailure
    def test_four(self): pass
    def test_five(self): self.fail()
""")
        self.assertEqual((status, lines[-1]), (1, "2 passed, 2 failed, 1 skipped"))

    def test_two_runs_in_one_output_have_failures_of_their_own(self):
        """As when a virtual machine's tests are part of a test."""
        _, bad = run_unittest("class A(unittest.TestCase):\n    def test_one(self): self.fail()\n    def test_two(self): pass\n")
        status, good = run_unittest("class B(unittest.TestCase):\n    def test_one(self): pass\n    def test_two(self): pass\n")
        self.assertEqual(summarize(entry("both", bad + good, "FAIL"))[1][-1], "3 passed, 1 failed, 0 skipped")
        self.assertEqual(status, 0)

    def test_skips_are_named_with_their_reasons_before_the_last_line(self):
        _, output = run_unittest("""
class A(unittest.TestCase):
    @unittest.skip("no 32-bit code")
    def test_one(self): pass
    def test_two(self): self.skipTest("it's raining")
    def test_three(self): pass
class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no tracefs")
    def test_four(self): pass
""")
        status, lines = summarize(entry("script", output), entry("datagram", CMOCKA_WITH_A_SKIP),
                                  entry("bpf", "skipped: needs root\n", "SKIP"))
        self.assertEqual((status, sorted(lines[1:-1])), (0, sorted([
            "", "skipped: build/unit / script: test_one: no 32-bit code", "skipped: build/unit / script: test_two: it's raining",
            "skipped: build/unit / script: setUpClass: no tracefs",
            "skipped: build/unit / datagram: a_report_is_read: needs the right to open a raw socket",
            "skipped: build/unit / bpf: needs root"])))
        self.assertEqual(lines[-1], "2 passed, 0 failed, 5 skipped")

    def test_skips_that_are_not_named_are_counted(self):
        _, lines = summarize(entry("quiet", "Ran 3 tests in 0.1s\n\nOK (skipped=2)\n"))
        self.assertIn("skipped: build/unit / quiet: 2 cases: the test does not name them", lines)
        self.assertEqual(lines[-1], "1 passed, 0 failed, 2 skipped")

    def test_what_meson_calls_failed_is_a_failure(self):
        for result in ("FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS"):
            status, lines = summarize(entry("script", "3 passed, 0 failed\n", result))
            self.assertEqual((status, lines[-1]), (1, "3 passed, 1 failed, 0 skipped"), result)

    def test_a_log_that_is_missing_is_a_failure(self):
        done = subprocess.run([sys.executable, SUMMARY, "build/meson-logs/nosuch.json"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout.splitlines()),
                         (1, ["build/nosuch: FAILED: no test ran", "build/nosuch: 0 passed, 1 failed, 0 skipped", "0 passed, 1 failed, 0 skipped"]))

    def test_the_slowest_come_first(self):
        _, lines = summarize(entry("a", "", duration=1), entry("b", "", duration=3), entry("c", "", duration=2), more=("--slowest", "2"))
        self.assertEqual(lines[1:], ["", "the slowest 2 of 3 tests, which took 6 s in all:", "     3.0 s  build/unit / b",
                                     "     2.0 s  build/unit / c", "", "3 passed, 0 failed, 0 skipped"])


unittest.main()
