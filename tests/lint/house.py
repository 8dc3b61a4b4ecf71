#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what can be counted about the form of src/. Run it before and after a change of form, and compare.

usage: house.py
"""

import collections
import os

import conditionals
import cycles
import form
import names
import source

COLUMNS = (80, 100, 120)
HEAD = ("folder", "files", "code", "functions", "<=25", "<=50", *(f">{width}" for width in COLUMNS), "one-word", "doubled")


def code_lines(text):
    return sum(1 for line in source.code_only(text).split("\n") if line.strip())


def count(text, is_header):
    """A row of the table without its folder, in which the functions of n lines at most are numbers yet."""
    lengths = [last - first + 1 for _, first, last in source.functions(text)]
    widths = [form.columns(line) for line in text.split("\n")]
    return [1, code_lines(text), len(lengths), sum(n <= 25 for n in lengths), sum(n <= 50 for n in lengths),
            *(sum(n > width for n in widths) for width in COLUMNS),
            0 if is_header else len(list(names.one_word(text))), len(list(conditionals.doubled(text)))]


def main():
    table, texts = collections.defaultdict(lambda: [0] * (len(HEAD) - 1)), {}
    for path in source.files(".c", ".h"):
        if not path.startswith("src/"):
            continue
        texts[path] = source.read(path)
        row = count(texts[path], path.endswith(".h"))
        for folder in (os.path.dirname(path), "sum"):
            table[folder] = [a + b for a, b in zip(table[folder], row)]
    print("{:24}".format(HEAD[0]) + "".join(f"{word:>10}" for word in HEAD[1:]))
    for folder in sorted(table, key=lambda folder: (folder == "sum", folder)):
        row = table[folder]
        shares = [f"{100 * n / max(1, row[2]):.1f} %" for n in row[3:5]]
        print(f"{folder:24}" + "".join(f"{cell:>10}" for cell in [*row[:3], *shares, *row[5:]]))
    print(f"circles of modules: {len(cycles.circles(cycles.modules(cycles.includes(texts))))}")


if __name__ == "__main__":
    main()
