#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bpfpush check --connect`: a line for each receiver, the real Collector and others that are there, gone or wrong."""

import http.server
import os
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from agent import BPFPUSH
from collector import Collector, free_ports, main
from patience import PATIENCE_S

SECRET = "Sesame-4711"
ENDPOINT = "/v1/metrics"


class Door(http.server.BaseHTTPRequestHandler):
    """Answers as its class attributes say, and keeps what it was sent."""

    status, content_type, body, location = 200, "application/x-protobuf", b"", None

    def do_POST(self):
        self.server.bodies.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.status)
        self.send_header("Content-Type", self.content_type)
        self.send_header("Content-Length", str(len(self.body)))
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


def status_of(message):
    """google.rpc.Status with that message."""
    return b"\x12" + bytes([len(message)]) + message


class ConnectTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-connect."))

    def door(self, certificate=None, **answer):
        """The port of a server that answers so."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Door", (Door,), answer))
        server.bodies = []
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server, server.server_address[1]

    def listen(self, family, kind, address):
        one = socket.socket(family, kind)
        self.addCleanup(one.close)
        one.bind(address)
        if kind == socket.SOCK_STREAM:
            one.listen()
        return one

    def connect(self, status, **exporters):
        """{name: line without its name and time} of each."""
        path = os.path.join(self.directory, "conf")
        with open(path, "w", encoding="ascii") as file:
            for name, keys in exporters.items():
                file.write(f"[exporter {name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items()))
        done = subprocess.run([BPFPUSH, "check", "--connect", f"--config={path}"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        first, *lines = done.stdout.splitlines()
        self.assertRegex(first, "^OK: ")
        self.assertNotIn(SECRET, done.stdout + done.stderr)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return {name: re.sub(r" \(\d+\.\d{3} s\)$", "", line) for name, line in
                (line.removeprefix("exporter ").split(": ", 1) for line in lines)}

    def test_receivers_that_are_there_work(self):
        collector = self.enterContext(Collector())
        url, port = collector.otlp_urls[0], self.listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)).getsockname()[1]
        datagrams = self.listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        local = os.path.join(self.directory, "local")
        self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, local)
        self.assertEqual(self.connect(0, zipped={"type": "otlp", "endpoint": url}, plain={"type": "otlp", "endpoint": url, "compression": "none"},
                                      carbon={"type": "graphite", "endpoint": f"127.0.0.1:{port}"},
                                      udp={"type": "statsd", "endpoint": f"127.0.0.1:{datagrams.getsockname()[1]}"},
                                      unix={"type": "statsd", "endpoint": f"unix:{local}"}, file={"type": "json", "path": "/dev/null"},
                                      events={"type": "otlp", "endpoint": url, "signals": "events"}), {
            "zipped": f"{url}: works: HTTP 200", "plain": f"{url}: works: HTTP 200",
            "carbon": f"127.0.0.1:{port}: works: connected", "unix": f"unix:{local}: works: connected",
            "udp": f"127.0.0.1:{datagrams.getsockname()[1]}: works: nobody refused an empty datagram, UDP does not tell more",
            "file": "not tried: it has no receiver",
            "events": "not tried: it sends no metrics, and no collector that runs has what it sends"})
        self.assertEqual(datagrams.recv(100), b"")
        self.assertEqual(collector.points(), [])

    def test_receivers_that_are_gone_fail(self):
        port, = free_ports(1)
        datagrams, = free_ports(1, socket.SOCK_DGRAM)
        where = f"127.0.0.1:{port}"
        found = self.connect(1, otlp={"type": "otlp", "endpoint": f"http://{where}"}, carbon={"type": "graphite", "endpoint": where},
                             udp={"type": "statsd", "endpoint": f"127.0.0.1:{datagrams}"}, unix={"type": "statsd", "endpoint": "unix:/nonexistent"},
                             name={"type": "graphite", "endpoint": "receiver.invalid:1"})
        self.assertRegex(found.pop("otlp"), f"^http://{where}: fails: http://{where}/v1/metrics: .*port {port}.* connect")
        self.assertRegex(found.pop("name"), "^receiver.invalid:1: fails: receiver.invalid: .*(name|Name)")
        self.assertEqual(found, {
            "carbon": f"{where}: fails: {where}: Connection refused",
            "udp": f"127.0.0.1:{datagrams}: fails: 127.0.0.1:{datagrams}: nothing receives datagrams there",
            "unix": "unix:/nonexistent: fails: unix:/nonexistent: No such file or directory"})

    def test_what_a_receiver_says_is_shown_and_no_secret_is(self):
        refusing, port = self.door(status=401, body=status_of(b"who are \x1b[31myou"))
        _, page = self.door(content_type="text/html", body=b"<p>welcome")
        _, foreign = self.door(content_type="text/plain", body=b"welcome")
        _, json = self.door(content_type="application/json", body=b'{"status":"ok"}')
        _, moved = self.door(status=308, location=f"https://me:{SECRET}@door.invalid/v1/metrics")
        _, busy = self.door(status=503)
        secret = os.path.join(self.directory, "secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write(SECRET)
        os.chmod(secret, 0o600)
        found = self.connect(1, refused={"type": "otlp", "endpoint": f"http://me:{SECRET}@127.0.0.1:{port}/a?key={SECRET}",
                                         "headers": f"Api-Key: file:{secret}", "compression": "none"},
                             page={"type": "otlp", "endpoint": f"http://127.0.0.1:{page}"},
                             foreign={"type": "otlp", "endpoint": f"http://127.0.0.1:{foreign}"},
                             json={"type": "otlp", "endpoint": f"http://127.0.0.1:{json}"}, moved={"type": "otlp", "endpoint": f"http://127.0.0.1:{moved}"},
                             busy={"type": "otlp", "metrics_endpoint": f"http://127.0.0.1:{busy}/own"},
                             headless={"type": "otlp", "headers": "Api-Key: file:%d/none"})
        self.assertEqual(found, {
            "refused": f"http://127.0.0.1:{port}/a: fails: http://127.0.0.1:{port}/a/v1/metrics: refused for good: HTTP 401: who are ?[31myou (check the setting headers)",
            "page": f"http://127.0.0.1:{page}: fails: http://127.0.0.1:{page}/v1/metrics: HTTP 200: welcome (this is not an OTLP receiver: check the endpoint)",
            "foreign": f"http://127.0.0.1:{foreign}: fails: http://127.0.0.1:{foreign}/v1/metrics: HTTP 200: welcome (this is not an OTLP receiver: check the endpoint)",
            "json": f"http://127.0.0.1:{json}: fails: http://127.0.0.1:{json}/v1/metrics: HTTP 200: {{\"status\":\"ok\"}} (this is not an OTLP receiver: check the endpoint)",
            "moved": f"http://127.0.0.1:{moved}: fails: http://127.0.0.1:{moved}/v1/metrics: HTTP 308: Location: https://door.invalid/v1/metrics (redirects are not followed: if that is the receiver, use https://)",
            "busy": f"http://127.0.0.1:{busy}/own: fails: http://127.0.0.1:{busy}/own: HTTP 503",
            "headless": "http://localhost:4318: fails: headers: Api-Key: the file %d/none cannot be used: No such file or directory"})
        (_, headers, body), = refusing.bodies
        self.assertEqual((headers["Api-Key"], headers["Content-Type"], body), (SECRET, "application/x-protobuf", b""))

    def test_a_certificate_that_nobody_knows_fails_until_it_is_given(self):
        pem = os.path.join(self.directory, "pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=door",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pem, "-out", pem + ".crt"], check=True, capture_output=True)
        with open(pem, "ab") as both, open(pem + ".crt", "rb") as certificate:
            both.write(certificate.read())
        _, port = self.door(pem)
        url = f"https://127.0.0.1:{port}"
        found = self.connect(1, stranger={"type": "otlp", "endpoint": url}, friend={"type": "otlp", "endpoint": url, "ca_file": pem + ".crt"})
        self.assertRegex(found.pop("stranger"), f"^{url}: fails: {url}/v1/metrics: SSL certificate problem: self.signed certificate \\(set ca_file")
        self.assertEqual(found, {"friend": f"{url}: works: HTTP 200"})


if __name__ == "__main__":
    main()
