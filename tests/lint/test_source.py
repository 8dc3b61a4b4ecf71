#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks look at the tree's own files only: never at builds, wherever they are and whatever they are called."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
LIST = "import sys; sys.path.insert(0, 'tests/lint'); import source; print('\\n'.join(source.files('.c')))"


class TestFiles(unittest.TestCase):
    def setUp(self):
        self.top = self.enterContext(tempfile.TemporaryDirectory(prefix="bpfpush-lint."))
        os.makedirs(os.path.join(self.top, "tests/lint"))
        shutil.copy(os.path.join(HERE, "source.py"), os.path.join(self.top, "tests/lint"))
        for path in ("src/own.c", "src/builder/own.c", "obj-x86_64-linux-gnu/build.ninja", "obj-x86_64-linux-gnu/made.c",
                     "redhat-linux-build/meson-info/intro.json", "redhat-linux-build/deep/made.c", ".pc/patch/src/own.c"):
            os.makedirs(os.path.join(self.top, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(self.top, path), "w", encoding="utf-8"):
                pass

    def listed(self):
        return subprocess.run([sys.executable, "-B", "-c", LIST], capture_output=True, text=True, check=True, cwd=self.top).stdout.split()

    def git(self, *command):
        subprocess.run(["git", *command], check=True, capture_output=True, cwd=self.top)

    def test_without_git_builds_are_left_out(self):
        self.assertEqual(self.listed(), ["src/builder/own.c", "src/own.c"])

    def test_a_git_tree_is_what_git_knows_or_would_add(self):
        self.git("init", "-q")
        with open(os.path.join(self.top, ".gitignore"), "w", encoding="utf-8") as ignore:
            ignore.write("/obj-*/\n/redhat-*/\n/.pc/\n/src/builder/\n")
        self.git("add", "src/own.c")
        with open(os.path.join(self.top, "src", "new.c"), "w", encoding="utf-8"):
            pass
        self.assertEqual(self.listed(), ["src/new.c", "src/own.c"])

    def test_a_git_tree_that_git_refuses_is_walked(self):
        os.mkdir(os.path.join(self.top, ".git"))
        self.assertEqual(self.listed(), ["src/builder/own.c", "src/own.c"])


if __name__ == "__main__":
    if not shutil.which("git"):
        print("skipped: git is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
