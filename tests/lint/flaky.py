#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A test that is known to be flaky is a debt with a date: after DAYS it is to be mended, not known. The patterns of tests/skips
have a reason."""

import datetime
import re

import source

DAYS = 14
FLAKY = re.compile(r"(\d{4}-\d{2}-\d{2}) build[a-z-]*/\w+ / [\w.-]+: \S.*")
SKIP = re.compile(r"build[a-z*-]*/\w+ / [\w.*-]+(: [\w*]+)?: \S.*")


def lines(path):
    for number, line in enumerate(source.read(path).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def main():
    findings, checked = source.Findings(), 0
    for number, line in lines("tests/flaky"):
        checked += 1
        said = FLAKY.fullmatch(line)
        if not said:
            findings.add("tests/flaky", number, "is not YEAR-MONTH-DAY DIRECTORY/SUITE / TEST: what was seen")
        elif (datetime.date.today() - datetime.date.fromisoformat(said[1])).days > DAYS:
            findings.add("tests/flaky", number, f"has been known for more than {DAYS} days; mend the test")
    for number, line in lines("tests/skips"):
        checked += 1
        if not SKIP.fullmatch(line):
            findings.add("tests/skips", number, "is not DIRECTORY/SUITE / TEST[: CASE]: reason")
    findings.finish(checked)


main()
