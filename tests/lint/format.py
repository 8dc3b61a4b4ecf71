#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent saves is read by another version of it: a change of the format needs a new STORE_FORMAT, or series that
cannot be read start again without the right reason. All functions that write to a store are looked at."""

import hashlib
import re

import source

PATH = "src/util/store.h"
# STORE_FORMAT, and what writes it.
KNOWN = (14, "be73d20a751c4b75")
WRITERS = re.compile(r"\bstore_(bytes|numbers?|text|begin|end|reserve)\(|^struct header \{", re.MULTILINE)


def main():
    findings, writers = source.Findings(), []
    for path in source.files(".c"):
        text = source.read(path)
        lines = text.split("\n")
        if path.startswith("src/"):
            bodies = ["\n".join(lines[first - 1:last]) for _, first, last in source.functions(text)]
            bodies += re.findall(r"^struct header \{.*?^\}", text, re.MULTILINE | re.DOTALL)
            writers += [" ".join(body.split()) for body in bodies if WRITERS.search(body)]
    digest = hashlib.sha256("\n".join(sorted(writers)).encode()).hexdigest()[:16]
    number = int(re.search(r"#define STORE_FORMAT (\d+)", source.read(PATH)).group(1))
    if (number, digest) != KNOWN:
        findings.add(PATH, 0, f"what is saved may have another format. If it has, raise STORE_FORMAT by one. "
                     f"Then write ({number}, \"{digest}\") with the new number into tests/lint/format.py")
    findings.finish(len(writers))


main()
