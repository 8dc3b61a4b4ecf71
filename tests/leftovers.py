# SPDX-License-Identifier: Apache-2.0
"""The cgroups of tests that were killed, which nobody else removes."""

import contextlib
import os
import re

# All tests name theirs so: bpfpush-WORDS-PID.
MADE_BY = re.compile(r"bpfpush-(?:[a-z]+-)*(\d+)")


def remove_cgroups(root):
    """Those below that directory whose maker has ended and that hold no process."""
    for name in os.listdir(root):
        made_by = MADE_BY.fullmatch(name)
        if made_by and not os.path.exists(f"/proc/{made_by[1]}"):
            for directory, _, _ in os.walk(os.path.join(root, name), topdown=False):
                with contextlib.suppress(OSError):  # of processes, or removed by another test
                    os.rmdir(directory)
