#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`meson install` never overwrites an edited configuration, and always writes it for a package."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")
INSTALLED = os.environ.get("CONFIG_DIRECTORY") or "/etc/bpfpush"
CONFIG = os.path.join(ROOT, "conf", "bpfpush.conf")
EDITED = "[agent]\ninterval = 5s\n"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


class TestConfiguration(unittest.TestCase):
    def setUp(self):
        self.top = self.enterContext(tempfile.TemporaryDirectory(prefix="bpfpush-install."))
        self.directory = os.path.join(self.top, "etc", "bpfpush")

    def install(self, **environment):
        """What the script says."""
        inherited = {key: value for key, value in os.environ.items() if key != "DESTDIR"}
        return subprocess.run([os.path.join(ROOT, "conf", "install-config"), CONFIG, self.directory], check=True, stdout=subprocess.PIPE,
                              text=True, env={**inherited, **environment}).stdout

    def edit(self, directory):
        with open(os.path.join(directory, "bpfpush.conf"), "w", encoding="utf-8") as file:
            file.write(EDITED)

    def test_the_first_install_writes_it(self):
        self.assertEqual(self.install(), "")
        self.assertEqual(read(self.directory, "bpfpush.conf"), read(CONFIG))
        self.assertEqual(os.stat(os.path.join(self.directory, "bpfpush.conf")).st_mode & 0o7777, 0o644)

    def test_a_second_install_changes_nothing(self):
        self.install()
        self.assertEqual((self.install(), os.listdir(self.directory)), ("", ["bpfpush.conf"]))

    def test_an_edited_file_is_kept_and_the_new_one_is_next_to_it(self):
        self.install()
        self.edit(self.directory)
        path = os.path.join(self.directory, "bpfpush.conf")
        self.assertEqual(self.install(), f"{path} is kept, because it differs from the new one: see {path}.new\n")
        self.assertEqual((read(path), read(path + ".new")), (EDITED, read(CONFIG)))

    def test_a_package_build_always_writes_it(self):
        staged = os.path.join(self.top, "staged")
        self.install(DESTDIR=staged)
        self.edit(staged + self.directory)
        self.install(DESTDIR=staged)
        self.assertEqual(read(staged + self.directory, "bpfpush.conf"), read(CONFIG))
        self.assertEqual(os.listdir(staged + self.directory), ["bpfpush.conf"])


class TestStagedInstall(unittest.TestCase):
    def test_a_staged_install_has_the_configuration(self):
        with tempfile.TemporaryDirectory(prefix="bpfpush-install.") as top:
            subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", top], check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(read(top, INSTALLED.lstrip("/"), "bpfpush.conf"), read(CONFIG))


if __name__ == "__main__":
    if not shutil.which("meson"):
        print("skipped: meson is not in PATH")
        sys.exit(77)
    unittest.main(verbosity=2)
