#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every LOG_ID_* of src/util/log.h is explained in systemd/bpfpush.catalog, and nothing else is."""

import re

import source

LOG_ID = re.compile(r'#define\s+(LOG_ID_\w+)\s+"([0-9a-f]{32})"')
ENTRY = re.compile(r"^-- (\S+)\nSubject: \S.*\nDefined-By: bpfpush\n\n\S", re.MULTILINE)


def main():
    findings = source.Findings()
    identities = {value: name for name, value in LOG_ID.findall(source.read("src/util/log.h"))}
    text = source.read("systemd/bpfpush.catalog")
    entries = ENTRY.findall(text)
    for line in re.findall(r"^-- (\S+)", text, re.MULTILINE):
        if line not in entries:
            findings.add("systemd/bpfpush.catalog", 0, f"{line}: wants Subject:, Defined-By: bpfpush, an empty line and a text")
    for value, name in identities.items():
        if entries.count(value) != 1:
            findings.add("systemd/bpfpush.catalog", 0, f"{name} ({value}) is explained {entries.count(value)} times")
    for value in entries:
        if value not in identities:
            findings.add("systemd/bpfpush.catalog", 0, f"{value} is no LOG_ID_* of src/util/log.h")
    findings.finish(len(identities))


main()
