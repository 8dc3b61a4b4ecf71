#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing goes in circles in src/: no module (a .c file and its header) includes itself by way of others, and no .c
files call each other in a circle. A circle can only be read, tested and moved as a whole."""

import os
import re

import source

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
CALL = re.compile(r"\b(\w+)\b")

# Circles of calls that are there, each with its reason. The list may only become shorter.
ALLOWED = [
]


def circles(edges):
    """The strongly connected parts of {node: {node}} with more than one node, each sorted (Tarjan's algorithm)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = [stack.pop()]
            while part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(found)


def includes(texts):
    """{file: the files of src/ that it includes}, by a path from src/ or from its own directory."""
    edges = {}
    for path, text in texts.items():
        places = [(os.path.join("src", name), os.path.normpath(os.path.join(os.path.dirname(path), name)))
                  for name in INCLUDE.findall(text)]
        edges[path] = {place for pair in places for place in pair if place in texts}
    return edges


def modules(edges):
    """The same edges between modules: a file without its ending."""
    joined = {}
    for path, others in edges.items():
        joined.setdefault(path[:-2], set()).update(other[:-2] for other in others if other[:-2] != path[:-2])
    return joined


def calls(texts):
    """{.c file: the .c files that define functions it names}; a function that is passed on is named too."""
    codes = {path: source.code_only(text) for path, text in texts.items() if path.endswith(".c")}
    homes = {}
    for path, code in codes.items():
        lines = code.split("\n")
        for name, first, _ in source.functions(texts[path]):
            # The signature is above the brace; static functions belong to their file alone.
            if not re.search(rf"^static\b.*\b{name}\s*\(", "\n".join(lines[max(0, first - 8):first]), re.MULTILINE):
                homes.setdefault(name, path)
    return {path: {homes[name] for name in set(CALL.findall(code)) if name in homes} - {path} for path, code in codes.items()}


def main():
    findings = source.Findings()
    texts = {path: source.read(path) for path in source.files(".c", ".h") if path.startswith("src/")}
    for circle in circles(modules(includes(texts))):
        findings.add(circle[0], 0, f"modules in a circle: {', '.join(circle)}")
    found = circles(calls(texts))
    for circle in found:
        if circle not in ALLOWED:
            findings.add(circle[0], 0, f"calls in a circle: {', '.join(circle)}")
    for circle in ALLOWED:
        if circle not in found:
            findings.add(circle[0], 0, f"is not in that circle of calls any more: {', '.join(circle)}")
    findings.finish(len(texts))


if __name__ == "__main__":
    main()
