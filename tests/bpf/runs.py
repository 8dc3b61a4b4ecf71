# SPDX-License-Identifier: Apache-2.0
"""How often the kernel ran the programs of a process. It counts that while somebody has asked for it."""
import collections
import contextlib
import ctypes
import os
import platform
import re
import struct

import harness
from rights import SYS_BPF

# For a workload in Python that once() runs: agent_runs(NAME), of the agent that counts it.
INSIDE = """
import os, sys
sys.path.insert(0, %r)
import runs
def agent_runs(name):
    return runs.runs_of(os.getppid())[name]
""" % harness.HERE
BPF_PROG_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD, BPF_ENABLE_STATS = 13, 15, 32
NAME = slice(64, 80)  # in struct bpf_prog_info; longer ones are cut


def bpf(command, layout, *words):
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack(layout, *words).ljust(128, b'\0')
    result = libc.syscall(SYS_BPF[platform.machine()], command, attributes, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), 'bpf')
    return result


@contextlib.contextmanager
def counted():
    fd = bpf(BPF_ENABLE_STATS, 'I', 0)
    try:
        yield
    finally:
        os.close(fd)


def program_name(identity):
    fd, info = bpf(BPF_PROG_GET_FD_BY_ID, 'II', identity, 0), ctypes.create_string_buffer(128)
    bpf(BPF_OBJ_GET_INFO_BY_FD, 'IIQ', fd, len(info), ctypes.addressof(info))
    os.close(fd)
    return info.raw[NAME].split(b'\0')[0].decode()


def runs_of(pid):
    """{name: runs}, of the programs that this process holds; the first 15 characters of a name."""
    directory, seen = '/proc/%d/fdinfo' % pid, {}
    for number in os.listdir(directory):
        with open(os.path.join(directory, number)) as file:
            info = dict(re.findall(r'^(prog_id|run_cnt):\s*(\d+)', file.read(), re.M))
        if 'run_cnt' in info:
            seen[int(info['prog_id'])] = int(info['run_cnt'])
    found = collections.Counter()
    for identity, count in seen.items():
        found[program_name(identity)] += count
    return found
