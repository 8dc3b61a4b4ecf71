#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that this code base does without, and what it uses instead."""

import re

import source

BANNED = {
    "strcpy": "memcpy or buf_append: say how much room there is",
    "strcat": "buf_append",
    "sprintf": "snprintf or buf_printf",
    "vsprintf": "vsnprintf",
    "gets": "fgets",
    "strtok": "strsep or strcspn",
    "strtok_r": "strsep or strcspn",
    "atoi": "parse_u64, which reports errors; strtol in programs that do not link src/",
    "atol": "parse_u64; strtol in programs that do not link src/",
    "atof": "strtod with a check of its end",
    "localtime": "gmtime_r: times are UTC",
    "localtime_r": "gmtime_r: times are UTC",
    "alloca": "an array with a bound, or malloc",
    "rand": "getrandom",
    "system": "posix_spawn",
}

# Where a banned function is right: the room was computed in the lines just above.
ALLOWED = {
    ("src/metric/series.c", "strcpy"),
}

# Only these log; all others return errors, and the configuration fills a diag.
NARRATORS = re.compile(r"^src/(agent|collector|command|export)/|^src/(main|top-program)\.c$|^src/util/log\.[ch]$")
LOGGING = re.compile(r"\b(log_(?:error|warning|info|debug|event)|fprintf\s*\(\s*stderr|perror|sd_journal_\w+)\b")

# Only the agent reads clocks.
CLOCK_READERS = re.compile(r"^src/(agent|command)/")
CLOCKS = re.compile(r"\b(clock_gettime|gettimeofday|time)\s*\(")


ADVISED = re.compile(r"\b[a-z]+_[a-z0-9_]+\b")  # our functions that the advice names
LIBC = {"gmtime_r", "posix_spawn"}


def check_advice(findings):
    """That the functions which the advice names are there."""
    declared = " ".join(source.read(path) for path in source.files(".h") if path.startswith("src/"))
    for name, advice in BANNED.items():
        for advised in set(ADVISED.findall(advice)) - LIBC:
            if not re.search(rf"\b{advised}\(", declared):
                findings.add("tests/lint/banned.py", 0, f"{name}: {advised}() is not declared in src/")


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def main():
    findings, checked = source.Findings(), 0
    check_advice(findings)
    pattern = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED))
    for path in source.files(".c", ".h"):
        code = source.code_only(source.read(path))
        checked += 1
        for match in pattern.finditer(code):
            if (path, match.group(1)) not in ALLOWED:
                findings.add(path, line_of(code, match.start()), f"{match.group(1)}(): use {BANNED[match.group(1)]}")
        if not path.startswith("src/"):
            continue
        if not NARRATORS.match(path):
            for match in LOGGING.finditer(code):
                findings.add(path, line_of(code, match.start()), f"{match.group(1)}: core modules do not log, they return errors")
        if not CLOCK_READERS.match(path):
            for match in CLOCKS.finditer(code):
                findings.add(path, line_of(code, match.start()), f"{match.group(1)}(): only the agent reads clocks; take the time as an argument")
    findings.finish(checked)


main()
