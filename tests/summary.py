#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the logs of `meson test` and closes with "N passed, N failed, N skipped" on the last line.

A test that says how many cases it ran (cmocka, unittest, or such a closing line of its own) counts as
that many, any other as one. Whatever a test says, one that meson calls failed counts as failed at least
once, and so does a log that is not there: a suite without tests hides something. Exits 1 when anything failed or nothing ran.

    tests/summary.py [--also-failed N] LOG.json...
"""

import argparse
import json
import os
import re
import sys

CMOCKA = re.compile(r"^\[\s+(PASSED|FAILED|SKIPPED|ERROR)\s+\] (\d+) test\(s\)", re.MULTILINE)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)
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


def cases_said(output):
    """The cases a test's output speaks of, zeros where it speaks of none."""
    count = Count()
    for word, number in CMOCKA.findall(output):
        if word == "PASSED":
            count.passed += int(number)
        elif word == "SKIPPED":
            count.skipped += int(number)
        else:
            count.failed += int(number)
    for number, remarks in UNITTEST.findall(output):
        said = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", remarks)}
        failed = said.get("failures", 0) + said.get("errors", 0)
        count.add(Count(int(number) - failed - said.get("skipped", 0), failed, said.get("skipped", 0)))
    for passed, failed, skipped in PLAIN.findall(output):
        count.add(Count(int(passed), int(failed), int(skipped or 0)))
    return count


def count_test(entry):
    output = (entry.get("stdout") or "") + "\n" + (entry.get("stderr") or "")
    count = cases_said(output)
    result = entry["result"]
    if result in ("OK", "EXPECTEDFAIL"):
        return count if count.passed or count.skipped else Count(passed=1)
    if result == "SKIP":
        return Count(skipped=max(1, count.skipped))
    return Count(count.passed, max(1, count.failed), count.skipped)


def last_line(entry):
    lines = [line for line in ((entry.get("stderr") or "") + "\n" + (entry.get("stdout") or "")).splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


def read_log(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--also-failed", type=int, default=0)
    parser.add_argument("logs", nargs="+")
    arguments = parser.parse_args()

    total = Count(failed=arguments.also_failed)
    for path in arguments.logs:
        name = "/".join(os.path.splitext(path)[0].split("/meson-logs/"))
        if not os.path.exists(path):
            print(f"{name}: FAILED: no test ran")
            total.add(Count(failed=1))
            continue
        part = Count()
        for entry in read_log(path):
            count = count_test(entry)
            part.add(count)
            if count.failed:
                print(f"{name}: FAILED {entry['name']} ({entry['result']})")
            elif entry["result"] == "SKIP":
                print(f"{name}: skipped {entry['name']}: {last_line(entry)}")
        print(f"{name}: {part}")
        total.add(part)
    print(total)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
