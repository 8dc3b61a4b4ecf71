#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the engine understands a shipped pair to be, its descriptor and its shape, is kept in tests/golden.

    golden_dump.py NAME...           the collectors that there are

A change of a collector shows as a difference from tests/golden/NAME.{descriptor,shape}. To take it over:
GOLDEN_UPDATE=1 meson test --suite collectors, which still fails, then look at what git diff says.
"""

import difflib
import os
import subprocess
import sys

BPFPUSH = os.environ["BPFPUSH"]
GOLDEN = os.environ["GOLDEN"]
STOPS = ["descriptor", "shape"]


def dump(stop, name):
    result = subprocess.run([BPFPUSH, "dump", "--config=/dev/null", stop, name], capture_output=True,
                            stdin=subprocess.DEVNULL, check=False)
    if result.returncode or result.stderr:
        print(f"dump {stop} {name}: exit {result.returncode}\n{result.stderr.decode()}")
        sys.exit(1)
    return result.stdout.decode()


def compare(path, seen):
    """-> whether the file said the same before it was written"""
    expected = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            expected = file.read()
    if os.environ.get("GOLDEN_UPDATE"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(seen)
    sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), seen.splitlines(True), path, "seen"))
    return bool(seen) and expected == seen


def main():
    names = sys.argv[1:]
    known = {f"{name}.{stop}" for name in names for stop in STOPS}
    surplus = [name for name in os.listdir(GOLDEN) if name.rsplit(".", 1)[-1] in STOPS and name not in known]
    if surplus:
        print(f"of no collector: {' '.join(surplus)}")
    results = [compare(os.path.join(GOLDEN, f"{name}.{stop}"), dump(stop, name)) for name in names for stop in STOPS]
    sys.exit(0 if all(results) and not surplus else 1)


main()
