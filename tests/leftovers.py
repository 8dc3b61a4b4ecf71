# SPDX-License-Identifier: Apache-2.0
"""The cgroups and traces of tests that were killed, which nobody else removes."""

import contextlib
import math
import os
import re
import signal
import subprocess
import time

import patience

# All tests name theirs so: bpfpush-WORDS-PID, with any words.
MADE_BY = re.compile(r"bpfpush-(?:.*-)?(\d+)")
TRIES, PAUSE_S = 200, 0.01
CLOCK_S = 5  # a clock may be set while tests run


def has_ended(pid, made_s=math.inf):
    """Has the process with that id ended that made something at that time? Another one that began later may have its id."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
    except OSError:
        return True
    booted_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted_s + ticks / os.sysconf("SC_CLK_TCK") > made_s + CLOCK_S


def kill_all(directory):
    """Those in this cgroup and below it. An id of 0 is that of a process that cannot be seen here."""
    for path, _, _ in os.walk(directory):
        with contextlib.suppress(OSError), open(os.path.join(path, "cgroup.procs"), encoding="ascii") as procs:
            for pid in filter(None, map(int, procs.read().split())):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def try_to_remove(directory):
    """Kills what lives in this cgroup. -> is it gone?"""
    kill_all(directory)
    for path, _, _ in os.walk(directory, topdown=False):
        with contextlib.suppress(OSError):  # of processes, or removed by another test
            os.rmdir(path)
    return not os.path.exists(directory)


def remove(directory):
    """Kills what lives in this cgroup, and removes it. What has just been killed takes a moment to leave."""
    patience.wait(lambda: try_to_remove(directory), f"{directory} is empty", PAUSE_S)


def remove_cgroups(root):
    """Those below that directory whose maker has ended; what does not leave soon stays there."""
    for name in os.listdir(root):
        made_by, path = MADE_BY.fullmatch(name), os.path.join(root, name)
        with contextlib.suppress(FileNotFoundError):
            if made_by and has_ended(made_by[1], os.stat(path).st_ctime):
                for _ in range(TRIES):
                    if try_to_remove(path):
                        break
                    time.sleep(PAUSE_S)


def remove_instances(tracefs):
    """Those of its instances whose maker has ended."""
    for name in os.listdir(os.path.join(tracefs, "instances")):
        made_by, path = MADE_BY.fullmatch(name), os.path.join(tracefs, "instances", name)
        with contextlib.suppress(OSError):  # removed by another test, or a file of it is open
            if made_by and has_ended(made_by[1], os.stat(path).st_ctime):
                os.rmdir(path)


def remove_tracefs():
    """The places where a process that has ended has mounted it, and its instances."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        places = [line.split()[1] for line in file if line.split()[2] == "tracefs"]
    for place in places:
        made_by = MADE_BY.fullmatch(os.path.basename(place))
        if made_by and has_ended(made_by[1]):
            with contextlib.suppress(OSError):
                remove_instances(place)
                subprocess.run(["umount", place], stderr=subprocess.DEVNULL, check=False)
                os.rmdir(place)
