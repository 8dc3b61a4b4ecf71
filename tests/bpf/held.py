# SPDX-License-Identifier: Apache-2.0
"""The BPF programs and maps that a process holds, such as the agent."""
import collections
import contextlib
import ctypes
import fcntl
import mmap
import os
import platform
import re
import struct

import harness
from rights import SYS_BPF

BPF_PROG_GET_FD_BY_ID, BPF_MAP_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD, BPF_ENABLE_STATS = 13, 14, 15, 32
INFO_BYTES = 128
PROG_NAME, MAP_NAME = slice(64, 80), slice(24, 40)  # in struct bpf_prog_info and bpf_map_info; longer ones are cut
# For a workload in Python that once() runs: the agent that counts it holds them.
INSIDE = 'import os, sys\nsys.path.insert(0, %r)\nimport held\n' % harness.HERE


def bpf(command, layout, *words):
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack(layout, *words).ljust(128, b'\0')
    result = libc.syscall(SYS_BPF[platform.machine()], command, attributes, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), 'bpf: ' + os.strerror(ctypes.get_errno()))
    return result


@contextlib.contextmanager
def statistics_locked():
    """Yields the file of kernel.bpf_stats_enabled, which agents look at. No other test changes it meanwhile."""
    with open('/proc/sys/kernel/bpf_stats_enabled', 'r+') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


@contextlib.contextmanager
def counted_runs():
    """The kernel counts runs of programs meanwhile."""
    fd = bpf(BPF_ENABLE_STATS, 'I', 0)
    try:
        yield
    finally:
        os.close(fd)


def held_by(pid, key, figure):
    """{id: that figure of it}, of what this process holds."""
    directory, found = '/proc/%d/fdinfo' % pid, {}
    for number in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(directory, number)) as file:
            info = dict(re.findall(r'^(\w+):\s*(\d+)$', file.read(), re.M))
            if figure in info:
                found[int(info[key])] = int(info[figure])
    return found


def name_of(fd, where):
    info = ctypes.create_string_buffer(INFO_BYTES)
    bpf(BPF_OBJ_GET_INFO_BY_FD, 'IIQ', fd, len(info), ctypes.addressof(info))
    return info.raw[where].split(b'\0')[0].decode()


def runs_of(pid):
    """{name: runs}, of the programs that this process holds; the first 15 characters of a name."""
    found = collections.Counter()
    for identity, runs in held_by(pid, 'prog_id', 'run_cnt').items():
        fd = bpf(BPF_PROG_GET_FD_BY_ID, 'II', identity, 0)
        found[name_of(fd, PROG_NAME)] += runs
        os.close(fd)
    return found


class Ring:
    """A ring buffer that this process holds."""

    def __init__(self, pid, name):
        fds = [bpf(BPF_MAP_GET_FD_BY_ID, 'II', identity, 0) for identity in held_by(pid, 'map_id', 'max_entries')]
        fd = next(fd for fd in fds if name_of(fd, MAP_NAME) == name)
        self.read, self.written = (mmap.mmap(fd, mmap.PAGESIZE, prot=mmap.PROT_READ, offset=i * mmap.PAGESIZE) for i in range(2))

    def unread_bytes(self):
        read, written = (int.from_bytes(page[:8], 'little') for page in (self.read, self.written))
        return written - read
