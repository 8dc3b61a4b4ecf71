# SPDX-License-Identifier: Apache-2.0
"""What the program says of itself, and the pages of the manual, for the tests beside this file."""

import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIPPED = 77


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def page(name):
    """A page of the manual with mdoc's escapes of hyphens and quotes undone."""
    return read(f"man/{name}").replace("\\-", "-").replace("\\(dq", '"')


class Program:
    def __init__(self, path):
        self.path = path

    def run(self, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
        result = subprocess.run([self.path, *arguments], capture_output=True, text=True, check=False, env=environment)
        if result.returncode:
            raise AssertionError(f"bpfpush {' '.join(arguments)}: {result.returncode}\n{result.stderr}")
        return result.stdout

    def commands(self):
        return re.findall(r"^  (\w+)(?: |$)", self.run("--help"), re.MULTILINE)

    def options(self, command):
        """{"--format": True, ...}: does it take a value?"""
        found = re.findall(r"^  (--[\w-]+)(=?)", self.run(command, "--help"), re.MULTILINE)
        return {name: bool(equals) for name, equals in found}

    def stops(self):
        """Those of dump, by its own words."""
        return re.search(r"at one stage: ([\w, ]+)$", self.run("dump", "--help"), re.MULTILINE).group(1).replace(" or ", ", ").split(", ")


def arguments():
    """The program's path and the tests' own arguments, taken off the command line."""
    return Program(os.path.abspath(sys.argv.pop(1)))
