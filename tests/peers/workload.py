#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A little of everything that the default collectors count, done in a cgroup of its own.

    workload.py CGROUP_DIRECTORY FILE [wait]    wait: it says that it is ready, and begins with a line of its input

The work is done by a child that is born in the cgroup: if it moved there, what it did before would count for the one
or the other, depending on when it is looked at. Its parent stays outside and lingers, so that whoever waits for the
parent finds all of the child's work settled: its last switch, its closed sockets.
"""

import ctypes
import mmap
import os
import signal
import socket
import struct
import sys
import time

SYSTEM_CALLS = 1000
MISSING_FILES = 10
BLOCKS, BLOCK_BYTES = 64, 4096
CONNECTIONS, MESSAGE_BYTES = 5, 10000
DATAGRAMS = 20
CHILDREN = 10
PAGES = 200
SYS_CLONE3, CLONE_INTO_CGROUP = 435, 1 << 33  # Linux 5.7


def call_system():
    for _ in range(SYSTEM_CALLS):
        os.getppid()
    for _ in range(MISSING_FILES):
        try:
            os.stat("/nowhere")
        except FileNotFoundError:
            pass


def use_file(path):
    with open(path, "wb", buffering=0) as file:
        for _ in range(BLOCKS):
            file.write(b"x" * BLOCK_BYTES)
        os.fsync(file.fileno())
    with open(path, "rb", buffering=0) as file:
        while file.read(BLOCK_BYTES):
            pass
    os.unlink(path)


def exchange_tcp(family, address):
    with socket.socket(family) as listener:
        listener.bind((address, 0))
        listener.listen()
        for _ in range(CONNECTIONS):
            with socket.create_connection(listener.getsockname()[:2]) as client:
                server, _ = listener.accept()
                with server:
                    client.sendall(b"x" * MESSAGE_BYTES)
                    client.shutdown(socket.SHUT_WR)
                    while server.recv(4096):
                        pass


def exchange_udp(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as receiver, socket.socket(family, socket.SOCK_DGRAM) as sender:
        receiver.bind((address, 0))
        for _ in range(DATAGRAMS):
            sender.sendto(b"x" * 100, receiver.getsockname()[:2])
            receiver.recv(1000)


def touch_memory():
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory:
        for page in range(PAGES):
            memory[page * mmap.PAGESIZE] = 1


def fork_children():
    for _ in range(CHILDREN):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


def sleep_and_wake():
    for _ in range(20):
        time.sleep(0.001)


def fork_into(cgroup):
    libc = ctypes.PyDLL(None, use_errno=True)
    directory = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
    arguments = struct.pack("11Q", CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, directory)  # struct clone_args
    child = libc.syscall(SYS_CLONE3, arguments, len(arguments))
    if child < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    return child


def work(path):
    call_system()
    use_file(path)
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        exchange_tcp(family, address)
        exchange_udp(family, address)
    touch_memory()
    fork_children()
    sleep_and_wake()


def main():
    cgroup, path, *wait = sys.argv[1:]
    if wait:
        print("ready", flush=True)
        sys.stdin.readline()
    child = fork_into(cgroup)
    if child == 0:
        work(path)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    time.sleep(0.3)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
