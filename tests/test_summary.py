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


def entry(name, output, result="OK", duration=1.0, returncode=0):
    return {"name": f"bpfpush:unit / {name}", "stdout": output, "result": result, "duration": duration, "returncode": returncode}


def summarize(*entries, more=(), suite="unit", expected=None, again=(), **environment):
    """(exit status, lines) of a log with these entries; expected: the tests that were to run; again: the second look."""
    with tempfile.TemporaryDirectory(prefix="bpfpush-summary.") as top:
        logs = os.path.join("build", "meson-logs")
        os.makedirs(os.path.join(top, logs))

        def write(name, lines):
            with open(os.path.join(top, logs, name), "w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)

        write(suite + ".json", [json.dumps(item) for item in entries])
        if expected is not None:
            write(suite + ".expected", [f"bpfpush:{suite} / {name}" for name in expected])
        for item in again:
            write(f"again-{suite}-{item['name'].split(' / ')[-1]}.json", [json.dumps(item)])
        done = subprocess.run([sys.executable, SUMMARY, *more, os.path.join(logs, suite + ".json")], capture_output=True, text=True,
                              check=False, cwd=top, env={**os.environ, **environment})
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
        self.assertEqual((status, sorted(line for line in lines[1:-1] if "not in tests/skips" not in line)), (0, sorted([
            "skipped: build/unit / script: test_one: no 32-bit code", "skipped: build/unit / script: test_two: it's raining",
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

    def test_a_test_that_did_not_run_is_a_failure(self):
        """As when the runner dies in the middle of a suite."""
        for expected, entries, failed in ((["a", "b"], [entry("a", "")], 1), (["a", "b"], [], 2), ([], [], 1)):
            status, lines = summarize(*entries, expected=expected)
            self.assertEqual((status, lines[-1]), (1, f"{len(entries)} passed, {failed} failed, 0 skipped"), expected)

    def test_a_run_of_no_cases_is_a_failure(self):
        _, output = run_unittest("class A(unittest.TestCase): pass\n")
        self.assertEqual(summarize(entry("empty", output))[1][-1], "0 passed, 1 failed, 0 skipped")

    def test_what_a_fuzzer_found_is_no_skip(self):
        status, lines = summarize(entry("fuzz-a", "==1== ERROR: libFuzzer: deadly signal\n", "SKIP", returncode=77), suite="fuzz")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_a_skip_that_is_not_allowed_is_a_failure_where_a_change_is_judged(self):
        known = entry("probes", "test_latency (a.B.test_latency) ... skipped 'this kernel has no kprobes'\nRan 2 tests in 1s\n\nOK (skipped=1)\n")
        other = entry("peers", "skipped: needs a receiver\n", "SKIP")
        self.assertEqual(summarize(known, suite="bpf", more=["--strict"])[1][-1], "1 passed, 0 failed, 1 skipped")
        status, lines = summarize(known, other, suite="bpf", more=["--strict"])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 1 skipped"))
        self.assertIn("not in tests/skips: build/bpf / peers: needs a receiver", lines)
        self.assertEqual(summarize(known, other, suite="bpf")[0], 0)

    def test_what_passes_at_the_second_look_is_flaky(self):
        first = entry("a", "ok\nAssertionError: 511 != 500\nFAILED (failures=1)\n2 passed, 1 failed\n", "FAIL", returncode=1)
        status, lines = summarize(first, suite="bpf", again=[entry("a", "3 passed, 0 failed\n")])
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed, 0 skipped"))
        self.assertIn("flaky: build/bpf / a: FAIL at first: AssertionError: 511 != 500", lines)
        self.assertIn("new: build/bpf / a: mend it, or add a line to tests/flaky", lines)
        again = entry("a", "2 passed, 1 failed\n", "FAIL", returncode=1)
        self.assertEqual(summarize(first, suite="bpf", again=[again])[1][-1], "2 passed, 1 failed, 0 skipped")

    def test_too_many_flaky_tests_are_a_failure(self):
        for n, failed in ((3, 0), (4, 1)):
            first = [entry(f"test-{i}", "", "FAIL", returncode=1) for i in range(n)]
            status, lines = summarize(*first, suite="bpf", again=[entry(f"test-{i}", "") for i in range(n)])
            self.assertEqual((status, lines[-1]), (failed, f"{n} passed, {failed} failed, 0 skipped"))

    def test_the_second_look_is_at_what_chance_can_have_made(self):
        def looked_at(*entries, suite="bpf", more=(), expected=None):
            return summarize(*entries, suite=suite, more=["--failed", *more], expected=expected)[1]

        soft = entry("a", "1 passed, 1 failed\n", "FAIL", returncode=1)
        self.assertEqual(looked_at(soft, entry("b", "")), ["build bpf a"])
        self.assertEqual(looked_at(entry("a", "", "TIMEOUT", returncode=143)), ["build bpf a"])
        for hard in (entry("b", "==7==ERROR: AddressSanitizer: heap-use-after-free\n", "FAIL", returncode=1),
                     entry("b", "x.c:1:2: runtime error: shift\n", "FAIL", returncode=1),
                     entry("b", "", "FAIL", returncode=139),
                     entry("b", "subprocess.CalledProcessError: Command '['x']' died with <Signals.SIGSEGV: 11>.\n", "FAIL", returncode=1),
                     entry("b", "[   12.5] Kernel panic - not syncing: Fatal exception\n", "FAIL", returncode=1),
                     entry("b", "[   12.5] BUG: kernel NULL pointer dereference\n", "FAIL", returncode=1),
                     entry("b", "Ran 0 tests in 0.000s\n\nOK\n")):
            self.assertEqual(looked_at(soft, hard), [], hard)
        self.assertEqual(looked_at(soft, suite="unit"), [])
        self.assertEqual(looked_at(soft, more=["--also-failed", "1"]), [])
        self.assertEqual(looked_at(soft, expected=["a", "b"]), [])
        self.assertEqual(len(looked_at(*(entry(f"test-{i}", "", "FAIL", returncode=1) for i in range(12)))), 12)
        self.assertEqual(looked_at(*(entry(f"test-{i}", "", "FAIL", returncode=1) for i in range(13))), [])

    def test_of_a_virtual_machine_only_the_failed_cases_run_again(self):
        case, whole, other = (f"FAIL: {name} ({where}.{name})\n" for name, where in (
            ("test_bytes", "test_tcp.TcpTest"), ("test_counted_tests_pass", "__main__.TestKernel"), ("test_hooks", "__main__.TestKernel")))
        self.assertEqual(summarize(entry("6.1", case + whole, "FAIL", returncode=1), suite="vm", more=["--failed"])[1],
                         ["build vm 6.1 test_tcp.TcpTest.test_bytes"])
        self.assertEqual(summarize(entry("6.1", case + whole + other, "FAIL", returncode=1), suite="vm", more=["--failed"])[1], ["build vm 6.1"])

    def test_a_record_says_what_was_found(self):
        with tempfile.TemporaryDirectory(prefix="bpfpush-summary.") as top:
            path = os.path.join(top, "gate.json")
            summarize(entry("a", "2 passed, 1 failed\n", "FAIL"), more=["--record", path, "--tier", "quick", "--seconds", "7"])
            with open(path, encoding="utf-8") as file:
                record = json.load(file)
        self.assertEqual((record["tier"], record["passed"], record["failed"], record["failures"], record["seconds"]),
                         ("quick", 2, 1, ["build/unit / a"], 7))
        self.assertEqual(record["suites"]["build/unit"]["seconds"], 1)

    def test_a_record_needs_no_git(self):
        with tempfile.TemporaryDirectory(prefix="bpfpush-summary.") as top:
            path = os.path.join(top, "gate.json")
            self.assertEqual(summarize(entry("a", ""), more=["--record", path], PATH=top)[0], 0)
            with open(path, encoding="utf-8") as file:
                self.assertIsNone(json.load(file)["tree"])
            self.assertEqual(summarize(more=["--last", path], PATH=top)[0], 1)

    def test_the_slowest_come_first(self):
        _, lines = summarize(entry("a", "", duration=1), entry("b", "", duration=3), entry("c", "", duration=2), more=("--slowest", "2"))
        self.assertEqual(lines[1:], ["", "the slowest 2 of 3 tests, which took 6 s in all:", "     3.0 s  build/unit / b",
                                     "     2.0 s  build/unit / c", "", "3 passed, 0 failed, 0 skipped"])


unittest.main()
