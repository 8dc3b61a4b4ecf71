# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on loopback that does to each request what a script says, and remembers what it saw.

A step is a function of the connection that has a request waiting; it returns False where the connection
ends. The last step is for all further requests.
"""

import gzip
import hashlib
import socket
import ssl
import struct
import threading
import time

PROTOBUF = "application/x-protobuf"


def read_request(connection):
    """(headers, body) of one request, or None where the other side has gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    headers = {"": lines[0]}
    for line in lines[1:]:
        name, value = line.split(":", 1)
        headers[name.lower()] = value.strip()
    while len(body) < int(headers.get("content-length", 0)):
        more = connection.recv(65536)
        if not more:
            return None
        body += more
    return headers, body


def reply(connection, status, body=b"", content_type=PROTOBUF, **headers):
    lines = [f"HTTP/1.1 {status} Reason", f"Content-Length: {len(body)}"]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    for name, value in headers.items():
        lines.append(f"{name.replace('_', '-')}: {value() if callable(value) else value}")
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    return True


def answer(*what, **more):
    """Reads the request, answers, keeps the connection."""
    def step(server, connection):
        return server.remember(read_request(connection)) and reply(connection, *what, **more)
    return step


def close_before_read(server, connection):
    """Drops what has come unread: the other side sees a reset."""
    server.n_dropped += 1
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def close_after_read(server, connection):
    """Has the whole request and says nothing."""
    server.remember(read_request(connection))
    return False


def answer_half(status, content_type=None):
    """Says the status and hangs up inside the body."""
    head = f"HTTP/1.1 {status} Reason\r\nContent-Length: 1000\r\n" + (f"Content-Type: {content_type}\r\n" if content_type else "")

    def step(server, connection):
        server.remember(read_request(connection))
        connection.sendall(f"{head}\r\nshort".encode())
        return False
    return step


def silence(server, connection):
    """Reads and is silent, until the other side has enough of it."""
    server.remember(read_request(connection))
    connection.recv(1)
    return False


def after(event, step):
    """That, once the event is set."""
    def wait_and_step(server, connection):
        event.wait()
        return step(server, connection)
    return wait_and_step


def drip(begin):
    """That, and then a byte now and then, until the other side has enough of it."""
    def step(server, connection):
        server.remember(read_request(connection))
        connection.sendall(begin)
        while True:
            time.sleep(0.05)
            connection.sendall(b"y")
    return step


def say(text):
    """Reads, says that and hangs up."""
    def step(server, connection):
        server.remember(read_request(connection))
        connection.sendall(text)
        return False
    return step


def bomb(status):
    """5 MiB of zeros in 5 KiB."""
    return answer(status, gzip.compress(bytes(5 << 20)), Content_Encoding="gzip")


class BlackHole:
    """Listens, and its queue is full: the kernel answers no further connection."""

    def __init__(self, host, port):
        listener = socket.create_server((host, port), backlog=0)
        self.sockets = [listener]
        for _ in range(4):
            self.sockets.append(socket.socket())
            self.sockets[-1].setblocking(False)
            self.sockets[-1].connect_ex((host, port))

    def stop(self):
        for each in self.sockets:
            each.close()


class Server:
    """Serves until stop(); one thread a connection."""

    def __init__(self, steps, context=None, port=0, host="127.0.0.1"):
        self.steps = list(steps)
        self.context = context
        self.requests = []  # (time, connection's number, headers, digest of the body, body)
        self.n_dropped = 0
        self.n_connections = self.n_closed = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server((host, port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def remember(self, request):
        if request is None:
            return False
        headers, body = request
        with self.lock:
            digest = hashlib.sha1(body).hexdigest()
            self.requests.append((time.monotonic(), threading.current_thread().name, headers, digest, body))
        return True

    def next_step(self):
        with self.lock:
            return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.n_connections += 1
            threading.Thread(target=self.serve, args=(connection,), name=str(self.n_connections),
                             daemon=True).start()

    def serve(self, connection):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            # A step begins when a request does, not when a connection does.
            while self.has_request(connection):
                if not self.next_step()(self, connection):
                    break
        except (OSError, ssl.SSLError):
            pass
        finally:
            connection.close()
            with self.lock:
                self.n_closed += 1

    @staticmethod
    def has_request(connection):
        if isinstance(connection, ssl.SSLSocket):
            return True  # no peeking in TLS; read_request() sees the end
        return bool(connection.recv(1, socket.MSG_PEEK))

    def stop(self):
        # close() alone leaves a thread in accept() with the socket.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
