# SPDX-License-Identifier: Apache-2.0
"""What the checks of form have in common: the files of the tree and a rough view of C."""

import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD_DIRECTORY = ("build.ninja", "meson-info")  # what tells one, whatever its name is


def in_git():
    """Paths that git knows or would add; None if the tree is not a git tree or git cannot read it."""
    if not os.path.exists(os.path.join(ROOT, ".git")):
        return None
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return set(done.stdout.split("\0")) - {""} if done.returncode == 0 else None


def is_foreign(directory):
    """Whether a directory holds nothing of the tree: a build, another tool's notes."""
    name = os.path.basename(directory)
    return (name.startswith(".") and name != ".ci") or name == "__pycache__" \
        or any(os.path.exists(os.path.join(directory, mark)) for mark in BUILD_DIRECTORY)


def in_directories():
    """The same for a tree without git."""
    for directory, directories, names in os.walk(ROOT):
        directories[:] = [name for name in directories if not is_foreign(os.path.join(directory, name))]
        yield from (os.path.relpath(os.path.join(directory, name), ROOT) for name in names if name != ".git")


def files(*endings):
    """The paths of the tree's own files that end so (all files if none is given), sorted."""
    known = in_git()
    return sorted(path for path in (in_directories() if known is None else known)
                  if (not endings or path.endswith(endings)) and os.path.isfile(os.path.join(ROOT, path))
                  and not os.path.islink(os.path.join(ROOT, path)))


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
