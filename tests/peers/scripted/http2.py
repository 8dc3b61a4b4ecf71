# SPDX-License-Identifier: Apache-2.0
"""As much of a server of HTTP/2 as takes one request at a time, and may say that it has not processed one."""

import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM = ACK = 1
END_HEADERS = 4
STATUS_200 = b"\x88"  # in HPACK's static table
REFUSED_STREAM = 7


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def read(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


class Server:
    """way: how the third request on a connection ends: "goaway", with a last stream before it, or "refused"."""

    def __init__(self, context, way):
        context.set_alpn_protocols(["h2"])
        self.context, self.way = context, way
        self.bodies, self.n_connections, self.n_refused = [], 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.n_connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            with self.context.wrap_socket(connection, server_side=True) as secured:
                read(secured, len(PREFACE))
                secured.sendall(frame(SETTINGS))
                self.serve_streams(secured)
        except (EOFError, OSError):
            pass

    def serve_streams(self, secured):
        n_streams, body, refused = 0, b"", None
        while True:
            head = read(secured, 9)
            size, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            payload = read(secured, size)
            if kind == SETTINGS and not flags & ACK:
                secured.sendall(frame(SETTINGS, ACK))
            elif kind == PING and not flags & ACK:
                secured.sendall(frame(PING, ACK, 0, payload))
            elif kind == HEADERS:
                n_streams, body = n_streams + 1, b""
                if n_streams == 3:
                    self.n_refused += 1
                    refused = stream
            elif kind == DATA:
                body += payload
            if not flags & END_STREAM or kind not in (HEADERS, DATA):
                continue
            if stream == refused and self.way == "goaway":
                secured.sendall(frame(GOAWAY, 0, 0, struct.pack(">II", stream - 2, 0)))
                return
            if stream == refused:
                secured.sendall(frame(RST_STREAM, 0, stream, struct.pack(">I", REFUSED_STREAM)))
                continue
            self.bodies.append(body)
            secured.sendall(frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_200))
