#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prose for native readers, as far as a pattern can tell: phrases that have to be read twice, long lines, and
paths in the pages that are not in the tree."""

import glob
import os
import re

import source

WIDTH = 100
# A phrase may run over the end of a line.
PHRASES = [
    (r"(?<![Tt]here)\s(?:is|are|was|were)\s+no\s+(?!longer\b)", 'write "is not a"'),
    (r"\bbehind\b", 'write "after" or "next to"'),
    (r"(?:^|[.;:]\s)Of\s+an?\s", 'write "For a"'),
    (r"\bway\s+of\s+the\s+data\b", 'write "data pipeline"'),
    (r"\btunables?\b", 'write "setting"'),
    (r"\btakes?\s+the\s+place\s+of\b", 'write "replaces"'),
    (r"\b1\s+(?:mistakes|collectors|points|files)\b", "one thing is singular"),
    (r"\bbut\s+for\b", 'write "except"'),
    (r"\bbeside\b", 'write "next to" or "besides"'),
    (r"\bin\s+the\s+midst\b", 'write "in the middle"'),
    (r"\bfor\s+ever\b", 'write "forever"'),
    (r"\banew\b", 'write "again"'),
    (r"\bneeds?\s+no\s+privilege\b", 'write "needs no privileges"'),
    (r"\bthat\s+so\s+\w+s\b", 'put "so" first'),
    (r"\bwhat\s+(?:is|are|was|were)\s+not\s+(?:there|found|known)\b", "name the thing that it is"),
    (r"\btells?\s*[.)]", "say what it tells, and to whom"),
    # A statement, not a question, so it needs a subject: "a reader that".
    (r"(?:^|[.;:]\s+|/\*\s+)[Ww]ho\s[^?.]*\.", 'write "a program that" or the like'),
]
# Places of the tree that a page may name; what is between backquotes or in a link.
PATH = re.compile(r"(?:`|\]\()((?:bpf|conf|docs|man|packaging|proto|src|systemd|tests)/[\w./-]*\w)/?[`)]")
NOT_THERE = {"src/export/text/sums.c"}  # the example of docs/writing-exporters.md


def markdown(text):
    """Lines with what is no prose blanked out: blocks of code, and code within lines."""
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield ""
        else:
            yield "" if fenced else re.sub(r"`[^`]*`", lambda code: "`" * len(code.group(0)), line)


def roff(text):
    """Lines with displays of code blanked out."""
    display = False
    for line in text.split("\n"):
        if line.startswith((".Bd", ".Ed")):
            display = line.startswith(".Bd")
        yield "" if display else line


def comments(text):
    """The comments of a configuration file."""
    for line in text.split("\n"):
        yield line[2:] if line.startswith("# ") else ""


def words_of_c(text):
    """What is within comments and strings."""
    end, kept = 0, []
    for token in source.TOKEN.finditer(text):
        kept.append(re.sub(r"[^\n]", " ", text[end:token.start()]))
        kept.append(re.sub(r"^(\s*) \*", r"\1  ", token.group(0), flags=re.MULTILINE))
        end = token.end()
    yield from "".join(kept).split("\n")


def whole(text):
    yield from text.split("\n")


def check_phrases(findings, path, lines):
    text = "\n".join(lines)
    for pattern, remedy in PHRASES:
        for match in re.finditer(pattern, text, re.MULTILINE):
            phrase = " ".join(match.group(0).split())
            findings.add(path, text.count("\n", 0, match.start()) + 1, f'"{phrase}": {remedy}')


def check_width(findings, path, text, lines):
    for number, (raw, line) in enumerate(zip(text.split("\n"), lines), 1):
        is_table = path.endswith(".md") and line.startswith("|")
        if line and len(raw) > WIDTH and not is_table and "://" not in raw:
            findings.add(path, number, f"{len(raw)} columns; {WIDTH} are the limit for prose")


def check_paths(findings, path, text):
    places = ("", os.path.dirname(path))
    for number, line in enumerate(text.split("\n"), 1):
        for name in PATH.findall(line):
            found = any(glob.glob(os.path.join(source.ROOT, place, name) + "*") for place in places)
            if not found and name not in NOT_THERE and not re.search(r"NAME|MODULE", name):
                findings.add(path, number, f"{name} is not in the tree")


KINDS = [
    (r".*\.md", markdown),
    (r"man/.*\.[1-9]", roff),
    (r"conf/.*\.conf|(?:.*/)?meson\.build", comments),
    (r"systemd/.*\.catalog|bpf/.*\.conf", whole),
    (r"(?:src|bpf)/.*\.[ch]", words_of_c),
]


def main():
    findings, checked = source.Findings(), 0
    for path in source.files():
        lines_of = next((lines_of for pattern, lines_of in KINDS if re.fullmatch(pattern, path)), None)
        if not lines_of:
            continue
        checked += 1
        text = source.read(path)
        lines = list(lines_of(text))
        check_phrases(findings, path, lines)
        if not path.endswith((".c", ".h")) and not path.startswith("bpf/"):  # form.py does; a description is one line
            check_width(findings, path, text, lines)
        if path.endswith(".md"):
            check_paths(findings, path, text)
    findings.finish(checked)


main()
