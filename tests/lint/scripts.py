#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts parse, and those with a #! line can be run."""

import ast
import os
import subprocess

import source


def check_script(findings, path, text):
    first = text.split("\n", 1)[0]
    full = os.path.join(source.ROOT, path)
    if first.startswith("#!") and not os.access(full, os.X_OK):
        findings.add(path, 1, "has a #! line but may not be executed")
    if "python" in first or path.endswith(".py"):
        try:
            ast.parse(text, path)
        except SyntaxError as error:
            findings.add(path, error.lineno, error.msg)
    elif first.startswith(("#!/bin/bash", "#!/bin/sh")):
        shell = first[2:].split()[0]
        result = subprocess.run([shell, "-n", full], capture_output=True, text=True, check=False)
        if result.returncode:
            findings.add(path, 0, result.stderr.strip())


def main():
    findings, checked = source.Findings(), 0
    for path in source.files():
        text = source.read(path)
        if text is not None and (text.startswith("#!") or path.endswith(".py")):
            checked += 1
            check_script(findings, path, text)
    findings.finish(checked)


main()
