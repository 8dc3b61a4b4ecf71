#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each file names the licence of its directory in its first lines; reuse.py checks those that REUSE.toml names."""

import re

import source

SPDX = re.compile(r"SPDX-License-Identifier: ([\w.()-]+(?: (?:OR|AND) [\w.()-]+)*)")

# Files without a place for a comment, and data: REUSE.toml names their licence.
EXEMPT = re.compile(r"(^LICENSE|^LICENSES/|\.json$|^\.editorconfig$|^\.clang-format$|^\.gitignore$|\.md$"
                    r"|^packaging/debian/(changelog|control|copyright|source/format|tests/control|.*-overrides)$"
                    r"|^tests/(golden|check|fuzz|bpf|unit)/.*\.(conf|txt|out|expected|jsonl|bin|dict|list)$|^tests/(check|golden)/|corpus)")


def expected(path):
    return "GPL-2.0-only OR BSD-2-Clause" if re.match(r"^(bpf/.*\.(c|h|conf)|.*\.bpf\.[ch])$", path) else "Apache-2.0"


def main():
    findings, checked = source.Findings(), 0
    for path in source.files():
        if EXEMPT.search(path):
            continue
        text = source.read(path)
        if text is None:
            continue
        checked += 1
        match = SPDX.search("\n".join(text.split("\n")[:5]))
        if not match:
            findings.add(path, 1, f"no SPDX line; this one takes {expected(path)}")
        elif match.group(1) != expected(path):
            findings.add(path, 1, f"licence {match.group(1)}; here it is {expected(path)}")
    findings.finish(checked)


main()
