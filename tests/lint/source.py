# SPDX-License-Identifier: Apache-2.0
"""What the checks of form have in common: the files of the tree and a rough view of C."""

import os
import re
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
NOT_OURS = re.compile(r"^(\.git|\.cache|build.*|__pycache__|subprojects)$")


def files(*endings):
    """Paths below the root that end so (all text files where none is given), sorted."""
    found = []
    for directory, directories, names in os.walk(ROOT):
        directories[:] = [name for name in directories if not NOT_OURS.match(name)]
        for name in names:
            path = os.path.relpath(os.path.join(directory, name), ROOT)
            if (not endings or name.endswith(endings)) and not os.path.islink(os.path.join(ROOT, path)) and name != ".git":
                found.append(path)
    return sorted(found)


def read(path):
    """The text of a file, or None where it is binary (fuzz corpora, test data)."""
    with open(os.path.join(ROOT, path), "rb") as file:
        data = file.read()
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def code_only(text):
    """C with comments, strings and characters blanked out; lines and columns stay where they were."""
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] + " " * (len(token) - 2) + token[-1]
        return re.sub(r"[^\n\t]", " ", token)
    return TOKEN.sub(blank, text)


FUNCTION_NAME = re.compile(r"(\w+)\s*\(")


def functions(text):
    """Yields (name, first line, last line) of each function; kernel layout puts its braces in column 0."""
    lines = code_only(text).split("\n")
    for number, line in enumerate(lines):
        if line != "{":
            continue
        first = number
        while first > 0 and lines[first - 1].strip() and not lines[first - 1].startswith(("}", "#")) \
                and not lines[first - 1].rstrip().endswith(";"):
            first -= 1
        last = number
        while last + 1 < len(lines) and not lines[last].startswith("}"):
            last += 1
        names = FUNCTION_NAME.findall(" ".join(lines[first:number]))
        yield (next((n for n in names if not n.startswith("_")), names[0] if names else "?"), number + 1, last + 1)


class Findings:
    """Collects and prints; the exit status says whether there were any."""

    def __init__(self):
        self.count = 0

    def add(self, path, line, what):
        print(f"{path}:{line}: {what}" if line else f"{path}: {what}")
        self.count += 1

    def finish(self, checked):
        if not checked:
            print("nothing to check: the check itself is broken")
        print(f"{checked} files checked, {self.count} findings")
        sys.exit(1 if self.count or not checked else 0)
