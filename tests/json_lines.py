# SPDX-License-Identifier: Apache-2.0
"""Files of JSON lines that grow while they are read, and what agents have written to them, some of which were killed."""

import contextlib
import json


def read_on(path, place):
    """-> (the whole lines from that place on, as bytes without their ends; the place behind them)

    The file is read once and cut behind its last newline. Whoever iterates over a file that grows gets the half line at its
    end, and then the other half as if it were a line. A file that is not there yet has no lines.
    """
    data = b""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        file.seek(place)
        data = file.read()
    size = data.rfind(b"\n") + 1
    return data[:size].split(b"\n")[:-1], place + size


def read(path):
    """-> the whole lines so far"""
    return read_on(path, 0)[0]


def points(lines, n_killed=0):
    """An agent that is killed may leave a part of a line, which the next one ends; more such parts than agents that were killed
    are an error."""
    found, parts = [], []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            parts.append(line)
    if len(parts) > n_killed:
        raise AssertionError(f"{n_killed} agents were killed, but {len(parts)} lines are not whole: {parts}")
    return found
