#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions stop at 50 lines and files at 600: what is longer is read by nobody as a whole."""

import source

FUNCTION_LINES = 50
FILE_LINES = 600

# (path, function or None for the file): (lines at most, since when, why it is one piece)
EXCEPTIONS = {
}


def main():
    findings, checked, unused = source.Findings(), 0, set(EXCEPTIONS)

    def check(path, line, name, lines, limit):
        allowed = EXCEPTIONS.get((path, name), (limit,))[0]
        if lines > limit:
            unused.discard((path, name))
        if lines > allowed:
            findings.add(path, line, f"{name or 'the file'} has {lines} lines; {allowed} are the limit")

    for path in source.files(".c", ".h"):
        text = source.read(path)
        checked += 1
        check(path, 1, None, text.count("\n"), FILE_LINES)
        for name, first, last in source.functions(text):
            check(path, first, name, last - first + 1, FUNCTION_LINES)
    for path, name in sorted(unused, key=str):
        findings.add(path, 0, f"the exception for {name or 'the file'} is not needed any more")
    findings.finish(checked)


main()
