#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every LOG_ID_* of src/util/log.h is explained in systemd/bpfpush.catalog and in docs/operate.md, and nothing else is."""

import re

import source

LOG_ID = re.compile(r'#define\s+(LOG_ID_\w+)\s+"([0-9a-f]{32})"')
SECTION = re.compile(r"^### (.+)\n\n`([0-9a-f]{32})`\. \S", re.MULTILINE)
ENTRY = re.compile(r"^-- (\S+)\nSubject: (\S.*)\nDefined-By: bpfpush\n\n\S", re.MULTILINE)


def main():
    findings = source.Findings()
    identities = {value: name for name, value in LOG_ID.findall(source.read("src/util/log.h"))}
    text = source.read("systemd/bpfpush.catalog")
    subjects = ENTRY.findall(text)
    entries = [value for value, _ in subjects]
    sections = [(value, title) for title, value in SECTION.findall(source.read("docs/operate.md"))]
    for line in re.findall(r"^-- (\S+)", text, re.MULTILINE):
        if line not in entries:
            findings.add("systemd/bpfpush.catalog", 0, f"{line}: wants Subject:, Defined-By: bpfpush, an empty line and a text")
    for value, name in identities.items():
        if entries.count(value) != 1:
            findings.add("systemd/bpfpush.catalog", 0, f"{name} ({value}) is explained {entries.count(value)} times")
    for value in entries:
        if value not in identities:
            findings.add("systemd/bpfpush.catalog", 0, f"{value} is no LOG_ID_* of src/util/log.h")
    for value, title in subjects:
        if sections.count((value, title)) != 1:
            findings.add("docs/operate.md", 0, f"wants one section \"### {title}\" that begins with `{value}`.")
    for value, title in sections:
        if (value, title) not in subjects:
            findings.add("docs/operate.md", 0, f"\"{title}\" ({value}) is not an entry of systemd/bpfpush.catalog")
    findings.finish(len(identities))


main()
