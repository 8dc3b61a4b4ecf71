#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decides what the logs of `meson test` mean, after the last look at them. It prints each suite, the slowest tests, every
skip with its reason, what was flaky, and on the last line "N passed, N failed, N skipped". It exits with 1 if anything failed
or nothing ran.

If a test reports how many cases it ran (cmocka, unittest, or a closing line like ours), each case counts; otherwise the test
counts as one. What always counts as a failure, whatever the output says: a test that meson calls failed, a test that was to
run (SUITE.expected, which ./dev writes before each suite) and is not in the log, a run of no cases, and with --strict a skip
that is not in tests/skips.

The second look: with --failed, the tests are printed that may be run again alone, a line each, "DIRECTORY SUITE TEST
[CASE...]". None are if one of the failures is hard, which means that chance cannot have made it, or if there are too many.
What then passes (again-SUITE-TEST.json) is flaky: named, but no failure, unless there are more than MOST_FLAKY.

    tests/summary.py [--failed] [--strict] [--also-failed N] [--slowest N] [--record FILE --tier TIER --seconds N] LOG.json...
"""

import argparse
import datetime
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
MOST_FAILED, MOST_FLAKY = 12, 3

CMOCKA = re.compile(r"^\[\s+(PASSED|FAILED|SKIPPED|ERROR)\s+\] (\d+) test\(s\)", re.MULTILINE)
CMOCKA_SKIP = re.compile(r"^\[ RUN      \] (\w+)\n((?:(?!\[ ).*\n)*)\[  SKIPPED \] \1$", re.MULTILINE)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", re.MULTILINE)
UNITTEST_REMARK = re.compile(r"([a-z][a-z ]*)=(\d+)")
UNITTEST_BAD = re.compile(r"^(?:FAIL|ERROR): (\w+) \(([\w.<>]+)\)", re.MULTILINE)
UNITTEST_SKIP = re.compile(r"^ *(\w+) \([\w.<>]+\)(?: [\[(].*[\])])?(?:\n.*)? \.\.\. skipped (['\"])(.*)\2$", re.MULTILINE)
WHOLE_CLASS = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")
WHOLE_GUEST = "__main__.TestKernel.test_counted_tests_pass"  # tests/vm/test_kernel.py: fails with any case in the guest
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)

# What chance does not make. tests/alone ends with 128 and the number of the signal that ended the test.
HARD_SUITES = ("lint", "unit", "golden", "collectors", "fuzz")
HARD_OUTPUTS = (
    (re.compile(r"ERROR: (?:Address|Leak|Memory|Thread)Sanitizer|runtime error: |ERROR: libFuzzer"), "a sanitizer's report"),
    (re.compile(r"died with <Signals\.SIG(?:SEGV|ABRT|BUS|ILL|FPE|SYS)|\bSegmentation fault|\bcore dumped|"
                r"exit (?:status|code) (?:-(?:4|6|7|8|11)|13[24569])\b"), "a crash"),
    (re.compile(r"^FAIL: test_the_kernel_has_nothing_to_complain_of|"
                r"\] (?:BUG: |Oops: |general protection fault|Kernel panic|WARNING: CPU: )", re.MULTILINE), "a kernel's complaint"),
)


class Count:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def any(self):
        return self.passed or self.failed or self.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def count_unittest(ran, remarks, output):
    """"Ran N tests" does not include a setUpClass that failed or skipped, and each failed subtest of a
    test is a failure of its own: what is subtracted from N must be tests that N includes. An expected
    failure did what it was expected to do: it passed; if it does not fail, that is a failure."""
    said = {key: int(value) for key, value in UNITTEST_REMARK.findall(remarks)}
    bad = set(UNITTEST_BAD.findall(output))
    failed = (len(bad) or said.get("failures", 0) + said.get("errors", 0)) + said.get("unexpected successes", 0)
    skipped = said.get("skipped", 0)
    names = [name for name, _ in bad] + [name for name, _, _ in UNITTEST_SKIP.findall(output)]
    not_run = sum(name in WHOLE_CLASS for name in names)
    if not (ran or failed or skipped):
        return Count(failed=1)  # a run of nothing shows nothing
    return Count(max(0, ran - failed - skipped + not_run), failed, skipped)


def cases_said(output):
    """The cases that a test's output reports; all zero if it reports none."""
    count = Count()
    for word, number in CMOCKA.findall(output):
        if word == "PASSED":
            count.passed += int(number)
        elif word == "SKIPPED":
            count.skipped += int(number)
        else:
            count.failed += int(number)
    begin = 0
    for ran in UNITTEST.finditer(output):  # each with what was said since the one before
        count.add(count_unittest(int(ran[1]), ran[2] or "", output[begin:ran.end()]))
        begin = ran.end()
    for passed, failed, skipped in PLAIN.findall(output):
        count.add(Count(int(passed), int(failed), int(skipped or 0)))
    return count


def output_of(entry):
    return (entry.get("stdout") or "") + "\n" + (entry.get("stderr") or "")


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("skipped: ") if lines else "no reason given"


class Test:
    """A test that was to run, and what came of it."""

    def __init__(self, suite, name, entry, again):
        self.suite, self.name, self.entry, self.again = suite, name, entry, again
        self.count = self.count_look(entry)
        self.is_flaky = False
        if self.count.failed and again:
            second = self.count_look(again)
            self.is_flaky = not second.failed
            if self.is_flaky:
                # If only the failed cases ran again, the others passed at the first look.
                self.count = Count(max(second.passed, self.count.passed + self.count.failed), 0, max(second.skipped, self.count.skipped))

    def title(self):
        return f"{self.suite} / {self.name}" if self.name else self.suite

    def count_look(self, entry):
        if not entry:
            return Count(failed=1)
        count = cases_said(output_of(entry))
        result = entry["result"]
        if result == "OK":
            return count if count.any() else Count(passed=1)
        if result == "SKIP" and "fuzz" not in self.suite:  # libFuzzer ends with meson's status of a skip when it has found something
            return Count(skipped=max(1, count.skipped))
        return Count(count.passed, max(1, count.failed), count.skipped)

    def why_failed(self):
        if not self.entry:
            return "it did not run: the suite ended before it"
        if self.entry["result"] == "OK" and "Ran 0 tests" in output_of(self.entry):
            return "it ran no cases"
        return self.entry["result"]

    def why_hard(self):
        """Why a second look could not change anything, or None."""
        if not self.entry:
            return "it did not run"
        if self.suite.split("/")[-1] in HARD_SUITES:
            return "chance plays no part in this suite"
        if self.entry["result"] == "SKIP" or self.why_failed() == "it ran no cases":
            return "it did not run"
        if self.entry["result"] != "TIMEOUT" and self.entry.get("returncode", 0) > 128:
            return f"signal {self.entry['returncode'] - 128} ended it"
        return next((reason for pattern, reason in HARD_OUTPUTS if pattern.search(output_of(self.entry))), None)

    def failed_cases(self):
        """Those of a virtual machine, if nothing else failed: its other cases need not run again."""
        if not self.suite.endswith("/vm"):
            return []
        cases = {where if where.endswith(name) else f"{where}.{name}" for name, where in UNITTEST_BAD.findall(output_of(self.entry))}
        cases.discard(WHOLE_GUEST)
        return sorted(cases) if all(case.startswith("test_") and case.count(".") == 2 for case in cases) else []

    def skips(self):
        """(case or None for the whole test, reason) of everything that was skipped."""
        entry = self.again if self.is_flaky else self.entry
        if not entry or not self.count.skipped:
            return []
        if entry["result"] == "SKIP":
            return [(None, last_line((entry.get("stderr") or "") + "\n" + (entry.get("stdout") or "")))]
        output = output_of(entry)
        named = [(case, last_line(said)) for case, said in CMOCKA_SKIP.findall(output)]
        named += [(case, reason) for case, _, reason in UNITTEST_SKIP.findall(output)]
        unnamed = self.count.skipped - len(named)
        return named + ([(f"{unnamed} cases", "the test does not name them")] if unnamed > 0 else [])

    def why_flaky(self):
        lines = output_of(self.entry).splitlines()
        said = [line for line in lines if re.match(r"[\w.]*(Error|Expired|Exception)\b", line)] or [line for line in lines if "FAIL" in line]
        return f"{self.entry['result']} at first{': ' + said[-1][:200] if said else ''}"


def read_log(path):
    """{test: entry}; empty if there is no log."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines if line.strip()]
    return {entry["name"].split(" / ")[-1]: entry for entry in entries}


def read_expected(path):
    """The tests that were to run, as `meson test --list` names them; None if nobody has said so."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as lines:
        return [line.strip().split(" / ")[-1] for line in lines if line.strip() and not line.startswith("No ")]


def read_suite(path):
    """The tests of one log."""
    base = os.path.splitext(path)[0]
    directory, suite = os.path.split(base)
    name = "/".join(base.split("/meson-logs/"))
    entries = read_log(path)
    expected = read_expected(base + ".expected")
    names = list(entries) + [test for test in expected or [] if test not in entries]
    if expected == [] or not names:
        names = [None]
    return name, [Test(name, test, entries.get(test), read_log(os.path.join(directory, f"again-{suite}-{test}.json")).get(test))
                  for test in names]


def read_cpu(path):
    """What the tests of one log took of the CPUs, in seconds; tests/alone writes it."""
    try:
        with open(os.path.splitext(path)[0] + ".cpu", encoding="ascii") as lines:
            return sum(map(float, lines))
    except FileNotFoundError:
        return 0


def read_skips():
    """The lines of tests/skips: patterns of what may be skipped."""
    with open(os.path.join(HERE, "skips"), encoding="utf-8") as lines:
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def read_flaky():
    """{suite / test: line} of tests/flaky."""
    with open(os.path.join(HERE, "flaky"), encoding="utf-8") as lines:
        return {line.split(": ")[0].split(" ", 1)[1]: line.strip() for line in lines if line.strip() and not line.startswith("#")}


def hash_tree():
    """The hash of the tree as git would commit it, or None where git cannot say, or is not installed."""
    if not shutil.which("git"):
        return None
    with tempfile.TemporaryDirectory(prefix="bpfpush-index.") as place:
        environment = {**os.environ, "GIT_INDEX_FILE": os.path.join(place, "index")}
        for words in (["add", "--all"], ["write-tree"]):
            done = subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                return None
        return done.stdout.strip()


class Summary:
    def __init__(self, paths, also_failed, is_strict):
        self.total = Count(failed=also_failed)
        self.suites = {}  # suite: Count and seconds
        self.tests = []
        self.failures, self.skipped, self.remarks = [], [], []
        self.allowed = read_skips()
        self.is_strict = is_strict
        for path in paths:
            self.add_suite(*read_suite(path), read_cpu(path))

    def add_suite(self, name, tests, cpu_seconds):
        part = Count()
        for test in tests:
            self.add_test(test)
            part.add(test.count)
        print(f"{name}: {part}")
        self.tests += tests
        self.suites[name] = {**vars(part), "seconds": round(sum(seconds(test) for test in tests)),
                             "cpu_seconds": round(cpu_seconds)}
        self.total.add(part)

    def add_test(self, test):
        if test.count.failed:
            what = f"FAILED {test.name} ({test.why_failed()})" if test.name else "FAILED: no test ran"
            print(f"{test.suite}: {what}")
            self.failures.append(test.title())
        for case, reason in test.skips():
            skip = f"{test.title()}{': ' + case if case else ''}: {reason}"
            self.skipped.append(skip)
            if not any(fnmatch.fnmatchcase(skip, pattern) for pattern in self.allowed):
                self.refuse_skip(test, skip)

    def refuse_skip(self, test, skip):
        self.remarks.append(f"not in tests/skips: {skip}")
        if self.is_strict:
            test.count.failed += 1
            test.count.skipped -= 1
            self.failures.append(skip)

    def flaky(self):
        return [test for test in self.tests if test.is_flaky]

    def print_slowest(self, n_slowest):
        slowest = sorted(((seconds(test), test.title()) for test in self.tests), reverse=True)
        if n_slowest and slowest:
            print(f"\nthe slowest {len(slowest[:n_slowest])} of {len(slowest)} tests, which took {sum(took for took, _ in slowest):.0f} s in all:")
            for took, title in slowest[:n_slowest]:
                print(f"{took:8.1f} s  {title}")
            print()

    def print_flaky(self):
        known, flaky = read_flaky(), self.flaky()
        for test in flaky:
            print(f"flaky: {test.title()}: {test.why_flaky()}")
            keep_outputs(test)
            if test.title() not in known:
                print(f"new: {test.title()}: mend it, or add a line to tests/flaky")
        if len(flaky) > MOST_FLAKY:
            print(f"FAILED: {len(flaky)} tests passed only at the second look; {MOST_FLAKY} may")
            self.total.failed += 1
            self.failures.append("too many flaky tests")

    def close(self, n_slowest):
        self.print_slowest(n_slowest)
        for line in self.skipped:
            print(f"skipped: {line}")
        for line in self.remarks:
            print(line)
        self.print_flaky()

    def record(self, path, tier, took):
        record = {
            "tree": hash_tree(), "tier": tier, "ended": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "seconds": took, **vars(self.total), "strict": self.is_strict, "failures": self.failures,
            "flaky": [test.title() for test in self.flaky()], "skips": self.skipped, "suites": self.suites,
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


def seconds(test):
    return (test.entry or {}).get("duration") or 0


def keep_outputs(test):
    """What both looks at a flaky test printed, in meson-logs/flaky/."""
    directory, suite = test.suite.split("/")
    place = os.path.join(directory, "meson-logs", "flaky")
    os.makedirs(place, exist_ok=True)
    for look, entry in (("first", test.entry), ("second", test.again)):
        with open(os.path.join(place, f"{suite}-{test.name}.{look}.txt"), "w", encoding="utf-8") as file:
            file.write(output_of(entry))


def print_failed(paths, also_failed):
    """What a second look may run."""
    failed = [test for path in paths for test in read_suite(path)[1] if test.count.failed]
    hard = [(test, test.why_hard()) for test in failed if test.why_hard()]
    for test, reason in hard:
        print(f"no second look: {test.title()}: {reason}", file=sys.stderr)
    if len(failed) > MOST_FAILED:
        print(f"no second look: {len(failed)} tests failed", file=sys.stderr)
    if hard or also_failed or len(failed) > MOST_FAILED:
        return
    for test in failed:
        print(*test.suite.split("/"), test.name, *test.failed_cases())


def print_record(path):
    """What the last run found, and whether it was of this tree."""
    if not os.path.exists(path):
        print("no run has been recorded; ./dev test records one")
        return 1
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    for suite, part in record["suites"].items():
        print(f"{part['seconds']:6} s, {part['cpu_seconds']:6} s of a CPU  {suite}: {part['passed']} passed, {part['failed']} failed, {part['skipped']} skipped")
    for key in ("failures", "flaky"):
        for title in record[key]:
            print(f"{key.removesuffix('s').replace('failure', 'failed')}: {title}")
    is_this = record["tree"] is not None and record["tree"] == hash_tree()
    print(f"{record['tier']}{', strict' if record['strict'] else ''}, {record['seconds']} s, ended {record['ended']}, of "
          f"{'this tree' if is_this else 'another tree'} ({record['tree']})")
    print(Count(record["passed"], record["failed"], record["skipped"]))
    return 0 if is_this and not record["failed"] else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--failed", action="store_true", help="print what may be run again")
    parser.add_argument("--last", metavar="FILE", help="print this record of a run")
    parser.add_argument("--strict", action="store_true", help="a skip that tests/skips does not have is a failure")
    parser.add_argument("--also-failed", type=int, default=0, help="failures that no log holds")
    parser.add_argument("--slowest", type=int, default=0, help="list so many of the slowest tests")
    parser.add_argument("--record", metavar="FILE", help="write there what came of it")
    parser.add_argument("--tier", default="suites", help="for the record: what was run")
    parser.add_argument("--seconds", type=int, default=0, help="for the record: how long it took")
    parser.add_argument("logs", nargs="*")
    arguments = parser.parse_args()

    if arguments.last:
        return print_record(arguments.last)
    if arguments.failed:
        return print_failed(arguments.logs, arguments.also_failed)
    summary = Summary(arguments.logs, arguments.also_failed, arguments.strict)
    summary.close(arguments.slowest)
    if arguments.record:
        summary.record(arguments.record, arguments.tier, arguments.seconds)
    print(summary.total)
    return 1 if summary.total.failed or not summary.total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
