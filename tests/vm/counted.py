#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In a guest: the counted tests of tests/bpf.

    counted.py LEFT_OUT DEVIATIONS CASES NAME...        NAME: a module, a class or a case

A line of the file LEFT_OUT, "MODULE.CLASS.CASE" or "MODULE.CLASS", is what does not run; one of DEVIATIONS,
"MODULE.CLASS.CASE /PATTERN/: reason", a case that must fail with a message that has the pattern. How many cases there were is
written to the file CASES at the end. It is an error if there was none.
"""

import os
import re
import sys
import time
import unittest

WHERE = {"BPFPUSH": "/usr/bin/bpfpush", "BPFPUSH_WORKLOADS": "/usr/bin", "BPFPUSH_CLOCK": "/usr/lib/clock.so"}

DEVIATION = re.compile(r"(\S+) /(.*)/: ")


class Timed(unittest.TextTestResult):
    """Says what each case took."""

    def startTest(self, test):
        self.started = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.stream.writeln(f"    {time.monotonic() - self.started:.1f} s")


def cases(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases(each)
        else:
            yield each


def must_fail(case, pattern):
    """Makes it pass if an assertion of the case fails with that message, and only then."""
    method = getattr(case, case.id().rpartition(".")[2])

    def run():
        with case.assertRaisesRegex(case.failureException, pattern):
            method()
    setattr(case, method.__name__, run)


def main():
    os.environ.update(WHERE)
    sys.path.insert(0, "/tests/bpf")
    with open(sys.argv[1], encoding="utf-8") as left_out, open(sys.argv[2], encoding="utf-8") as deviations:
        skipped = set(left_out.read().split())
        patterns = dict(DEVIATION.match(line).groups() for line in deviations if line.strip())
    loaded = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[4:])
    suite = unittest.TestSuite(case for case in cases(loaded) if not skipped & {case.id(), case.id().rpartition(".")[0]})
    for case in suite:
        if case.id() in patterns:
            must_fail(case, patterns[case.id()])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Timed).run(suite)
    with open(sys.argv[3], "w", encoding="ascii") as file:
        file.write(f"{result.testsRun} run, {len(result.skipped)} skipped\n")
    sys.exit(not result.testsRun or not result.wasSuccessful())


if __name__ == "__main__":
    main()
