#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A statement has one conditional at most: in a?b:c?d:e it is hard to see which part belongs to which.

A statement is what stands between ; { and }, and a directive. In a brace initialiser, each member may have a conditional: there
the commas between members are limits, too. The brace of an initialiser follows = , ( { or, without a blank, the ) of a type.
"""

import re

import source

DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|.)*$", re.MULTILINE)
INITIALISER = re.compile(r"(?:[=,({]\s*|\))\Z")


def statements(code):
    """Yields (offset, text) of each statement and member."""
    start, nesting = 0, []  # for each open bracket: whether commas in it are limits
    for at, character in enumerate(code):
        is_limit = character in ";{}" or (character == "," and nesting and nesting[-1])
        if character in "([{":
            nesting.append(character == "{" and bool(INITIALISER.search(code[max(0, at - 200):at])))
        elif character in ")]}" and nesting:
            nesting.pop()
        if is_limit:
            yield start, code[start:at]
            start = at + 1


def doubled(text):
    """Yields (line, number) of each statement with several conditionals."""
    code = source.code_only(text)
    directives = list(DIRECTIVE.finditer(code))
    parts = [(match.start() + at, part) for match in directives for at, part in statements(match.group(0) + ";")]
    parts += statements(DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), code))
    for at, part in sorted(parts):
        if part.count("?") > 1:
            at += len(part) - len(part.lstrip())
            yield code.count("\n", 0, at) + 1, part.count("?")


def main():
    findings, checked = source.Findings(), 0
    for path in source.files(".c", ".h"):
        if not path.startswith("src/"):
            continue
        checked += 1
        for line, count in doubled(source.read(path)):
            findings.add(path, line, f"{count} conditionals in one statement: use if, or a function that returns")
    findings.finish(checked)


if __name__ == "__main__":
    main()
