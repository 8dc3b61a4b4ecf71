#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The name of a static function is a verb and its object: add() may stand in ten files, add_point() says what it does.

Functions of headers are public, and their names begin with their noun.
"""

import re

import source

ATTRIBUTE = re.compile(r"__attribute__\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)")
DEFINITION = re.compile(r"^static\b[^;{}()=]*?\b(\w+)\((?=[^;{}]*\n\{$)", re.MULTILINE)


def one_word(text):
    """Yields (line, name) of each static function whose name is one word."""
    code = ATTRIBUTE.sub(lambda match: " " * len(match.group(0)), source.code_only(text))
    for match in DEFINITION.finditer(code):
        if "_" not in match.group(1):
            yield code.count("\n", 0, match.start(1)) + 1, match.group(1)


def main():
    findings, checked = source.Findings(), 0
    for path in source.files(".c"):
        if not path.startswith("src/"):
            continue
        checked += 1
        for line, name in one_word(source.read(path)):
            findings.add(path, line, f"{name}(): say what it does with what, such as add_point()")
    findings.finish(checked)


if __name__ == "__main__":
    main()
