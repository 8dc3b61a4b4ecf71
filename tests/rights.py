# SPDX-License-Identifier: Apache-2.0
"""What the kernel lets this process do. It is tried, not guessed from the user id: in a container root may have few rights."""

import ctypes
import errno
import os
import platform
import struct
import subprocess

NOBODY = 65534
BPF_PROG_LOAD, RAW_TRACEPOINT = 5, 17
SYS_BPF = {"x86_64": 321, "aarch64": 280}


def bpf_refusal():
    """Why no BPF program may be loaded here, or None. Tried with `return 0;` for a tracepoint; any other failure is one."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack("<IIQQ", RAW_TRACEPOINT, 2, ctypes.addressof(program), ctypes.addressof(licence)).ljust(128, b"\0")
    fd = libc.syscall(SYS_BPF[platform.machine()], BPF_PROG_LOAD, attributes, len(attributes))
    if fd < 0 and ctypes.get_errno() not in (errno.EPERM, errno.EACCES):
        raise OSError(ctypes.get_errno(), f"bpf(BPF_PROG_LOAD) of a program that does nothing: {os.strerror(ctypes.get_errno())}")
    if fd < 0:
        return f"the right to load BPF programs (root, or CAP_BPF and CAP_PERFMON): {os.strerror(ctypes.get_errno())}"
    os.close(fd)
    return None


def cgroup_refusal(root):
    """Why no cgroup can be made below that directory, or None."""
    path = os.path.join(root, f"bpfpush-rights-{os.getpid()}")
    try:
        os.mkdir(path)
        os.rmdir(path)
    except OSError as error:
        return f"the right to make cgroups in {root}: {error.strerror}"
    return None


def become_nobody():
    """For preexec_fn: gives up every right, if it is root's."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def nobody_refusal():
    """Why root cannot run a command as another user, or None."""
    try:
        subprocess.run(["true"], preexec_fn=become_nobody, check=True)
    except (OSError, subprocess.SubprocessError):
        return "the right to become another user (root, or CAP_SETUID and CAP_SETGID)"
    return None


def container_refusal():
    """Why no container can be started, or None."""
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], stderr=subprocess.PIPE, text=True, check=False)
    return f"the right to start a container (root): {done.stderr.strip()}" if done.returncode else None
