# SPDX-License-Identifier: Apache-2.0
"""What bpfpush attaches on a kernel, as lines of text, and the golden files that keep them.

A line is "RIGHTS COLLECTOR HOOK: what became of it". RIGHTS is "root", "service" (an ordinary user with the
capabilities of the service) or "both". What became of it is what is attached, (why that), and [what the kernel
refused: why]; or "off", where only a setting asks for the hook. Where bpfpush refuses the kernel, the lines are
what it says. A golden file also says how many of the counted tests there are, "cases N run, N skipped" and "night N run, N skipped",
and the deviations that are known: "deviation MODULE.CLASS.CASE /PATTERN/: reason" for one that fails on this kernel, with
a message that has the pattern.
"""

import json
import os
import re

GOLDEN = os.path.join(os.path.dirname(os.path.realpath(__file__)), "golden")
LICENCE = "# SPDX-" "License-Identifier: Apache-2.0"  # in two parts, as it is not about this file
VERSION = "# Linux "
CASES, BY_NIGHT, DEVIATION = "cases", "night", "deviation "


def golden_path(kernel):
    return os.path.join(GOLDEN, kernel)


def hooks_of(listed):
    """{(collector, hook): its programs}, of the lines of `bpfpush list --json`."""
    hooks = {}
    for line in filter(str.strip, listed.splitlines()):
        collector = json.loads(line)
        for program in collector["programs"]:
            hooks.setdefault((collector["collector"], program["hook"]), []).append(program)
    return hooks


def fate(programs):
    """What became of a hook: the programs that are attached, and what the kernel refused before."""
    by_state = {state: [program for program in programs if program["state"] == state] for state in ("attached", "refused")}
    words = [" + ".join(program["section"] for program in by_state["attached"])]
    if not by_state["attached"]:
        words = ["refused" if by_state["refused"] else programs[0]["state"]]
    words += [f"({choice})" for choice in {program["choice"]: None for program in by_state["attached"] if program.get("choice")}]
    words += [f"[{program['section']}: {program.get('error', '')}]" for program in by_state["refused"]]
    return " ".join(words)


def lines_of(root, service):
    """The lines of two lists, made with either rights."""
    fates = [{hook: fate(programs) for hook, programs in hooks_of(listed).items()} for listed in (root, service)]
    lines = []
    for hook in sorted({*fates[0], *fates[1]}):
        seen = [each.get(hook, "not listed") for each in fates]
        name = " ".join(hook)
        if seen[0] == seen[1]:
            lines.append(f"both {name}: {seen[0]}")
        else:
            lines += [f"root {name}: {seen[0]}", f"service {name}: {seen[1]}"]
    return lines


class Golden:
    def __init__(self, kernel):
        self.kernel, self.version, self.lines, self.counts, self.deviations = kernel, "", [], {}, []
        if os.path.exists(golden_path(kernel)):
            with open(golden_path(kernel), encoding="utf-8") as file:
                for line in file.read().splitlines():
                    self.take(line)

    def take(self, line):
        if line.startswith(VERSION):
            self.version = line.removeprefix(VERSION)
        elif line.partition(" ")[0] in (CASES, BY_NIGHT):
            self.counts[line.partition(" ")[0]] = line.partition(" ")[2]
        elif line.startswith(DEVIATION):
            self.deviations.append(line.removeprefix(DEVIATION))
        elif line and not line.startswith("#"):
            self.lines.append(line)

    def write(self):
        os.makedirs(GOLDEN, exist_ok=True)
        with open(golden_path(self.kernel), "w", encoding="utf-8") as file:
            file.write("\n".join([LICENCE, VERSION + self.version, *self.lines, *(f"{kind} {self.counts[kind]}" for kind in sorted(self.counts)),
                                  *(DEVIATION + line for line in self.deviations), ""]))


def short(version):
    """"6.1" of "6.1.0-56-cloud-amd64"."""
    return re.match(r"\d+\.\d+", version).group()
