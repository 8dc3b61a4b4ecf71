#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages of this tree, built once for all tests that need them, and again when a file of the tree has changed.

    old, new = debs()       paths; the second replaces the first, and differs from it in its revision alone
"""

import fcntl
import glob
import hashlib
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", ".."))
BUILD = os.environ.get("BUILD_DIR") or os.path.join(ROOT, "build")
PACKAGES = os.path.join(BUILD, "tests", "system", "packages")
SUFFIXES = ("", "+1")


class NotBuilt(Exception):
    """The text says what is lacking."""


def key():
    """Changes with what goes into the packages."""
    source = subprocess.run([os.path.join(ROOT, "packaging", "build"), "--source"], capture_output=True, check=True).stdout
    return hashlib.sha256(source).hexdigest()[:16]


def build(directory, *kinds, suffix="", work=os.path.join(PACKAGES, "work"), **options):
    done = subprocess.run([os.path.join(ROOT, "packaging", "build"), "--suffix", suffix, "--work", work, directory, *kinds],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise NotBuilt(f"the packages: {done.stderr}")


def debs():
    if not shutil.which("dpkg-buildpackage"):
        raise NotBuilt("dpkg-buildpackage: ./dev package installs it")
    os.makedirs(PACKAGES, exist_ok=True)
    with open(os.path.join(PACKAGES, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        directory = os.path.join(PACKAGES, key())
        if not os.path.exists(directory):
            for old in glob.glob(os.path.join(PACKAGES, "?" * 16)):
                shutil.rmtree(old)
            shutil.rmtree(directory + ".new", ignore_errors=True)
            for number, suffix in enumerate(SUFFIXES):
                build(os.path.join(directory + ".new", str(number)), "deb", suffix=suffix)
            os.rename(directory + ".new", directory)
    return [glob.glob(os.path.join(directory, str(number), "bpfpush_*.deb"))[0] for number in range(len(SUFFIXES))]


if __name__ == "__main__":
    print("\n".join(debs()))
