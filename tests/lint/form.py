#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Blanks, tabs, widths and braces: the part of the kernel's layout that a few patterns settle surely.

.clang-format is for editors. It is no judge here: tables and aligned comments read better by hand.
"""

import re

import source

WIDTHS = {"src/": 100, "bpf/": 100, "": 120}  # columns, by the beginning of the path. A message is one string, so that
# it can be searched for:
STRING = re.compile(r'"(?:\\.|[^"\\])*"')  # what strings hold is not counted

INDENT = re.compile(r"^ {8} *[^\s\\]|^\t* +\t")
ELSE_ALONE = re.compile(r"^\s*\}\n\s*else\b", re.MULTILINE)

C_RULES = [
    (re.compile(r"\b(if|for|while|switch)\("), "a blank after the keyword"),
    (re.compile(r"^\s*(?:\} else )?(?:if|for|while|switch) .*\)\{|\b(?:else|do)\{"), "a blank before the brace"),
    (re.compile(r"^(?:static |const |struct |unsigned )*\w+ \**\w+\([^;{]*\) \{$"), "the brace of a function has its own line"),
    (re.compile(r"\b(?:char|void|int|u?int\d+_t|size_t|struct \w+)\* \w"), "the star belongs to the name"),
    (re.compile(r"^\s*//"), "comments are /* */"),
    (re.compile(r"\barray_for_each \(.*(?:\? 0 :|: 0\))"), "a loop is not switched off by its count: use if"),
]


def columns(line):
    return len(STRING.sub('""', line.expandtabs(8)))


def check_text(findings, path, text):
    if text and not text.endswith("\n"):
        findings.add(path, text.count("\n") + 1, "no newline at the end")
    if text.endswith("\n\n"):
        findings.add(path, text.count("\n"), "blank lines at the end")
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            findings.add(path, number, "blanks at the end of the line")


def check_c(findings, path, text):
    raw = text.split("\n")
    width = next(width for beginning, width in WIDTHS.items() if path.startswith(beginning))
    for number, line in enumerate(source.code_only(text).split("\n"), 1):
        if columns(raw[number - 1]) > width:
            findings.add(path, number, f"{columns(raw[number - 1])} columns; {width} are the limit")
        if INDENT.search(raw[number - 1]):
            findings.add(path, number, "indent with tabs")
        for rule, what in C_RULES:
            if rule.search(line):
                findings.add(path, number, what)
    for match in ELSE_ALONE.finditer(text):
        findings.add(path, text.count("\n", 0, match.end()) + 1, "} else on one line")


def main():
    findings, checked = source.Findings(), 0
    for path in source.files():
        text = source.read(path)
        if text is None or re.search(r"^LICENSE|^tests/(golden|check)/|corpus", path):
            continue
        checked += 1
        check_text(findings, path, text)
        if path.endswith((".c", ".h")):
            check_c(findings, path, text)
    findings.finish(checked)


if __name__ == "__main__":
    main()
