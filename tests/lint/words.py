#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree speaks of itself only: no machine's paths, no package hosts, no notes of how it was made."""

import re

import source

# Written in parts, so that this file does not hold what it looks for.
WORDS = [
    (r"(?<![\w.])/wo" r"rk/", "a path of one machine"),
    (r"(?<![\w}])/ro" r"ot/", "a path of one machine"),
    (r"/home/(?!\$|USER)[a-z]+/", "a path of one machine"),
    (r"\b(?:proxy|sum)\.go" r"lang\.org\b", "a registry's host: `go env` knows it"),
    (r"\b(?:deb|security|ftp|snapshot)\.deb" r"ian\.org\b", "a mirror's host: apt's sources know it"),
    (r"\b(?:py" r"pi\.org|registry\.npm" r"js|crates\.i" r"o/|repo\.maven)", "a registry's host"),
    (r"\bpip\.con" r"f\b", "a setting of one machine"),
    (r"(?i)\b(?:cla" r"ude|anthro" r"pic|chat" r"gpt|open" r"ai|co" r"pilot)\b", "how it was made is no part of it"),
    (r"(?i)\bA" r"I[- ](?:generated|assisted|written)", "how it was made is no part of it"),
    (r"(?i)\bthis (?:development )?ses" r"sion\b", "how it was made is no part of it"),
    (r"(?i)\bsub-?ag" r"ents?\b|\bbr" r"ief\.md\b|\bDES" r"IGN\.md\b|\breference/(?:collectors|push|service|style|vm|peers)\.md", "a page that is not in this tree"),
    (r"\bshared" r"/(?:DES|ref)", "a page that is not in this tree"),
    (r"(?i)\bT" r"ODO\b|\bFIX" r"ME\b|\bX" r"XX\b(?!X)", "finish it, or write it down where it is planned"),
]


def main():
    findings, checked = source.Findings(), 0
    rules = [(re.compile(pattern), what) for pattern, what in WORDS]
    for path in source.files():
        text = source.read(path)
        if text is None or path.startswith("LICENSES/"):
            continue
        checked += 1
        for number, line in enumerate(text.split("\n"), 1):
            for rule, what in rules:
                match = rule.search(line)
                if match:
                    findings.add(path, number, f'"{match.group(0)}": {what}')
    findings.finish(checked)


main()
