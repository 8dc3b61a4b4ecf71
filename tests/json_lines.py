# SPDX-License-Identifier: Apache-2.0
"""What exporters of type json have written to a file, by agents some of which were killed."""

import json


def points(lines, n_killed=0):
    """Those of whole lines. An agent that is killed may leave a part of a line, which the next one ends; more such parts than
    agents that were killed are an error. Nobody has ended the last line of a file that is being written."""
    found, parts = [], []
    for line in lines:
        if line.endswith("\n"):
            try:
                found.append(json.loads(line))
            except ValueError:
                parts.append(line)
    if len(parts) > n_killed:
        raise AssertionError(f"{n_killed} agents were killed, but {len(parts)} lines are not whole: {parts}")
    return found
