#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In a guest: the counted tests of tests/bpf.

    counted.py LEFT_OUT DEVIATIONS NAME...      NAME: a module, a class or a case; "none": nothing

A line of the file LEFT_OUT, "MODULE.CLASS.CASE" or "MODULE.CLASS", is what does not run; one of DEVIATIONS,
"MODULE.CLASS.CASE: reason", a case that must fail.
"""

import os
import sys
import time
import unittest

WHERE = {"BPFPUSH": "/usr/bin/bpfpush", "BPFPUSH_WORKLOADS": "/usr/bin", "BPFPUSH_CLOCK": "/usr/lib/clock.so"}


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


def main():
    os.environ.update(WHERE)
    sys.path.insert(0, "/tests/bpf")
    with open(sys.argv[1], encoding="utf-8") as left_out, open(sys.argv[2], encoding="utf-8") as deviations:
        skipped = set(left_out.read().split())
        failing = {line.split(": ")[0] for line in deviations}
    loaded = unittest.defaultTestLoader.loadTestsFromNames([name for name in sys.argv[3:] if name != "none"])
    suite = unittest.TestSuite(case for case in cases(loaded) if not skipped & {case.id(), case.id().rpartition(".")[0]})
    for case in suite:
        if case.id() in failing:
            name = case.id().rpartition(".")[2]
            setattr(type(case), name, unittest.expectedFailure(getattr(type(case), name)))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Timed).run(suite)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
