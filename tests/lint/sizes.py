#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions stop at 50 lines, files of src/ at 400 and others at 600, folders of src/ at 15 .c files: nobody reads a longer
one as a whole."""

import collections
import os

import source

FUNCTION_LINES = 50
FILE_LINES = 600
SOURCE_LINES = 400
FOLDER_FILES = 15

# (path, function or None for the file): (lines at most, why it is one piece).
# The list may only become shorter.
EXCEPTIONS = {
    ("src/collector/label/cgroup.c", None): (510, "names of cgroups, the walk that finds them, and what a later process takes over"),
    ("src/export/transport/socket.c", None): (450, "one socket, its look-ups and its renewal"),
    ("src/export/transport/tcp.c", None): (450, "what was sent over TCP until the receiver has read it"),
}


def main():
    findings, checked = source.Findings(), 0

    def check(path, line, name, lines, limit):
        allowed = EXCEPTIONS.get((path, name), (limit,))[0]
        if lines > allowed:
            findings.add(path, line, f"{name or 'the file'} has {lines} lines; {allowed} are the limit")

    for path in source.files(".c", ".h"):
        text = source.read(path)
        checked += 1
        check(path, 1, None, text.count("\n"), SOURCE_LINES if path.startswith("src/") else FILE_LINES)
        for name, first, last in source.functions(text):
            check(path, first, name, last - first + 1, FUNCTION_LINES)
    folders = collections.Counter(os.path.dirname(path) for path in source.files(".c") if path.startswith("src/"))
    for folder, count in sorted(folders.items()):
        if count > FOLDER_FILES:
            findings.add(folder, 0, f"has {count} .c files; {FOLDER_FILES} are the limit")
    findings.finish(checked)


main()
