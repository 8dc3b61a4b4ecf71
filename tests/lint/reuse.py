#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`reuse lint`: each file has a copyright holder and a licence (https://reuse.software). tests/lint/reuse-install gets the program."""

import os
import subprocess
import sys

import source

INSTALL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "reuse-install")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def main():
    found = subprocess.run([INSTALL, "--cached"], capture_output=True, text=True, check=False)
    if found.returncode:
        skip(found.stderr.strip())
    if source.in_git() is None:
        skip("this is not a git tree: reuse would read build directories")
    sys.exit(subprocess.run([found.stdout.strip(), "--root", source.ROOT, "lint"], check=False).returncode)


main()
