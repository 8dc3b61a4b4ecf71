#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the logs of `meson test`: each suite, the slowest tests, every skip with its reason, and on
the last line "N passed, N failed, N skipped". Exits with 1 if anything failed or nothing ran.

If a test reports how many cases it ran (cmocka, unittest, or a closing line like ours), each case
counts; otherwise the test counts as one. Two things always count as a failure: a test that meson
calls failed, whatever its output says, and a log that is missing, because then a suite did not run.

    tests/summary.py [--also-failed N] [--slowest N] LOG.json...
"""

import argparse
import json
import os
import re
import sys

CMOCKA = re.compile(r"^\[\s+(PASSED|FAILED|SKIPPED|ERROR)\s+\] (\d+) test\(s\)", re.MULTILINE)
CMOCKA_SKIP = re.compile(r"^\[ RUN      \] (\w+)\n((?:(?!\[ ).*\n)*)\[  SKIPPED \] \1$", re.MULTILINE)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", re.MULTILINE)
UNITTEST_REMARK = re.compile(r"([a-z][a-z ]*)=(\d+)")
UNITTEST_BAD = re.compile(r"^(?:FAIL|ERROR): (\w+) (\([\w.<>]+\))", re.MULTILINE)
UNITTEST_SKIP = re.compile(r"^(\w+) \([\w.<>]+\)(?:\n.*)? \.\.\. skipped (['\"])(.*)\2$", re.MULTILINE)
WHOLE_CLASS = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)


class Count:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

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


def count_test(entry):
    count = cases_said(output_of(entry))
    result = entry["result"]
    if result in ("OK", "EXPECTEDFAIL"):
        return count if count.passed or count.skipped else Count(passed=1)
    if result == "SKIP":
        return Count(skipped=max(1, count.skipped))
    return Count(count.passed, max(1, count.failed), count.skipped)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("skipped: ") if lines else "no reason given"


def skips(entry, count):
    """(case or None for the whole test, reason) of everything that was skipped."""
    if entry["result"] == "SKIP":
        return [(None, last_line((entry.get("stderr") or "") + "\n" + (entry.get("stdout") or "")))]
    output = output_of(entry)
    named = [(case, last_line(said)) for case, said in CMOCKA_SKIP.findall(output)]
    named += [(case, reason) for case, _, reason in UNITTEST_SKIP.findall(output)]
    unnamed = count.skipped - len(named)
    return named + ([(f"{unnamed} cases", "the test does not name them")] if unnamed > 0 else [])


class Summary:
    def __init__(self, also_failed):
        self.total = Count(failed=also_failed)
        self.skipped = []  # lines
        self.durations = []  # (seconds, suite / test)

    def add_test(self, name, entry):
        count = count_test(entry)
        test = f"{name} / {entry['name'].split(' / ')[-1]}"
        self.durations.append((entry.get("duration") or 0, test))
        if count.failed:
            print(f"{name}: FAILED {entry['name']} ({entry['result']})")
        self.skipped += [f"skipped: {test}{': ' + case if case else ''}: {reason}" for case, reason in skips(entry, count)]
        return count

    def add_log(self, path):
        name = "/".join(os.path.splitext(path)[0].split("/meson-logs/"))
        part = Count()
        if os.path.exists(path):
            with open(path, encoding="utf-8") as lines:
                for line in filter(str.strip, lines):
                    part.add(self.add_test(name, json.loads(line)))
        else:
            print(f"{name}: FAILED: no test ran")
            part.add(Count(failed=1))
        print(f"{name}: {part}")
        self.total.add(part)

    def close(self, n_slowest):
        slowest = sorted(self.durations, reverse=True)[:n_slowest]
        if slowest:
            print(f"\nthe slowest {len(slowest)} of {len(self.durations)} tests, "
                  f"which took {sum(seconds for seconds, _ in self.durations):.0f} s in all:")
        for seconds, test in slowest:
            print(f"{seconds:8.1f} s  {test}")
        if slowest or self.skipped:
            print()
        for line in self.skipped:
            print(line)
        print(self.total)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--also-failed", type=int, default=0, help="failures that no log holds")
    parser.add_argument("--slowest", type=int, default=0, help="list so many of the slowest tests")
    parser.add_argument("logs", nargs="+")
    arguments = parser.parse_args()

    summary = Summary(arguments.also_failed)
    for path in arguments.logs:
        summary.add_log(path)
    summary.close(arguments.slowest)
    return 1 if summary.total.failed or not summary.total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
