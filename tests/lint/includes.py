#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: util <- metric <- {collector, view <- {export, report}} <- config <- agent <- top <- command <- main,
and one door for each library."""

import os
import re

import source

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)

# A directory of src/, and what it may include beside itself.
MAY_INCLUDE = {
    "util": [],
    "metric": ["util"],
    "collector": ["metric", "util"],
    "view": ["metric", "util"],
    "export": ["view", "metric", "util"],
    "config": ["collector", "export", "metric", "util"],
    "agent": ["config", "collector", "export", "view", "metric", "util"],
    "top": ["agent", "config", "view", "metric", "util"],
    "report": ["view", "metric", "util"],
    "command": ["top", "report", "agent", "config", "collector", "export", "view", "metric", "util"],
    "main": ["command", "util"],
}

# The headers of a foreign library, and the only places that may know them.
DOORS = [
    (r"^(bpf/|linux/(bpf|btf)\.h)", "libbpf", r"^src/collector/"),
    (r"^(libelf|gelf)\.h", "libelf", r"^src/collector/"),
    (r"^curl/", "libcurl", r"^src/export/transport/(doubt|http|multi|proxy|tls|url)\.c$"),
    (r"^(protobuf-c/|.*\.pb-c\.h)", "protobuf-c", r"^src/export/otlp/"),
    (r"^ini\.h", "inih", r"^src/util/ini\.c$"),
    (r"^systemd/sd-event", "sd-event", r"^src/(agent|export/transport|top)/"),
    (r"^systemd/sd-daemon", "sd-daemon", r"^src/(agent/|util/kept\.c$)"),
    (r"^systemd/sd-journal", "sd-journal", r"^src/util/log\.c$"),
    (r"^systemd/sd-id128", "sd-id128", r"^src/config/resource\.c$"),
    (r"^(ncurses|curses)\.h", "ncurses", r"^src/top/"),
    (r"^zlib\.h", "zlib", r"^src/export/"),
]


def place(path):
    """src/metric/series.c -> metric, src/main.c -> main; None: generated"""
    parts = path.split("/")[1:]
    if len(parts) > 1:
        return parts[0] if parts[0] in MAY_INCLUDE else None
    return "main" if os.path.exists(os.path.join(source.ROOT, path)) else None


def check_own(findings, path, line, header):
    mine, theirs = place(path), place("src/" + header)
    if mine and theirs and mine != theirs and theirs not in MAY_INCLUDE[mine]:
        findings.add(path, line, f'"{header}": {mine} may include only {", ".join([mine] + MAY_INCLUDE[mine])}')


def check_doors(findings, path, line, header):
    for pattern, library, allowed in DOORS:
        if re.search(pattern, header) and not re.search(allowed, path):
            findings.add(path, line, f"<{header}>: {library} has one door, {allowed}")


def check_order(findings, path, text):
    if path.endswith(".h") and "#pragma once" not in text:
        findings.add(path, 1, "a header begins with #pragma once after its SPDX line")


def main():
    findings, checked = source.Findings(), 0
    for path in source.files(".c", ".h"):
        if not path.startswith("src/"):
            continue
        text = source.read(path)
        checked += 1
        check_order(findings, path, text)
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(2)) + 1
            if match.group(1) == '"':
                check_own(findings, path, line, match.group(2))
            check_doors(findings, path, line, match.group(2))
    findings.finish(checked)


main()
