#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A little of everything that the six collectors count, done in a cgroup of its own.

    workload.py CGROUP_DIRECTORY FILE

The work is done by a child that enters the cgroup first. Its parent stays outside and lingers, so that
whoever waits for the parent finds all of the child's work settled: its last switch, its closed sockets.
"""

import mmap
import os
import socket
import sys
import time

SYSTEM_CALLS = 1000
MISSING_FILES = 10
BLOCKS, BLOCK_BYTES = 64, 4096
CONNECTIONS, MESSAGE_BYTES = 5, 10000
DATAGRAMS = 20
CHILDREN = 10
PAGES = 200


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


def work(cgroup, path):
    with open(os.path.join(cgroup, "cgroup.procs"), "w", encoding="ascii") as procs:
        procs.write("0")
    call_system()
    use_file(path)
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        exchange_tcp(family, address)
        exchange_udp(family, address)
    touch_memory()
    fork_children()
    sleep_and_wake()


def main():
    child = os.fork()
    if child == 0:
        work(*sys.argv[1:])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    time.sleep(0.3)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
