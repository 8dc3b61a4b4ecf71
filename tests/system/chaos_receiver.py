#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A receiver of OTLP over HTTP that does whatever a bad one may do, and writes down what became of each request before it
answers: chaos_receiver.py DIRECTORY ADDRESS PORT SEED.

It says "ready" when it listens. DIRECTORY/weather says how often it does what, as JSON: {"ok": 5, "lost": 1}. Its ledger
is a new file of DIRECTORY, so a process that is killed leaves at most one record that is not whole, at the end.
"""

import collections
import contextlib
import gzip
import hashlib
import json
import os
import random
import select
import socket
import struct
import sys
import threading
import time

# What became of a request, as far as its sender can know.
ACKED = 0    # taken, and an answer was on its way
DOUBTED = 1  # taken, without an answer
LOST = 2     # not taken, without an answer
AGAIN = 3    # not taken, to be sent again
REFUSED = 4  # not taken, for good

FATES = ("acknowledged", "taken without an answer", "neither taken nor answered", "to be sent again", "refused")
CHANNELS = ("repeat", "skip", "totals")  # the first word of the path
RECORD = struct.Struct("<BBI")  # channel, what became of it, bytes of the body, which follows
HOLE_S = 10
LIMIT_BYTES = 100 << 10
SMALL_BYTES = 4 << 10  # more than one point has
SILENCE_S = 60  # for a sender that is silent


class Ledger:
    def __init__(self, directory):
        number = len([name for name in os.listdir(directory) if name.startswith("ledger-")])
        self.fd = os.open(os.path.join(directory, f"ledger-{number:05}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.lock, self.seen = threading.Lock(), collections.defaultdict(set)

    def note(self, channel, fate, body):
        record = RECORD.pack(CHANNELS.index(channel), fate, len(body)) + body
        with self.lock:
            os.write(self.fd, record)
            self.seen[hashlib.sha1(body).digest()].add(fate)

    def fates(self, body):
        with self.lock:
            return set(self.seen.get(hashlib.sha1(body).digest(), ()))


def read_ledgers(directory):
    """(channel, what became of it, body) of each request that came whole, in order."""
    for name in sorted(name for name in os.listdir(directory) if name.startswith("ledger-")):
        with open(os.path.join(directory, name), "rb") as file:
            while len(head := file.read(RECORD.size)) == RECORD.size:
                channel, fate, size = RECORD.unpack(head)
                body = file.read(size)
                if len(body) < size:
                    break
                yield CHANNELS[channel], fate, body


class Gone(Exception):
    """The sender has hung up within a request."""


class Connection:
    """n_answered: requests on it that were answered in order."""

    def __init__(self, peer, ledger, random_):
        self.peer, self.ledger, self.random = peer, ledger, random_
        self.n_answered, self.channel, self.body = 0, None, b""
        peer.settimeout(SILENCE_S)

    def read(self, pause_s=0.0, part=1.0):
        """The next request, or a part of its body."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.receive(65536)
        head, self.body = data.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        self.channel = lines[0].split("/")[1]
        size = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
        while len(self.body) < int(size * part):
            self.body += self.receive(4096)
            time.sleep(pause_s)

    def receive(self, size):
        data = self.peer.recv(size)
        if not data:
            raise Gone
        return data

    def note(self, fate):
        self.ledger.note(self.channel, fate, self.body)

    def has_hung_up(self):
        poll = select.poll()
        poll.register(self.peer, select.POLLRDHUP)
        return bool(poll.poll(0))

    def reset(self):
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def answer(self, status, *headers):
        self.peer.sendall("\r\n".join([f"HTTP/1.1 {status} Reason", "Content-Length: 0", *headers, "", ""]).encode())
        self.n_answered += 1
        return True

    def refuse(self, fate, status, *headers):
        """Whether the sender reads the answer is not known, but it does not if it has gone."""
        self.note(LOST if self.has_hung_up() else fate)
        return self.answer(status, *headers)

    # What it may do. False: the connection ends.

    def ok(self):
        self.read()
        self.note(ACKED)
        return self.answer(200)

    def slow(self):
        """Reads slowly, and may take longer than the sender waits."""
        self.read(self.random.choice((0.05, 0.2, 1.0)))
        self.note(ACKED)
        return self.answer(200)

    def late(self):
        self.read()
        self.note(ACKED)
        time.sleep(self.random.uniform(0.2, 4))
        return self.answer(200)

    def cut(self):
        """The status is all that comes of the answer."""
        self.read()
        self.note(ACKED)
        self.peer.sendall(b"HTTP/1.1 200 Reason\r\nContent-Length: 1000\r\n\r\nshort")
        return False

    def unavailable(self):
        self.read()
        headers = self.random.choice(((), (), ("Retry-After: 1",)))
        return self.refuse(AGAIN, self.random.choice((429, 502, 503, 503, 504)), *headers)

    def bad(self):
        """Only if it is clear whether the sender has the request in doubt: what is refused then is given up, not merged."""
        is_answered = self.n_answered > 0
        self.read()
        fates = self.ledger.fates(self.body)
        if (is_answered and not fates) or fates & {DOUBTED, LOST}:
            return self.refuse(REFUSED, self.random.choice(self.refusals()))
        return self.refuse(AGAIN, 503)

    def refusals(self):
        """A limit of bytes is always the same. A point that is refused alone is lost, so none is."""
        size = len(gzip.decompress(self.body))
        return (413,) if size > LIMIT_BYTES else (400, 400, 500) if size > SMALL_BYTES else (500,)

    def lost(self):
        self.read()
        self.note(DOUBTED)
        return self.reset()

    def forgotten(self):
        self.read()
        self.note(LOST)
        return self.reset()

    def half(self):
        self.read(part=self.random.random())
        return self.reset()

    def unread(self):
        return self.reset()

    def hole(self):
        poll = select.poll()
        poll.register(self.peer, select.POLLRDHUP)
        poll.poll(HOLE_S * 1000)
        self.read()
        self.note(LOST)
        return False


KINDS = ("ok", "slow", "late", "cut", "unavailable", "bad", "lost", "forgotten", "half", "unread", "hole")


def weather(directory):
    with open(os.path.join(directory, "weather"), encoding="ascii") as file:
        return json.load(file)


def serve(peer, directory, ledger, random_):
    with peer, contextlib.suppress(OSError, Gone):
        connection = Connection(peer, ledger, random_)
        while peer.recv(1, socket.MSG_PEEK):
            kinds = weather(directory)
            if not getattr(connection, random_.choices(list(kinds), list(kinds.values()))[0])():
                break


def main(directory, address, port, seed):
    random_, ledger = random.Random(seed), Ledger(directory)
    with socket.create_server((address, int(port)), backlog=16) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # senders have a part of a large body when it resets
        print("ready", flush=True)
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=serve, args=(peer, directory, ledger, random_), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
