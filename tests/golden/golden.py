#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what a command prints with a file of this directory; GOLDEN_UPDATE=1 writes the file instead.

    golden.py FILE COMMAND…             text
    golden.py FILE PROTO COMMAND…       PROTO ends in .proto: an OTLP request, decoded by protoc first
"""

import difflib
import os
import shutil
import subprocess
import sys


def main():
    expected, command = sys.argv[1], sys.argv[2:]
    proto = command.pop(0) if command[0].endswith(".proto") else None
    output = subprocess.run(command, capture_output=True, check=True).stdout
    if proto:
        if not shutil.which("protoc"):
            print("skipped: protoc is missing")
            sys.exit(77)
        output = subprocess.run(["protoc", "--decode=otlp.ExportMetricsServiceRequest",
                                 f"--proto_path={os.path.dirname(proto)}", proto],
                                input=output, capture_output=True, check=True).stdout
    text = output.decode()  # with the CR of a CSV, which open() is not to take away
    if os.environ.get("GOLDEN_UPDATE"):
        with open(expected, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return
    with open(expected, encoding="utf-8", newline="") as file:
        wanted = file.read()
    if text != wanted:
        sys.stdout.writelines(difflib.unified_diff(wanted.splitlines(True), text.splitlines(True), "expected", "seen"))
        sys.exit(1)


main()
