#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/kernels.md: collector x hook x kernel, made of the golden files.

    kernels.py [--write]        without --write: fails if the page has something else
"""

import os
import re
import sys

from hooks import GOLDEN, Golden, short

PAGE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "docs", "kernels.md")
BEGIN, END = "<!-- made of tests/vm/golden by tests/vm/kernels.py -->\n", "<!-- end -->\n"
LINE = re.compile(r"(both|root|service) (\w+) (\w+): ([^\[(]*\w)")
WORDS = {"off": "on request", "refused": "refused"}


def kernels():
    """The golden files of kernels on which bpfpush runs, oldest first."""
    goldens = [Golden(name) for name in os.listdir(GOLDEN)]
    return sorted((golden for golden in goldens if all(map(LINE.match, golden.lines))),
                  key=lambda golden: [int(number) for number in short(golden.version).split(".")])


def code(sections):
    return WORDS.get(sections) or ", ".join(f"`{section}`" for section in sections.split(" + "))


def cells_of(golden):
    """{(collector, hook): text}"""
    cells = {}
    for rights, collector, hook, sections in (LINE.match(line).groups() for line in golden.lines):
        text = code(sections) if rights != "service" else f"; as the service {code(sections)}"
        cells[collector, hook] = cells.get((collector, hook), "") + text
    return cells


def table():
    goldens = kernels()
    columns = [cells_of(golden) for golden in goldens]
    lines = [f"| collector | hook | {' | '.join('Linux ' + short(golden.version) for golden in goldens)} |",
             "|---|---" + "|---" * len(goldens) + "|"]
    for hook in sorted({hook for cells in columns for hook in cells}):
        seen = [cells.get(hook, "–") for cells in columns]
        shown = [text if not i or text != seen[i - 1] else "the same" for i, text in enumerate(seen)]
        lines.append(f"| {hook[0]} | {hook[1]} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def page():
    """(the page as it is, the page as it should be)"""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    return text, f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def write_page():
    text = page()[1]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_page()
    elif len(set(page())) > 1:
        sys.exit("docs/kernels.md:1: the table is not what tests/vm/golden says: run tests/vm/kernels.py --write")
