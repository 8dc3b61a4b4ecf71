# SPDX-License-Identifier: Apache-2.0
"""How long tests wait for what comes."""

import time

# On a machine that does nothing else, the longest of these waits takes some seconds. Only a failure takes so long.
PATIENCE_S = 600


def wait(condition, what, pause_s=0.02):
    """-> what the condition returns, as soon as that is true; what: a text, or a function that returns one"""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_S} s in vain: {what() if callable(what) else what}")
        time.sleep(pause_s)
    return found
