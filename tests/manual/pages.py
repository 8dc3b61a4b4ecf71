# SPDX-License-Identifier: Apache-2.0
"""mandoc and man find nothing to complain of in the pages of the manual."""

import glob
import os
import shutil
import subprocess
import sys

import program


def complaints(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout + result.stderr if command[0] == "mandoc" else result.stderr


def main():
    checkers = {"mandoc": ["mandoc", "-T", "lint", "-W", "warning"],
                "groff": ["groff", "-mandoc", "-Tutf8", "-ww", "-z"]}
    found = [command for name, command in checkers.items() if shutil.which(name)]
    pages = sorted(glob.glob(os.path.join(program.ROOT, "man", "*.[1-9]")))
    text = "".join(complaints(*command, page) for command in found for page in pages)
    if not found:
        print("neither mandoc nor groff is installed")
        sys.exit(program.SKIPPED)
    print(text, end="")
    print(f"{len(pages)} pages, by {', '.join(command[0] for command in found)}")
    sys.exit(1 if text or not pages else 0)


main()
