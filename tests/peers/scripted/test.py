#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The OTLP exporter against everything a receiver may do: what is sent, again or not, and how it is counted.

How long anything took is not looked at, but how long the exporter said or saw by its own clock that it waited, at least.

    test.py PUSH_OTLP PROTOC PROTO [NAME…]
"""

import collections
import email.utils
import gzip
import itertools
import json
import os
import random
import re
import resource
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))

import http2  # noqa: E402
import patience  # noqa: E402
import server as scripted  # noqa: E402
from server import answer  # noqa: E402

PUSH, PROTOC, PROTO = sys.argv[1:4]
ONLY = sys.argv[4:]
FAST = ["retry_initial=20ms", "retry_max=100ms"]
LAZY = ["retry_initial=1h", "retry_max=1h"]  # only what goes again at once does so in time
N = 10  # points of a batch


# What the log has if points were counted there.
LOSSES = {
    "rejected": r"refused for good: .*; its points are dropped|the receiver rejected \d+ point|the receiver refuses each of them alone",
    "dropped_queue": "its queue is full, the oldest points are dropped",
    "dropped_size": "each alone is longer than max_request_size",
    "dropped_error": "points are lost[:,]",
    "dropped_doubt": "points may be lost: the receiver may have them",
}


class Failed(Exception):
    pass


def expect(what, seen, wanted):
    if callable(wanted) and not wanted(seen) or not callable(wanted) and seen != wanted:
        raise Failed(f"{what} is {seen}" + ("" if callable(wanted) else f", not {wanted}"))


class Client:
    """The exporter at work, and what it has said so far."""

    def __init__(self, command, **options):
        self.files = [tempfile.TemporaryFile("w+") for _ in range(2)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self.files[0], stderr=self.files[1], bufsize=0, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        for file in self.files:
            file.close()

    def said(self, number):
        return os.pread(self.files[number].fileno(), 1 << 24, 0).decode()

    def log(self):
        return self.said(1)

    def attempts(self):
        """[[when it began, when it ended], …] in us, without the end of one that is under way."""
        found = []
        for what, us in re.findall(r"^(began|ended) (\d+)$", self.said(0), re.MULTILINE):
            if what == "began":
                found.append([])
            found[-1].append(int(us))
        return found

    def n_pushed(self):
        return self.said(0).count("pushed\n")

    def n_ended(self):
        return self.said(0).count("ended ")

    def ask(self, batches="b"):
        """Of --on-demand: so many more batches, and waits until they are pushed."""
        wanted = self.n_pushed() + len(batches)
        self.process.stdin.write(batches.encode())
        self.wait(lambda: self.n_pushed() == wanted)

    def settle(self):
        """Until nothing is on its way, and nothing follows at once."""
        seen = None
        while seen != (now := (self.n_ended(), self.said(0).count("began "))) or now[0] < now[1]:
            seen = now
            time.sleep(0.05)

    def wait(self, condition):
        def has_ended_or_holds():
            is_over = self.process.poll() is not None
            return condition() or is_over
        patience.wait(has_ended_or_holds, self.log)
        expect("ended before its time", condition(), bool)

    def finish(self):
        """(its counts, its log)"""
        self.process.stdin.close()
        if self.process.wait(patience.PATIENCE_S):
            raise Failed(f"exit status {self.process.returncode}: {self.log()}")
        counts = json.loads(self.said(0).splitlines()[-1])
        for name, words in LOSSES.items():
            if counts[name] and not re.search(words, self.log()):
                raise Failed(f"{counts[name]} points are lost without a word ({name}): {self.log()}")
        return {**counts, "attempts": self.attempts()}, self.log()


def push(url, *arguments, environment=None, file_bytes=None, prefix=(), meanwhile=lambda client: None):
    """Runs the exporter; (its counts, its log). file_bytes: no file can get longer, as on a disk that is full."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_") and not k.lower().endswith("_proxy")}
    env.update(environment or {})
    command = [*prefix, PUSH, *arguments] + ([f"endpoint={url}"] if url else [])
    limit = file_bytes and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes)))
    with Client(command, env=env, preexec_fn=limit, restore_signals=False) as client:  # SIGXFSZ stays ignored
        meanwhile(client)
        return client.finish()


def when_pushed(count, event):
    """Meanwhile: the event happens as soon as so many batches are pushed."""
    def meanwhile(client):
        client.wait(lambda: client.n_pushed() == count)
        event.set()
    return meanwhile


def encode(message, text):
    return subprocess.run([PROTOC, f"--encode=otlp.{message}", f"--proto_path={os.path.dirname(PROTO)}", PROTO],
                          input=text.encode(), capture_output=True, check=True).stdout


def decode(body):
    return subprocess.run([PROTOC, "--decode=otlp.ExportMetricsServiceRequest",
                           f"--proto_path={os.path.dirname(PROTO)}", PROTO],
                          input=body, capture_output=True, check=True).stdout.decode()


PARTIAL = encode("ExportMetricsServiceResponse", 'partial_success { rejected_data_points: 3 error_message: "too old" }')
WARNING = encode("ExportMetricsServiceResponse", 'partial_success { error_message: "be careful" }')
HUGE_PARTIAL = encode("ExportMetricsServiceResponse", "partial_success { rejected_data_points: 999 }")
NEGATIVE = encode("ExportMetricsServiceResponse", "partial_success { rejected_data_points: -5 }")
JSON_PARTIAL = b'{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "too old"}}'
STATUS = encode("Status", 'code: 3 message: "bad \\033[31m data"')


def at_once(_, text):
    """The first delay is 20 ms at most."""
    expect("delay", re.findall(r"kept for another attempt(?: in ([\d.]+) s)?$", text, re.MULTILINE), lambda seen: seen in (["0.0"], [""]))


def after_a_second(attempts, text):
    """As the receiver wants it, and half as much more at most."""
    expect("delay", re.findall(r"kept for another attempt in ([\d.]+) s$", text, re.MULTILINE), lambda seen: 1.0 <= float(*seen) <= 1.5)
    expect("delay in us", attempts[1][0] - attempts[0][1], lambda seen: seen >= 10**6)


def after_a_timeout(attempts, text):
    at_once(attempts, text)
    expect("time-out", re.findall(r"timed out after (\d+) milliseconds", text), lambda seen: int(*seen) >= TIMEOUT_MS)


TIMEOUT_MS = 1000
ACCEPTED = {"exported": N, "rejected": 0, "requests": 1, "retries": 0, "inflight": 0, "is_idle": 1, "is_failing": 0}
PAGE = b"<html><title>Log in</title>"
NOT_OTLP = r" \(this is not an OTLP receiver: check the endpoint\); kept for another attempt"
REFUSED = {"exported": 0, "rejected": N, "requests": 1, "retries": 0, "inflight": 0, "is_idle": 1, "is_failing": 1}
RETRIED = {"exported": N, "rejected": 0, "requests": 2, "retries": 1, "inflight": 0, "is_idle": 1, "is_failing": 0}

# name: (steps, what is counted, when the second attempt comes, what the log says)
ANSWERS = {
    "200": ([answer(200)], ACCEPTED, None, ""),
    "200, JSON body": ([answer(200, b"{}", "application/json")], ACCEPTED, None, ""),
    "200, partial success": ([answer(200, PARTIAL)], {**ACCEPTED, "exported": 7, "rejected": 3}, None,
                             "rejected 3 points: too old"),
    "200, warning": ([answer(200, WARNING)], ACCEPTED, None, "warns: be careful"),
    "200, more rejected than sent": ([answer(200, HUGE_PARTIAL)], {**ACCEPTED, "exported": 0, "rejected": N}, None, ""),
    "200, rejected is negative": ([answer(200, NEGATIVE)], ACCEPTED, None, ""),
    "200, a field of a later version": ([answer(200, b"\x78\x05")], ACCEPTED, None, ""),
    "200, garbage": ([answer(200, b"\xff\x00garbage"), answer(200)], RETRIED, at_once, "HTTP 200" + NOT_OTLP),
    "200, text": ([answer(200, b"OK\n", "text/plain"), answer(200)], RETRIED, at_once, "HTTP 200: OK" + NOT_OTLP),
    "200, text without a type": ([answer(200, b"OK", None), answer(200)], RETRIED, at_once, "HTTP 200: OK" + NOT_OTLP),
    "200, other JSON": ([answer(200, b'{"status":"ok"}', "application/json"), answer(200)], RETRIED, at_once,
                        r'HTTP 200: \{"status":"ok"\}' + NOT_OTLP),
    "200, partial success in JSON": ([answer(200, JSON_PARTIAL, "application/json; charset=utf-8")],
                                     {**ACCEPTED, "exported": 7, "rejected": 3}, None, "rejected 3 points: too old"),
    "200, partial success of another type": ([answer(200, PARTIAL, "application/protobuf")], {**ACCEPTED, "exported": 7, "rejected": 3}, None,
                                             "rejected 3 points: too old"),
    "200, partial success as text": ([answer(200, PARTIAL, "text/plain")], {**ACCEPTED, "exported": 7, "rejected": 3}, None,
                                     "rejected 3 points: too old"),
    "200, JSON without a type": ([answer(200, b"{}\n", None)], ACCEPTED, None, ""),
    "200, empty, as HTML": ([answer(200, b"", "text/html")], ACCEPTED, None, ""),
    "200, empty, as gRPC": ([answer(200, b"", "application/grpc"), answer(200)], RETRIED, at_once, "HTTP 200 .*OTLP/gRPC"),
    "200, body cut off": ([scripted.answer_half(200)], ACCEPTED, None, ""),
    "200, a web page cut off": ([scripted.answer_half(200, "text/html"), answer(200)], RETRIED, at_once, "HTTP 200: transfer closed .*" + NOT_OTLP),
    "200, a web page that is no gzip": ([answer(200, PAGE, "text/html", Content_Encoding="gzip"), answer(200)], RETRIED, at_once, "HTTP 200: .*" + NOT_OTLP),
    "200, a web page": ([answer(200, PAGE, "text/html"), answer(200)], RETRIED, at_once, "HTTP 200: Log in" + NOT_OTLP),
    "200, a web page as protobuf": ([answer(200, PAGE), answer(200)], RETRIED, at_once, "HTTP 200: Log in" + NOT_OTLP),
    "201": ([answer(201, b"", None)], ACCEPTED, None, ""),
    "202": ([answer(202)], ACCEPTED, None, ""),
    "202, JSON body": ([answer(202, b"{}", "application/json")], ACCEPTED, None, ""),
    "204": ([answer(204, b"", None)], ACCEPTED, None, ""),
    "204, as HTML": ([answer(204, b"", "text/html")], ACCEPTED, None, ""),
    "301": ([answer(301, Location="http://me:pw@127.0.0.1:1/new?token=1"), answer(200)], RETRIED, at_once,
            r"/v1/metrics: HTTP 301: Location: http://127\.0\.0\.1:1/new \(redirects are not followed: if that is the receiver, set the URL to it\); kept"),
    "308, to https": ([answer(308, Location="https://127.0.0.1:1/v1/metrics"), answer(200)], RETRIED, at_once,
                      r"HTTP 308: Location: https://127\.0\.0\.1:1/v1/metrics \(redirects are not followed: if that is the receiver, use https://\); kept"),
    "302, a page": ([answer(302, PAGE, "text/html"), answer(200)], RETRIED, at_once, r"HTTP 302: Log in \(redirects are not followed"),
    "400, Status": ([answer(400, STATUS)], REFUSED, None, r"HTTP 400: bad \S+\[31m data"),
    "400, text": ([answer(400, b"out of order", "text/plain")], REFUSED, None, "HTTP 400: out of order;"),
    "400, JSON": ([answer(400, b'{"code":3,"message":"bad \\u001b[31m data"}', "application/json")], REFUSED, None,
                  r"HTTP 400: bad \?\[31m data;"),
    "400, HTML": ([answer(400, b"<html><title>Bad\nRequest</title>", "text/html")], REFUSED, None, "HTTP 400: Bad Request;"),
    "400, for TLS": ([answer(400, b"Client sent an HTTP request to an HTTPS server.\n", None)], REFUSED, None,
                     r"to an HTTPS server\. \(the port speaks TLS: try https://\);"),
    "401": ([answer(401)], REFUSED, None, r"HTTP 401 \(check the setting headers"),
    "403": ([answer(403)], REFUSED, None, r"HTTP 403 \(check the setting headers"),
    "404": ([answer(404)], REFUSED, None, r"HTTP 404 \(is the path of the URL right\? Most receivers take /v1/metrics"),
    "405": ([answer(405)], REFUSED, None, r"HTTP 405 \(is the path of the URL right\? Most receivers take /v1/metrics"),
    "407": ([answer(407), answer(200)], RETRIED, at_once, r"HTTP 407 \(the proxy wants credentials: http_proxy=[^)]*\); kept"),
    "408": ([answer(408), answer(200)], RETRIED, at_once, "HTTP 408; kept"),
    "413": ([answer(413)], REFUSED, None, r"HTTP 413 \(lower max_request_size\);"),
    "415": ([answer(415)], REFUSED, None, r"HTTP 415 \(try compression = none\);"),
    "415, gRPC": ([answer(415, b"", "application/grpc")], REFUSED, None, r"HTTP 415 \(this is OTLP/gRPC, .* try port 4318\);"),
    "HTTP/0.9": ([scripted.say(b"+OK ready\r\n"), answer(200)], RETRIED, None, r"\(something else than HTTP listens there\);"),
    "429, seconds": ([answer(429, Retry_After="1"), answer(200)], RETRIED, after_a_second, "HTTP 429"),
    "429, a past date": ([answer(429, Retry_After="Sun, 06 Nov 1994 08:49:37 GMT"), answer(200)], RETRIED, at_once, ""),
    "429, negative": ([answer(429, Retry_After="-1000"), answer(200)], RETRIED, at_once, ""),
    "429, a fraction": ([answer(429, Retry_After="1.5"), answer(200)], RETRIED, at_once, ""),
    "429, a date that is not HTTP's": ([answer(429, Retry_After="2126-11-27T15:18:58Z"), answer(200)], RETRIED, at_once, ""),
    "429, nonsense": ([answer(429, Retry_After="soon"), answer(200)], RETRIED, at_once, ""),
    "425": ([answer(425), answer(200)], RETRIED, at_once, "HTTP 425; kept"),
    "429": ([answer(429), answer(200)], RETRIED, at_once, r"HTTP 429 \(it limits how much it takes: a longer interval helps\); kept"),
    "499": ([answer(499), answer(200)], RETRIED, at_once, "HTTP 499; kept"),
    "500": ([answer(500)], REFUSED, None, "HTTP 500"),
    "501": ([answer(501)], REFUSED, None, "HTTP 501"),
    "502": ([answer(502), answer(200)], RETRIED, at_once, "HTTP 502"),
    "503": ([answer(503), answer(200)], RETRIED, at_once, "HTTP 503"),
    "504": ([answer(504), answer(200)], RETRIED, at_once, "HTTP 504"),
    "505": ([answer(505)], REFUSED, None, "HTTP 505"),
    "520": ([answer(520, PAGE, "text/html"), answer(200)], RETRIED, at_once, "HTTP 520: Log in; kept"),
    "524": ([answer(524), answer(200)], RETRIED, at_once, "HTTP 524; kept"),
    "525": ([answer(525)], REFUSED, None, "HTTP 525"),
    "503, then 400": ([answer(503), answer(400)], {**REFUSED, "requests": 2, "retries": 1}, None, "HTTP 400"),
    "close after read": ([scripted.close_after_read, answer(200)], RETRIED, at_once, "kept for another attempt"),
    "silence": ([scripted.silence, answer(200)], RETRIED, after_a_timeout, ""),
    "drip": ([scripted.drip(b"HTTP/1.1 200 OK\r\nX: "), answer(200)], RETRIED, after_a_timeout, ""),
    "200, a body without end": ([scripted.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"), answer(200)], RETRIED, after_a_timeout,
                                ""),
    "200, gzip bomb": ([scripted.bomb(200), answer(200)], RETRIED, at_once, "HTTP 200: the answer is larger than max_response_size" + NOT_OTLP),
    "200, longer than a response can be": ([answer(200, b"\x18\x00" * 40000), answer(200)], RETRIED, at_once, "HTTP 200" + NOT_OTLP),
    "400, gzip bomb": ([scripted.bomb(400)], REFUSED, None, "HTTP 400: the answer is larger than max_response_size;"),
    "503, gzip bomb": ([scripted.bomb(503), answer(200)], RETRIED, at_once,
                       "HTTP 503: the answer is larger than max_response_size; kept"),
}


def run_answer(name):
    steps, wanted, delay, log = ANSWERS[name]
    server = scripted.Server(steps)
    more = [f"timeout={TIMEOUT_MS}ms"] if delay is after_a_timeout else []
    if "400" in name or "413" in name:  # more points would be sent in parts
        more.append("--series=1")
        wanted = {key: 1 if value == N else value for key, value in wanted.items()}
    counts, text = push(f"http://127.0.0.1:{server.port}", *FAST, *more)
    server.stop()
    for key, value in wanted.items():
        expect(key, counts[key], value)
    expect("requests that arrived", len(server.requests), wanted["requests"])
    expect("attempts", len(counts["attempts"]), wanted["requests"])
    expect("connections", server.n_connections, wanted["requests"])
    expect("different bodies", len({request[3] for request in server.requests}), 1)
    if delay:
        delay(counts["attempts"], text)
    if not re.search(log, text):
        raise Failed(f"the log lacks {log!r}: {text}")
    if "\033" in text:
        raise Failed("control characters in the log")


def a_date_in_retry_after_is_waited_for():
    dates = []

    def refuse(server, connection):
        dates.append(int(time.time()) + 3)
        return answer(429, Retry_After=email.utils.formatdate(dates[0], usegmt=True))(server, connection)
    server = scripted.Server([refuse, answer(200)])
    counts, text = push(f"http://127.0.0.1:{server.port}", *FAST)
    expect("requests", counts["requests"], 2)
    expect("too early, in s", dates[0] - (time.time() - time.monotonic() + server.requests[1][0]), lambda seen: seen < 0.01)
    expect("delay", re.findall(r"HTTP 429.*; kept for another attempt in ([\d.]+) s$", text, re.MULTILINE), lambda seen: float(*seen) <= 4.5)


def the_request_is_what_the_protocol_asks_for():
    server = scripted.Server([answer(200)])
    secret = tempfile.NamedTemporaryFile("w", suffix=".token")
    secret.write("Bearer abc\n")
    secret.flush()
    _, text = push(f"http://127.0.0.1:{server.port}/base/", "headers=X-Scope-OrgID: tenant one",
                   f"headers=Authorization: file:{secret.name}")
    headers = server.requests[0][2]
    expect("request line", headers[""], "POST /base/v1/metrics HTTP/1.1")
    expect("type", headers["content-type"], "application/x-protobuf")
    expect("encoding", headers["content-encoding"], "gzip")
    expect("agent", headers["user-agent"], "bpfpush/1.2.3 OTel-OTLP-Exporter-C/1.2.3")
    expect("tenant", headers["x-scope-orgid"], "tenant one")
    expect("secret", headers["authorization"], "Bearer abc")
    expect("Expect", headers.get("expect"), None)
    if "abc" in text:
        raise Failed("the secret is in the log")
    decoded = decode(gzip.decompress(server.requests[0][4]))
    expect("points", decoded.count("data_points {"), N)
    expect("scope", 'name: "bpfpush.test"' in decoded, True)


def no_compression_and_a_url_as_it_is():
    server = scripted.Server([answer(200)])
    push(None, f"metrics_endpoint=http://127.0.0.1:{server.port}/a/../otlp?x=1", "compression=none")
    expect("request line", server.requests[0][2][""], "POST /a/../otlp?x=1 HTTP/1.1")
    expect("encoding", server.requests[0][2].get("content-encoding"), None)
    expect("points", decode(server.requests[0][4]).count("data_points {"), N)


def environment_ranks_below_options():
    server = scripted.Server([answer(200)])
    base = f"http://127.0.0.1:{server.port}"
    cases = [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": base + "/x"}, [], "/x/v1/metrics"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": base + "/x/"}, [], "/x/v1/metrics"),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": base, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, [], "/"),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": base + "/y/"}, [], "/y/"),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:1/"}, [f"endpoint={base}"], "/v1/metrics"),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "", "OTEL_EXPORTER_OTLP_ENDPOINT": base}, [], "/v1/metrics"),
    ]
    for environment, options, path in cases:
        push(None, *options, environment=environment)
        expect(f"path with {environment}", server.requests[-1][2][""].split()[1], path)
    _, text = push(base, environment={
        "OTEL_EXPORTER_OTLP_HEADERS": "a=b%20c, x-second = d ,bad=%zz,evil=a%0d%0ab: c,cut=sesame,sesame,none=,x-file=file:/dev/null",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "NONE", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "junk",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "Delta"})
    headers = server.requests[-1][2]
    expect("decoded header", headers["a"], "b c")
    expect("second header", headers["x-second"], "d")
    expect("encoding", headers.get("content-encoding"), None)
    expect("temporality", "TEMPORALITY_DELTA" in decode(server.requests[-1][4]), True)
    expect("no file", headers["x-file"], "file:/dev/null")
    expect("headers that were ignored", re.findall(r"OTLP_HEADERS: item (\d+): .*; ignored", text), ["3", "4", "5", "6"])
    expect("parts of secrets", ("cut" in headers, text.count("sesame")), (False, 0))
    for word in ("METRICS_TIMEOUT", "PROTOCOL"):
        if word not in text:
            raise Failed(f"no word of {word} in {text}")


def batches_go_one_at_a_time_in_order_over_one_connection():
    server = scripted.Server([answer(200)])
    counts, _ = push(f"http://127.0.0.1:{server.port}", "--batches=20", "--pause=0", "compression=none", "temporality=delta")
    expect("exported", counts["exported"], 20 * N)
    expect("connections", server.n_connections, 1)
    times = [int(re.search(r"time_unix_nano: (\d+)\n\s+as_int", decode(request[4])).group(1)) for request in server.requests]
    expect("times", times, sorted(times))
    expect("requests", len(times), 20)


def large_batches_are_split():
    server = scripted.Server([answer(200)])
    counts, _ = push(f"http://127.0.0.1:{server.port}", "--series=1000", "max_request_size=8KiB", "compression=none")
    expect("exported", counts["exported"], 1000)
    expect("largest body", max(len(request[4]) for request in server.requests), lambda size: 4096 < size <= 8192)
    expect("points", sum(decode(request[4]).count("data_points {") for request in server.requests), 1000)


def values(server, first=0):
    """What each request says of the first series."""
    return [int(re.search(r"as_int: (\d+)", decode(gzip.decompress(request[4]))).group(1)) for request in server.requests[first:]]


# Of the first series, batch i has a delta of i and a total of i (i + 1) / 2.
LONG = ["--batches=10", "--pause=5", *FAST]
DELTA = [*LONG, "temporality=delta"]


def after_an_outage_the_newest_totals_go_first_and_alone():
    all_are_pushed = threading.Event()
    server = scripted.Server([scripted.after(all_are_pushed, scripted.close_after_read), answer(200)])
    counts, _ = push(f"http://127.0.0.1:{server.port}", *LONG, "queue_requests=3", meanwhile=when_pushed(10, all_are_pushed))
    expect("what arrived", values(server), [1, 55])
    expect("exported", counts["exported"], N)
    expect("dropped", counts["dropped_queue"], 0)


def of_the_backlog_of_totals_one_window_stays_for_each_time():
    all_are_pushed = threading.Event()
    server = scripted.Server([scripted.after(all_are_pushed, answer(503)), answer(200)])
    counts, _ = push(f"http://127.0.0.1:{server.port}", *LONG, "backlog=4s", meanwhile=when_pushed(10, all_are_pushed))
    # The totals at 2 to 11 s; those at 3 and 7 s are the last of their four seconds. The oldest goes first.
    expect("what arrived", values(server, 1), [3, 21, 55])
    expect("exported", counts["exported"], 3 * N)


def a_backlog_is_spread_over_an_interval():
    """Of 40 windows each pause is up to 100 ms, at random: with 0.18 s as the deviation of their sum, it is 2 s."""
    all_are_pushed = threading.Event()
    server = scripted.Server([scripted.after(all_are_pushed, answer(503)), answer(200)])
    counts, _ = push(f"http://127.0.0.1:{server.port}", *DELTA, "--batches=40", "--interval=1000",
                     meanwhile=when_pushed(40, all_are_pushed))
    expect("what arrived", sum(values(server, 1)), 40 * 41 // 2)
    taken = counts["attempts"][-40:]
    expect("pauses", sum(later[0] - sooner[1] for sooner, later in zip(taken, taken[1:])), lambda us: us > 10**6)


def deltas_that_a_full_queue_has_no_room_for_are_merged():
    all_are_pushed = threading.Event()
    server = scripted.Server([scripted.after(all_are_pushed, answer(503)), answer(200)])
    counts, text = push(f"http://127.0.0.1:{server.port}", *DELTA, "queue_requests=3", meanwhile=when_pushed(10, all_are_pushed))
    expect("dropped", counts["dropped_queue"], 0)
    expect("what arrived", sum(values(server, 1)), 55)
    expect("requests that arrived", len(server.requests) - 1, lambda n: n <= 3)
    expect("warnings", text.count("queue is full"), 0)


def deltas_that_were_refused_or_expired_are_in_the_next_ones():
    for status in (400, 401, 413, 500):
        refusal, one = answer(status), ["--series=1"]  # more points would be sent in parts
        server = scripted.Server([refusal, refusal, refusal, answer(200)])

        def push_ten(client):
            """Each batch takes up what was refused before it."""
            for n in range(10):
                client.ask()
                client.wait(lambda n=n: client.n_ended() > n)
        counts, text = push(f"http://127.0.0.1:{server.port}", *DELTA, "--on-demand", *one, meanwhile=push_ten)
        expect("what arrived", sum(values(server, 3)), 55)
        expect("lost", counts["rejected"] + counts["dropped_error"], 0)
        expect("exported and waiting", (counts["exported"] > 0, counts["inflight"]), (True, 0))
        expect("said", text.count("its counts are in the next request"), 1)
    server = scripted.Server([answer(503), answer(503), answer(503), answer(503), answer(200)])

    def push_until_they_arrive(client):
        while len(server.requests) < 5:
            client.ask()
            time.sleep(0.05)
        client.ask()  # what was given up meanwhile goes with it
        pushed.append(client.n_pushed())
    pushed = []
    counts, _ = push(f"http://127.0.0.1:{server.port}", *DELTA, "--on-demand", "retry_give_up=60ms", meanwhile=push_until_they_arrive)
    expect("what arrived", sum(values(server, 4)), pushed[0] * (pushed[0] + 1) // 2)
    expect("lost", counts["dropped_error"], 0)


def what_something_else_answers_keeps_deltas():
    """Who answers a page, a redirect or 407 does not have them. Who answers OK may."""
    sure = [answer(200, b"<html>", "text/html"), answer(302, Location="https://a.invalid/"), answer(407)]
    for others, n_doubtful in ((sure, 0), ([answer(200, b"OK", "text/plain")], N), ([scripted.bomb(200)], N)):
        server = scripted.Server([*others, answer(200)])
        counts, text = push(f"http://127.0.0.1:{server.port}", *DELTA)
        expect("what arrived", sum(values(server, len(others))), 55)
        expect("the same bytes", len({request[3] for request in server.requests[:len(others) + 1]}), 1)
        expect("in doubt", counts["doubtful_points"], n_doubtful)
        expect("rejected, lost", [counts[key] for key in ("rejected", "dropped_error", "dropped_doubt")], [0, 0, 0])
        expect("doubts", text.count("may have counted it"), n_doubtful // N)


def deltas_that_are_always_refused_wait():
    for status in (400, 401, 413):
        server = scripted.Server([answer(status)])
        counts, _ = push(f"http://127.0.0.1:{server.port}", *DELTA, "--pause=100")
        expect("exported or rejected", counts["exported"] + counts["rejected"], 0)
        expect("waiting: a window or two", counts["inflight"], lambda n: n <= 2 * N)
        expect("idle and failing", (counts["is_idle"], counts["is_failing"]), (1, 1))


class Judge(scripted.Server):
    """Answers 200, or what rule(points) says. A point is {n: value}, with the number of its series."""

    def __init__(self, rule, words=b""):
        self.rule, self.words, self.taken, self.refused = rule, words, [], []
        self.sizes = []  # of each request, in points; of one that was refused and can be cut, below 0
        super().__init__([lambda _, connection: self.judge(connection)])

    def judge(self, connection):
        request = scripted.read_request(connection)
        if not self.remember(request):
            return False
        status = self.status(request[1])
        return scripted.reply(connection, 200) if status == 200 else scripted.reply(connection, status, self.words, "text/plain")

    def status(self, body):
        points = {int(n): int(value) for value, n in re.findall(r"as_int: (\d+)\s+attributes {.*?int_value: (\d+)", decode(gzip.decompress(body)), re.DOTALL)}
        status = self.rule(points)
        (self.taken if status == 200 else self.refused).append(points)
        self.sizes.append(len(points) if status == 200 or len(points) == 1 else -len(points))
        return status

    def sums(self):
        """Of deltas that were taken: {number of the series: sum}."""
        found = collections.Counter()
        for points in self.taken:
            found.update(points)
        return dict(found)


def until_it_arrives(server, series):
    """Meanwhile: batches, until these series' counts have arrived."""
    def has_all(client):
        n = client.n_pushed()
        latest = {i: points[i] for points in server.taken for i in points}
        return n > 0 and any({found.get(i) for i in series} == {n * (n + 1) // 2} for found in (server.sums(), latest))

    def push_until(client):
        while not has_all(client):
            client.ask()
            client.settle()
    return push_until


def a_request_that_is_too_large_is_cut_and_its_size_is_kept():
    for status, refused in ((400, [1000, 500, 250, 125, 125]), (413, [1000, 500, 250, 125])):
        server = Judge(lambda points, status=status: status if len(points) > 100 else 200, b"at most 100")
        counts, text = push(f"http://127.0.0.1:{server.port}", "--series=1000", "--on-demand", *FAST, meanwhile=until_it_arrives(server, range(1000)))
        expect("rejected", counts["rejected"], 0)
        expect("failing or waiting", (counts["is_failing"], counts["inflight"]), (0, 0))
        expect("exported", counts["exported"], sum(map(len, server.taken)))
        expect("refused", [len(points) for points in server.refused], refused)
        expect("told", (text.count("; it is sent in parts"), text.count("they have at most 64 points")), (1, 1))
        expect("words", f"a request of 1000 points (HTTP {status}: at most 100)" in text, True)
        expect("failed", text.count("refused for good") + text.count("delivers again"), 0)


def deltas_that_are_too_many_for_a_request_go_in_smaller_ones():
    server = Judge(lambda points: 413 if len(points) > 100 else 200, b"at most 100")
    counts, text = push(f"http://127.0.0.1:{server.port}", "--series=1000", "--on-demand", "temporality=delta", *FAST,
                        meanwhile=until_it_arrives(server, range(1000)))
    expect("sizes that were refused", sorted({len(points) for points in server.refused}), [125, 250, 500, 1000])
    expect("rejected, failing, waiting", (counts["rejected"], counts["is_failing"], counts["inflight"]), (0, 0, 0))
    expect("told", text.count("they have at most 64 points"), 1)


def a_limit_of_points_holds_from_the_start():
    server = Judge(lambda points: 400 if len(points) > 100 else 200)
    counts, _ = push(f"http://127.0.0.1:{server.port}", "--series=1000", "max_request_points=100", *FAST)
    expect("requests", [len(points) for points in server.taken + server.refused], 10 * [100])
    expect("exported", counts["exported"], 1000)


def one_bad_point_is_lost_alone():
    """Those of the first batch are 1, and all others more."""
    for bad, temporality in itertools.product(({0}, {499}, {999}, {0, 1}, {3, 500}), ("cumulative", "delta")):
        server = Judge(lambda points, bad=bad: 400 if any(points.get(n) == 1 for n in bad) else 200, b"bad point")
        counts, text = push(f"http://127.0.0.1:{server.port}", "--series=1000", "--on-demand", f"temporality={temporality}", *FAST,
                            meanwhile=until_it_arrives(server, set(range(1000)) - bad))
        # Each cut of deltas is saved before the next request.
        saved = list(map(int, re.findall(r"^saved after (\d+)$", text, re.MULTILINE)))
        expect("saved", saved, [n for n, size in enumerate(server.sizes, 1) if size < 0] if temporality == "delta" else [])
        expect("batches", counts["pushed"], 1000)
        expect("rejected", counts["rejected"], len(bad))
        expect("exported", counts["exported"], 1000 - len(bad))
        expect("told", text.count("refuses each of them alone: HTTP 400: bad point"), 1)
        expect("failing or waiting", (counts["is_failing"], counts["inflight"]), (0, 0))


def a_receiver_that_refuses_everything_is_not_asked_for_ever():
    def push_ten(client):
        for n in range(10):
            # Down from 1000 to 1, and what is left of that batch; one for each of the other batches.
            n_wanted = 11 + 10 + n
            client.ask()
            client.wait(lambda: len(server.refused) >= n_wanted)
            client.settle()
            expect("requests", len(server.refused), n_wanted)
    server = Judge(lambda points: 400)
    counts, _ = push(f"http://127.0.0.1:{server.port}", "--series=1000", "--on-demand", *FAST, meanwhile=push_ten)
    expect("rejected", counts["rejected"], counts["pushed"])
    expect("failing", counts["is_failing"], 1)


def deltas_that_are_all_refused_are_not_asked_for_ever_and_not_lost():
    is_over = threading.Event()

    def push_ten(client):
        for _ in range(10):
            client.ask()
            client.settle()
        expect("requests", len(server.refused), lambda n: n <= 40 + 10)
        is_over.set()
        client.ask()
        client.wait(lambda: sum(points.get(0, 0) for points in server.taken) == 66)
    server = Judge(lambda points: 200 if is_over.is_set() else 400)
    counts, _ = push(f"http://127.0.0.1:{server.port}", "--series=1000", "--on-demand", "temporality=delta", *FAST, meanwhile=push_ten)
    expect("rejected, waiting", (counts["rejected"], counts["inflight"]), (0, 0))
    expect("what arrived", set(server.sums().values()), {66})


def one_request_of_deltas_that_comes_always_too_early_does_not_stop_the_others():
    is_over = threading.Event()

    def push_six(client):
        client.ask()
        client.wait(lambda: server.refused)
        client.ask("bbbb")
        client.wait(lambda: {} in server.taken and len(server.taken) == 5)
        expect("said", client.log().count("accepts an empty request, but not one of 10 points: http"), 1)
        client.ask("l")
        client.wait(lambda: len(server.taken) == 6)
        n_refused = len(server.refused)
        client.wait(lambda: len(server.refused) > n_refused)  # tried when nothing else is left
        is_over.set()
    server = Judge(lambda points: 429 if points.get(0) == 1 and not is_over.is_set() else 200, b"later")
    counts, text = push(f"http://127.0.0.1:{server.port}", "--on-demand", "temporality=delta", *FAST, meanwhile=push_six)
    expect("what arrived", [points.get(0) for points in server.taken], [None, 2, 3, 4, 5, 6, 1])
    expect("waiting", counts["inflight"], 0)
    expect("delivers again", text.count("delivers again"), lambda n: n <= 1)


def a_receiver_that_is_busy_gets_deltas_in_order():
    server = scripted.Server([*12 * [answer(429)], answer(200)])
    _, text = push(f"http://127.0.0.1:{server.port}", *DELTA)
    expect("what arrived", values(server, 12), list(range(1, 11)))
    expect("said", text.count("accepts an empty request"), 0)


def deltas_in_doubt_are_repeated_or_skipped_and_counted():
    for choice, arrived in (("repeat", 55 + 1), ("skip", 55)):
        server = scripted.Server([scripted.close_after_read, answer(200)])
        counts, _ = push(f"http://127.0.0.1:{server.port}", *DELTA, "--pause=50", f"when_in_doubt={choice}")
        bodies = [request[4] for request in server.requests]
        expect("what arrived", sum(values(server)), arrived)
        expect("the same bytes again", bodies[0] == bodies[1], choice == "repeat")
        expect("points in doubt", counts["doubtful_points"], N)
        expect("values in doubt", counts["doubtful_values"], N)
        expect("given up", counts["dropped_doubt"], N if choice == "skip" else 0)


def deltas_in_doubt_are_never_merged():
    server = scripted.Server([scripted.close_after_read, answer(503), answer(503), answer(200)])
    push(f"http://127.0.0.1:{server.port}", *DELTA, "queue_requests=2")
    bodies = [request[4] for request in server.requests]
    expect("the same bytes", len(set(bodies[:4])), 1)
    expect("what arrived", sum(values(server, 3)), 55)


def at_the_end_all_that_waits_is_one_request():
    def push_forty(client):
        client.ask(39 * "b")
        client.wait(client.n_ended)
        client.ask("l")
    for more in (["temporality=cumulative"], ["temporality=delta"], ["temporality=delta", "spool=1MiB"]):
        server = scripted.Server([answer(503, Retry_After="300"), answer(200)])
        counts, _ = push(f"http://127.0.0.1:{server.port}", "--on-demand", *more, *FAST, environment={"STATE_DIRECTORY": "/dev/null"},
                         meanwhile=push_forty)
        expect("what arrived", values(server, 1), [820])
        expect("exported", counts["exported"], N)


def at_the_end_the_newest_totals_do_not_wait_for_older_ones():
    def push_two(client):
        client.ask()
        client.wait(lambda: server.requests)
        client.ask("l")
    server = scripted.Server([scripted.silence, answer(200)])
    counts, text = push(f"http://127.0.0.1:{server.port}", "--on-demand", "timeout=5m", *FAST, meanwhile=push_two)
    expect("what arrived", values(server), [1, 3])
    expect("exported", {key: counts[key] for key in ("pushed", "exported", "inflight", "doubtful_points")},
           {"pushed": N, "exported": N, "inflight": 0, "doubtful_points": 0})
    expect("log", text, "")


def an_outage_of_a_day_loses_no_delta():
    """8 640 batches, as many as ten seconds has a day; the newest windows keep their resolution."""
    n_batches = 8640
    server = scripted.Server([answer(503, Retry_After="5"), answer(200)])
    counts, _ = push(f"http://127.0.0.1:{server.port}", f"--batches={n_batches}", "--pause=0", "--series=100", *FAST, "temporality=delta", "queue_requests=100")
    expect("what arrived", sum(values(server, 1)), n_batches * (n_batches + 1) // 2)
    expect("dropped or waiting", counts["dropped_queue"] + counts["dropped_error"] + counts["inflight"], 0)


SPOOL = [*DELTA, "spool=1MiB"]


def stored(directory):
    path = os.path.join(directory, "spool", "test")
    return {name: os.path.getsize(os.path.join(path, name)) for name in os.listdir(path)}


def what_waits_in_a_spool_outlives_the_process():
    for more in ([], ["compression=none"]):
        with tempfile.TemporaryDirectory() as directory:
            dead = scripted.Server([answer(503)])
            environment = {"STATE_DIRECTORY": directory}
            counts, _ = push(f"http://127.0.0.1:{dead.port}", *SPOOL, *more, "--attempts=1", environment=environment)
            expect("waiting", counts["inflight"], 10 * N)
            server = scripted.Server([answer(200)])
            counts, text = push(f"http://127.0.0.1:{server.port}", *SPOOL, *more, environment=environment)
            expect("log", text, lambda text: f"{10 * N} points of before wait in its spool" in text)
            expect("exported", counts["exported"], 20 * N)
            bodies = [gzip.decompress(request[4]) if not more else request[4] for request in server.requests]
            expect("what arrived", [int(re.search(r"as_int: (\d+)", decode(body)).group(1)) for body in bodies],
                   2 * list(range(1, 11)))
            server.requests.clear()
            counts, _ = push(f"http://127.0.0.1:{server.port}", *SPOOL, *more, "--batches=1", environment=environment)
            expect("what is sent later", len(server.requests), 1)
            expect("segments", len(stored(directory)), 1)


def a_spool_keeps_an_hour_as_it_was_and_adds_up_the_rest():
    """A batch is a second; of a thousand the newest hundred stay what they were."""
    n = 1000
    with tempfile.TemporaryDirectory() as directory:
        environment = {"STATE_DIRECTORY": directory}
        options = ["--pause=0", "--series=100", *FAST, "temporality=delta", "spool=1MiB", "spool_age=100s"]
        dead = scripted.Server([answer(503, Retry_After="100")])
        counts, _ = push(f"http://127.0.0.1:{dead.port}", *options, f"--batches={n}", "--attempts=1", environment=environment)
        expect("on disk", sum(stored(directory).values()), lambda size: size < 1 << 20)
        expect("in memory for a later process", counts["dropped_queue"] + counts["dropped_error"], 0)
        server = scripted.Server([answer(200)])
        push(f"http://127.0.0.1:{server.port}", *options, "--batches=0", environment=environment)
        seen = values(server)
        expect("the newest hundred", seen[-100:], list(range(n - 99, n + 1)))
        expect("windows", len(seen), lambda count: count <= 103)
        expect("what arrived", sum(seen), n * (n + 1) // 2)


def a_small_spool_merges_and_loses_nothing():
    n = 300
    with tempfile.TemporaryDirectory() as directory:
        environment = {"STATE_DIRECTORY": directory}
        options = ["--pause=0", "--series=1000", *FAST, "temporality=delta", "spool=1MiB", "compression=none"]
        all_are_pushed = threading.Event()
        server = scripted.Server([scripted.after(all_are_pushed, answer(503)), answer(200)])
        counts, _ = push(f"http://127.0.0.1:{server.port}", *options, "timeout=0", f"--batches={n}", environment=environment,
                         meanwhile=when_pushed(n, all_are_pushed))
        expect("on disk", sum(stored(directory).values()), lambda size: size < 3 << 19)
        seen = [int(re.search(r"as_int: (\d+)", decode(request[4])).group(1)) for request in server.requests[1:]]
        expect("what arrived", sum(seen), n * (n + 1) // 2)
        expect("windows", len(seen), lambda count: count < 20)
        expect("lost", counts["dropped_queue"] + counts["dropped_error"] + counts["inflight"], 0)


def without_a_place_for_a_spool_the_queue_is_in_memory():
    read_only = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"']
    cases = (("/dev/null", None, [], "Not a directory"), (None, 4096, [], "(File too large|No space left on device)"),
             (None, None, read_only, "Read-only file system"))
    for path, file_bytes, prefix, reason in cases:
        with tempfile.TemporaryDirectory() as directory:
            server = scripted.Server([answer(503, Retry_After="1"), answer(200)])
            counts, text = push(f"http://127.0.0.1:{server.port}", *SPOOL, "--series=100", "queue_requests=3",
                                environment={"STATE_DIRECTORY": path or directory}, file_bytes=file_bytes,
                                prefix=prefix and [*prefix, directory])
            expect("what arrived", sum(values(server, 1)), 55)
            said = re.findall(f"the spool .* cannot be used now: {reason}; what waits stays in memory", text)
            expect("complaints", len(said), lambda n: 1 <= n <= 10)
            expect("waiting", counts["inflight"], 0)


def damage_request(path, number):
    """Changes a byte of the request with this number in a segment (src/export/spool/segment.h)."""
    with open(path, "r+b") as file:
        content, at, n = file.read(), 0, 0
        while True:
            (size,), (kind,) = struct.unpack_from("I", content, at + 12), struct.unpack_from("H", content, at + 52)
            n += kind == 1
            if n == number:
                break
            at += 56 + size + 7 & ~7
        file.seek(at + 56)
        file.write(bytes([content[at + 56] ^ 1]))


def what_is_damaged_while_it_waits_is_lost_counted_and_kept():
    with tempfile.TemporaryDirectory() as directory:
        environment = {"STATE_DIRECTORY": directory}
        push(f"http://127.0.0.1:{scripted.Server([answer(503)]).port}", *SPOOL, "--attempts=1", environment=environment)

        def damage(server, connection):
            damage_request(os.path.join(directory, "spool", "test", "00000001"), 6)
            return answer(200)(server, connection)
        server = scripted.Server([damage, answer(200)])
        counts, text = push(f"http://127.0.0.1:{server.port}", *SPOOL, "--pause=300", environment=environment)
        expect("lost", counts["dropped_error"], N)
        expect("what arrived", sum(values(server)), 2 * 55 - 6)
        expect("complaints", text.count("points are lost: the spool cannot be read"), 1)
        expect("files", "damaged" in stored(directory), True)


def what_cannot_be_read_now_waits_and_the_exporter_fails():
    with tempfile.TemporaryDirectory() as directory:
        environment = {"STATE_DIRECTORY": directory}
        push(f"http://127.0.0.1:{scripted.Server([answer(503)]).port}", *SPOOL, "--attempts=1", environment=environment)
        path = os.path.join(directory, "spool", "test", "00000001")

        def hide(server, connection):
            os.rename(path, path + "-")
            os.symlink(path + "-", path)
            return answer(503)(server, connection)

        def show(client):
            client.wait(lambda: "the spool cannot be read now" in client.log())
            os.replace(path + "-", path)
        server = scripted.Server([hide, answer(200)])
        counts, text = push(f"http://127.0.0.1:{server.port}", *SPOOL, "--pause=100", environment=environment, meanwhile=show)
        expect("exported", counts["exported"], 20 * N)
        expect("what arrived", sum(values(server, 1)), 2 * 55)
        expect("complaints", len(re.findall("the spool cannot be read now: .*; what waits stays there", text)), 1)
        expect("log", text, lambda text: "delivers" in text)


def a_full_disk_and_a_stop_repeat_nothing():
    """What was merged in memory and delivered is not on disk any more, although the merge could not be written."""
    with tempfile.TemporaryDirectory() as directory:
        environment = {"STATE_DIRECTORY": directory}
        options = ["--series=100", *FAST, "temporality=delta", "spool=1MiB", "compression=none"]
        server = scripted.Server([answer(503, Retry_After="1"), answer(200)])
        counts, _ = push(f"http://127.0.0.1:{server.port}", *options, "--batches=40", "--pause=10", "spool_age=5s",
                         environment=environment, file_bytes=100000)
        expect("waiting", counts["inflight"], 0)
        seen = [int(re.search(r"as_int: (\d+)", decode(request[4])).group(1)) for request in server.requests[1:]]
        expect("what arrived", sum(seen), 820)
        server.requests.clear()
        push(f"http://127.0.0.1:{server.port}", *options, "--batches=1", environment=environment)
        expect("requests of the next process", len(server.requests), 1)


def a_spool_that_was_deleted_is_made_again():
    with tempfile.TemporaryDirectory() as directory:
        def delete(server, connection):
            shutil.rmtree(os.path.join(directory, "spool"))
            return answer(503, Retry_After="1")(server, connection)
        server = scripted.Server([delete, answer(200)])
        counts, text = push(f"http://127.0.0.1:{server.port}", *DELTA, "--pause=30", "spool=1MiB",
                            environment={"STATE_DIRECTORY": directory})
        expect("what arrived", sum(values(server, 1)), 55)
        expect("log", text, lambda text: "it was deleted; what waits stays in memory" in text and "used again" in text)
        expect("lost", counts["dropped_error"] + counts["inflight"], 0)


def refuse_many(status):
    """A point that is refused alone is lost, so none is."""
    def step(server, connection):
        request = scripted.read_request(connection)
        return server.remember(request) and scripted.reply(connection, status if len(counts_of(request[1])) > 1 else 503)
    return step


TROUBLES = (answer(503), answer(429, Retry_After="0"), refuse_many(400), refuse_many(413), answer(500), scripted.close_before_read)
# The request has come, and no answer leaves: whoever sent it cannot know what became of it.
LOST = (scripted.close_after_read, scripted.answer_half(100), scripted.silence)
WEIGHTS = [6] * (len(TROUBLES) + len(LOST) - 1) + [1]  # who is silent costs a time-out


def chaos(seed, batches, *options):
    """-> (the bodies that the receiver took, by digest; those of them whose answer was lost; the counts)."""
    random_, calm = random.Random(seed), threading.Event()
    taken, unanswered = {}, {}

    def step(server, connection):
        is_fine = calm.is_set() or random_.random() < 0.3
        trouble = answer(200) if is_fine else random_.choices(TROUBLES + LOST, WEIGHTS)[0]
        is_taken = is_fine or (trouble in LOST and random_.random() < 0.5)
        n = len(server.requests)
        result = trouble(server, connection)
        mine = [request for request in server.requests[n:] if request[1] == threading.current_thread().name]
        for _, _, _, digest, body in mine if is_taken else ():
            taken[digest] = body
            if not is_fine:
                unanswered[digest] = body
        return result

    def push_all(client):
        """What is refused waits for another batch, so the last ones come when all is well."""
        client.ask("b" * (batches - 3))
        calm.set()
        for _ in range(3):
            n_ended = client.n_ended()
            client.ask()
            client.wait(lambda n=n_ended: client.n_ended() > n)
    server = scripted.Server([step])
    counts, _ = push(f"http://127.0.0.1:{server.port}", "--on-demand", "--pause=20", "timeout=2s", *FAST, *options,
                     meanwhile=push_all)
    expect("waiting", counts["inflight"], 0)
    expect("dropped", counts["dropped_queue"] + counts["dropped_error"], 0)
    return taken, unanswered, counts


def counts_of(body):
    """Of each point."""
    return [int(n) for n in re.findall(r"as_int: (\d+)", decode(gzip.decompress(body)))]


def total(bodies):
    return sum(sum(counts_of(body)) for body in bodies.values())


def in_chaos_no_delta_counts_twice_and_only_those_in_doubt_can_be_missing():
    n = 150
    for seed, more in ((1, []), (2, ["queue_requests=2"]), (3, ["retry_give_up=30ms"]),
                       (4, ["queue_requests=3", "when_in_doubt=skip"])):
        taken, unanswered, counts = chaos(seed, n, "temporality=delta", *more)
        lost = N * n * (n + 1) // 2 - total(taken)
        expect(f"lost with seed {seed}", lost, lambda lost: 0 <= lost <= counts["doubtful_values"])
        expect("refused for good", counts["rejected"], 0)
        if not counts["dropped_doubt"]:
            expect("lost without giving up", lost, 0)
        if "when_in_doubt=skip" in more:
            expect("what was skipped and not taken", lost, counts["doubtful_values"] - total(unanswered))


def after_chaos_totals_are_right():
    n = 150
    taken, _, counts = chaos(6, n, "temporality=cumulative")
    expect("the last total", max(max(counts_of(body)) for body in taken.values()), n * (n + 1) // 2)
    expect("exported", counts["exported"] > 0, True)


def a_request_that_is_tried_too_long_is_dropped():
    server = scripted.Server([answer(503)])
    counts, _ = push(f"http://127.0.0.1:{server.port}", "retry_give_up=1s", *FAST)
    expect("dropped", counts["dropped_error"], N)
    expect("idle", counts["is_idle"], 1)
    expect("attempts", counts["requests"], lambda n: n >= 3)
    began = counts["attempts"][0][0]
    expect("attempts that ended within a second", [ended - began < 10**6 for _, ended in counts["attempts"]],
           (counts["requests"] - 1) * [True] + [False])


def an_absurd_retry_after_is_clamped_and_zero_does_not_spin():
    server = scripted.Server([answer(429, Retry_After="100000")])
    counts, text = push(f"http://127.0.0.1:{server.port}", "--attempts=1", *FAST)
    expect("delay", re.findall(r"kept for another attempt in (\d+) s$", text, re.MULTILINE), lambda seen: 300 <= int(*seen) <= 450)
    server = scripted.Server([answer(429, Retry_After="0")])
    counts, _ = push(f"http://127.0.0.1:{server.port}", "--attempts=20", "retry_initial=100ms", "retry_max=100ms")
    waited = [after[0] - before[1] for before, after in zip(counts["attempts"], counts["attempts"][1:])]
    expect("us waited in all, of 19 waits of 0 to 100 ms", sum(waited), lambda us: us > 300000)
    expect("in flight", counts["inflight"], N)


def nobody_listens_then_somebody_does():
    server = scripted.Server([answer(200)])
    port = server.port
    server.stop()
    box = []

    def revive(client):
        client.wait(lambda: client.n_pushed() == 3 and client.n_ended() >= 2)
        box.append(scripted.Server([answer(200)], port=port))
    counts, text = push(f"http://127.0.0.1:{port}", "--batches=3", *FAST, meanwhile=revive)
    expect("exported", counts["exported"], N)
    expect("requests", counts["requests"], lambda n: n >= 3)
    expect("said once", text.count("kept for another attempt"), 1)
    expect("recovery", text.count("exporter test: delivers\n"), 1)
    expect("arrived once", len(box[0].requests), 1)


class Hosts:
    """A hosts file of the exporter's own, which leads to receiver.test."""

    def __init__(self, *addresses):
        self.file = tempfile.NamedTemporaryFile("w", prefix="bpfpush-hosts.")
        self.lead_to(*addresses)
        self.alone = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self.file.name]
        self.can_be_used = not subprocess.run([*self.alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode  # as root

    def lead_to(self, *addresses):
        self.file.seek(0)
        self.file.truncate()
        self.file.write("".join(f"{address} receiver.test\n" for address in addresses))
        self.file.flush()


def a_receiver_that_moves_is_found_at_the_next_attempt():
    server = scripted.Server([answer(200)])
    hosts = Hosts("127.0.0.9")

    def move(client):
        client.wait(lambda: client.n_ended() >= 2)
        hosts.lead_to("127.0.0.1")
    if not hosts.can_be_used:
        return
    counts, _ = push(f"http://receiver.test:{server.port}", *FAST, prefix=hosts.alone, meanwhile=move)
    expect("exported", counts["exported"], N)
    expect("attempts", counts["requests"], lambda n: n >= 3)


def an_address_that_does_not_answer_leaves_time_for_the_next():
    """An attempt ends after the time-out at the latest, so the one that succeeds was in time."""
    hosts = Hosts("127.0.0.2", "127.0.0.3")
    if not hosts.can_be_used:
        return
    for closed in (False, True):
        server = scripted.Server([answer(200)], host="127.0.0.3")
        hole = None if closed else scripted.BlackHole("127.0.0.2", server.port)
        counts, text = push(f"http://receiver.test:{server.port}", "--batches=3", "--pause=100", "timeout=8s", "temporality=delta", *FAST,
                            prefix=hosts.alone)
        expect("exported", counts["exported"], 3 * N)
        expect(text, (counts["requests"], counts["retries"]), (3, 0))
        expect("connections", server.n_connections, 1)
        expect("host", {request[2]["host"] for request in server.requests}, {f"receiver.test:{server.port}"})
        expect("log", text, "")
        server.stop()
        if hole:
            hole.stop()


def after_a_failure_the_next_address_has_its_turn():
    hosts = Hosts("127.0.0.2", "127.0.0.3")
    if not hosts.can_be_used:
        return
    for failure in (answer(503), answer(429), scripted.close_after_read, scripted.close_before_read, scripted.silence):
        well = scripted.Server([answer(200)], host="127.0.0.3")
        sick = scripted.Server([failure], host="127.0.0.2", port=well.port)
        counts, _ = push(f"http://receiver.test:{well.port}", "timeout=2s", *FAST, prefix=hosts.alone)
        expect("exported", counts["exported"], N)
        expect("requests", counts["requests"], 2)
        expect("connections", (sick.n_connections, well.n_connections), (1, 1))
        sick.stop()
        well.stop()


def a_name_that_is_not_known_is_named():
    hosts = Hosts()
    if not hosts.can_be_used:
        return
    counts, text = push("http://receiver.test:4318", "--attempts=2", *FAST, prefix=hosts.alone)
    expect("waiting", counts["inflight"], N)
    expect("said", len(re.findall(r"/v1/metrics: cannot look up receiver\.test: \w.*; kept for another attempt", text)), 1)


def no_body_is_sent_twice_behind_our_back():
    """A kept connection that dies is where libcurl alone would send again; we must know of each request."""
    for size in (["--series=1"], ["--series=20000", "max_request_size=16MiB"]):
        for death in (scripted.close_after_read, scripted.close_before_read):
            for encoding in ("none", "gzip"):
                server = scripted.Server([answer(200), death, answer(200)])
                counts, text = push(f"http://127.0.0.1:{server.port}", "--batches=2", "--pause=150",
                                    "temporality=delta", f"compression={encoding}", *size, *FAST)
                n_points = int(size[0].split("=")[1])
                expect("exported", counts["exported"], 2 * n_points)
                if death is scripted.close_before_read:
                    # The body never left where its connection was reset behind the headers, and may go again.
                    expect("bodies seen", len(server.requests), 2)
                    continue
                expect("bodies seen", len(server.requests), 3)
                expect("requests counted", counts["requests"], 3)
                expect("retries counted", counts["retries"], 1)
                if "closed without an answer" not in text or "may have counted it" not in text:
                    raise Failed(f"not logged: {text}")


def push_one_by_one(count, taken):
    """Meanwhile: so many batches, each when the one before is among those that were taken."""
    def meanwhile(client):
        for n in range(count):
            client.ask()
            client.wait(lambda n=n: len(taken) > n and client.n_ended() == client.said(0).count("began "))
    return meanwhile


def take(taken):
    """A step: 200, which is written down."""
    def step(server, connection):
        taken.append(server)
        return answer(200)(server, connection)
    return step


def totals_go_again_at_once_if_a_kept_connection_ends_as_they_begin():
    """The second request on each connection meets its end."""
    for death in (scripted.close_after_read, scripted.close_before_read):
        taken = []
        server = scripted.Server([take(taken), death, take(taken), death, take(taken)])
        counts, text = push(f"http://127.0.0.1:{server.port}", "--on-demand", *LAZY, meanwhile=push_one_by_one(3, taken))
        expect("exported", counts["exported"], 3 * N)
        expect("log", text, "")
        expect("retries", counts["retries"], counts["requests"] - 3)
        if death is scripted.close_after_read:  # else the body may not have left, and libcurl goes on alone
            expect("requests", (counts["requests"], len(server.requests)), (5, 5))


def the_second_end_in_a_row_is_a_failure():
    for way in ("cumulative", "delta"):
        taken = []
        server = scripted.Server([take(taken), scripted.close_after_read, scripted.close_after_read, take(taken)])
        counts, text = push(f"http://127.0.0.1:{server.port}", "--on-demand", *FAST, f"temporality={way}",
                            meanwhile=push_one_by_one(2, taken))
        expect("exported", counts["exported"], 2 * N)
        expect("requests", (counts["requests"], counts["retries"], len(server.requests)), (4, 2, 4))
        expect("said", text.count("kept for another attempt"), 1)
        expect("in doubt", counts["doubtful_points"], N if way == "delta" else 0)


def what_http2_has_not_processed_goes_again_at_once():
    with tempfile.TemporaryDirectory() as directory:
        make_ca(directory, "ca")
        make_certificate(directory, "ca", "server")
        # Of a stream that is refused on a kept connection, libcurl does not say why it failed; totals do not mind.
        for way, temporality in (("goaway", "delta"), ("goaway", "cumulative"), ("refused", "cumulative")):
            context = scripted.ssl.SSLContext(scripted.ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(os.path.join(directory, "server.pem"), os.path.join(directory, "server.key"))
            server = http2.Server(context, way)
            counts, text = push(f"https://127.0.0.1:{server.port}", "--on-demand", *LAZY, f"temporality={temporality}",
                                f"ca_file={os.path.join(directory, 'ca.pem')}", meanwhile=push_one_by_one(5, server.bodies))
            expect("exported", counts["exported"], 5 * N)
            expect("what arrived", [int(re.search(r"as_int: (\d+)", decode(gzip.decompress(body))).group(1)) for body in server.bodies],
                   [1, 2, 3, 4, 5] if temporality == "delta" else [1, 3, 6, 10, 15])
            expect("in doubt", counts["doubtful_points"], 0)
            expect("log", text, "")
            expect("refused", (server.n_refused, counts["retries"]), (2, 2))


def a_connection_closed_while_idle_is_replaced():
    def close_later(server, connection):
        answer(200)(server, connection)
        return False
    server = scripted.Server([close_later])

    def push_five(client):
        for n in range(5):
            client.ask()
            client.wait(lambda n=n: server.n_closed > n)
    counts, _ = push(f"http://127.0.0.1:{server.port}", "--on-demand", *FAST, meanwhile=push_five)
    expect("exported", counts["exported"], 5 * N)
    expect("retries", counts["retries"], 0)
    expect("connections", server.n_connections, 5)


def a_header_whose_file_is_gone_waits_for_it():
    server = scripted.Server([answer(200)])
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "token")
        with open(path, "w", encoding="utf-8") as file:
            file.write("one\r\n")

        def rotate(client):
            client.ask()
            client.wait(client.n_ended)
            os.unlink(path)
            client.ask()
            client.wait(lambda: "cannot be used" in client.log())
            with open(path + "-", "w", encoding="utf-8") as file:
                file.write("two")
            os.rename(path + "-", path)
        counts, text = push(f"http://127.0.0.1:{server.port}", "--on-demand", f"headers=Token: file:{path}", *FAST, meanwhile=rotate)
    expect("exported", counts["exported"], 2 * N)
    expect("tokens", [request[2]["token"] for request in server.requests], ["one", "two"])
    expect("said once", text.count("cannot be used"), 1)


def openssl(directory, *arguments):
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def make_ca(directory, name):
    openssl(directory, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")


def make_certificate(directory, ca, name):
    with open(os.path.join(directory, "ext"), "w", encoding="utf-8") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    openssl(directory, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.csr")
    openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key",
            "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", f"{name}.pem")


def tls_is_checked_both_ways_and_files_are_read_again():
    with tempfile.TemporaryDirectory() as directory:
        for ca in ("right", "wrong"):
            make_ca(directory, ca)
        for name in ("server", "client"):
            make_certificate(directory, "right", name)

        def path(name):
            return os.path.join(directory, name)

        def serve(is_mutual, version=scripted.ssl.TLSVersion.MAXIMUM_SUPPORTED):
            context = scripted.ssl.SSLContext(scripted.ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version, context.maximum_version = scripted.ssl.TLSVersion.MINIMUM_SUPPORTED, version
            context.set_ciphers("DEFAULT@SECLEVEL=0")
            context.load_cert_chain(path("server.pem"), path("server.key"))
            if is_mutual:
                context.load_verify_locations(path("right.pem"))
                context.verify_mode = scripted.ssl.CERT_REQUIRED
            return scripted.Server([answer(200)], context)

        plain, mutual = serve(False), serve(True)
        url, mutual_url = (f"https://127.0.0.1:{server.port}" for server in (plain, mutual))
        client = [f"certificate_file={path('client.pem')}", f"key_file={path('client.key')}"]

        counts, _ = push(url, f"ca_file={path('right.pem')}", *FAST)
        expect("exported with the right CA", counts["exported"], N)
        counts, text = push(url, f"ca_file={path('wrong.pem')}", "--attempts=2", *FAST)
        expect("exported with the wrong CA", counts["exported"], 0)
        expect("kept with the wrong CA", counts["inflight"], N)
        expect("the log names it", bool(re.search("certificate.* \\(set ca_file to the certificate of its CA\\);", text)), True)

        def answer_in_clear(server, connection):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return False

        _, text = push(f"https://127.0.0.1:{scripted.Server([answer_in_clear]).port}", "--attempts=1")
        expect(f"plain HTTP in {text}", text.count("(the port speaks plain HTTP: try http://)"), 1)
        counts, _ = push(mutual_url, f"ca_file={path('right.pem')}", *client, *FAST)
        expect("exported with a client certificate", counts["exported"], N)
        counts, _ = push(mutual_url, f"ca_file={path('right.pem')}", "--attempts=2", *FAST)
        expect("exported without one", counts["exported"], 0)

        with open(path("openssl.cnf"), "w", encoding="ascii") as file:
            file.write("openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nMinProtocol = TLSv1\n"
                       "CipherString = DEFAULT@SECLEVEL=0\n")
        machine = {"OPENSSL_CONF": path("openssl.cnf"), "SSLKEYLOGFILE": path("keys")}
        for version, wanted in (("TLSv1_1", 0), ("TLSv1_2", N)):
            machine["all_proxy"], machine["NO_PROXY"] = "http://127.0.0.1:1", "*"  # libcurl is asked about them first
            server = serve(False, scripted.ssl.TLSVersion[version])
            counts, _ = push(f"https://127.0.0.1:{server.port}", f"ca_file={path('right.pem')}", *FAST,
                             *([] if wanted else ["--attempts=2"]), environment=machine)
            expect(f"exported with {version}", counts["exported"], wanted)
        expect("keys are written", os.path.exists(path("keys")), False)

        shutil.copy(path("wrong.pem"), path("rotated.pem"))

        def rotate(client):
            client.wait(client.n_ended)
            shutil.copy(path("right.pem"), path("rotated.pem"))
        counts, _ = push(url, f"ca_file={path('rotated.pem')}", *FAST, meanwhile=rotate)
        expect("exported once the CA file is right", counts["exported"], N)

        def answer_and_spoil(server, connection):
            answer(200)(server, connection)
            shutil.copy(path("wrong.pem"), path("rotated.pem"))
            return False

        shutil.copy(path("right.pem"), path("rotated.pem"))
        server = serve(False)
        server.steps = [answer_and_spoil]

        def push_two(client):
            client.ask()
            client.wait(lambda: server.n_closed)
            client.ask()
        counts, _ = push(f"https://127.0.0.1:{server.port}", f"ca_file={path('rotated.pem')}", "--on-demand", "--attempts=2", *FAST,
                         meanwhile=push_two)
        expect("exported before the CA file is wrong", counts["exported"], N)


def wrong_options_are_refused_with_reasons():
    cases = {
        "endpoint=localhost:4318": "http://",
        "endpoint=ftp://localhost": "must begin with http",
        "headers=nonsense": "Name: value",
        "headers=A B: c": "Name: value",
        "headers=A: b\nC: d": "control character",
        "headers=Content-Type: text/plain": "sets this header itself",
        "headers=A: file:/nonexistent/token": "/nonexistent/token: No such file",
        "ca_file=/nonexistent/ca.pem": "/nonexistent/ca.pem: No such file",
        "compression=zstd": "gzip",
        "temporality=cumulativ": "cumulative",
        "retry_max=1ms": "shorter than retry_initial",
        "max_request_size=10B": "max_request_size",
        "timeout=10": "timeout",
        "timeout=500us": "timeout: \"500us\" is too small: write 0, or at least 1ms",
    }
    for option, reason in cases.items():
        result = subprocess.run([PUSH, option], capture_output=True, text=True, timeout=patience.PATIENCE_S, check=False)
        expect(f"exit status of {option}", result.returncode, 2)
        if reason not in result.stderr:
            raise Failed(f"{option}: {result.stderr!r} lacks {reason!r}")


def something_else_on_that_port_is_named_once_a_change():
    page = answer(200, b"text")
    server = scripted.Server([page, page, answer(200), page, answer(200)])
    counts, text = push(f"http://127.0.0.1:{server.port}", "--batches=5", "temporality=delta", *FAST)
    expect("exported", counts["exported"], 5 * N)
    expect("retries", counts["retries"], 3)
    expect("said", text.count("not an OTLP receiver"), 2)


def another_reason_with_the_same_status_is_said():
    first, second = (answer(status, reason, "text/plain") for status, reason in ((503, b"no disk"), (503, b"no memory")))
    server = scripted.Server([first, first, second, second, first, answer(200)])
    _, text = push(f"http://127.0.0.1:{server.port}", *FAST)
    expect("reasons", re.findall(r"HTTP 503: (.*?); kept", text), ["no disk", "no memory", "no disk"])
    first, second = (answer(400, reason, "text/plain") for reason in (b"too old", b"too many"))
    server = scripted.Server([first, second, second, answer(200)])

    def push_four(client):
        for n in range(4):
            client.ask()
            client.wait(lambda n=n: client.n_ended() > n)
    _, text = push(f"http://127.0.0.1:{server.port}", "--on-demand", "--series=1", *FAST, meanwhile=push_four)
    expect("reasons", re.findall(r"HTTP 400: (.*?);", text), ["too old", "too many"])


def the_port_of_grpc_is_hinted_at():
    _, text = push("http://127.0.0.2:4317", "--batches=1", "retry_give_up=1ms", *FAST)
    expect("hints", text.count("(port 4317 is for OTLP/gRPC, bpfpush sends OTLP/HTTP: try port 4318)"), 1)


def the_url_is_named_without_its_secrets():
    server = scripted.Server([answer(400, b"no", "text/plain")])
    _, text = push(f"http://me:sesame@127.0.0.1:{server.port}/a?key=sesame")
    expect("request line", server.requests[0][2][""], "POST /a/v1/metrics?key=sesame HTTP/1.1")
    expect("URLs", text.count(f"http://127.0.0.1:{server.port}/a/v1/metrics: refused for good: HTTP 400: no;"), 1)
    expect("secrets", text.count("sesame"), 0)


def a_proxy_is_called_one():
    server = scripted.Server([answer(407, b"who?", "text/plain")])
    for url, environment, wanted in [
            ("https://host.invalid", {"https_proxy": f"http://127.0.0.1:{server.port}"},
             "the proxy answered HTTP 407 (it wants credentials: https_proxy="),
            ("http://host.invalid", {"http_proxy": f"http://127.0.0.1:{server.port}"},
             "HTTP 407: who? (the proxy wants credentials: http_proxy="),
            ("http://host.invalid", {"http_proxy": "http://proxy.invalid:1"}, "resolve proxy: proxy.invalid")]:
        _, text = push(url, "--attempts=1", environment=environment)
        expect(f"{wanted} in {text}", text.count(wanted), 1)


class Proxy:
    """Passes on what it is asked for to a port of this machine, by CONNECT or with a whole URL; remembers the first lines."""

    def __init__(self, port):
        self.target, self.asked = port, []
        self.server = scripted.Server([self.step])
        self.port = self.server.port

    def step(self, _, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        self.asked.append(data.split(b"\r\n")[0].decode())
        with socket.create_connection(("127.0.0.1", self.target)) as far:
            if data.startswith(b"CONNECT"):
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                far.sendall(data)
            while ready := select.select([connection, far], [], [])[0]:
                piece = ready[0].recv(65536)
                if not piece:
                    return False
                (far if ready[0] is connection else connection).sendall(piece)
        return False


def through_a_proxy_its_own_name_server_counts():
    """No name server knows host.invalid."""
    proxy = Proxy(scripted.Server([answer(200)]).port)
    port = f"127.0.0.1:{proxy.port}"
    for more, environment, is_used in [
            (["proxy=none"], {"http_proxy": f"http://{port}"}, False), ([f"proxy=http://{port}"], {"NO_PROXY": "*"}, True),
            ([], {"http_proxy": f"http://{port}"}, True), ([], {"all_proxy": port}, True),
            ([], {"http_proxy": f"http://{port}", "NO_PROXY": ".invalid"}, False), ([], {"HTTP_PROXY": f"http://{port}"}, False),
            ([], {"https_proxy": f"http://{port}"}, False)]:
        proxy.asked.clear()
        counts, text = push("http://host.invalid", *more, *FAST, "--attempts=1", environment=environment)
        expect(f"exported with {more} {environment}: {text}", counts["exported"], N if is_used else 0)
        expect("asked", proxy.asked[-1:], ["POST http://host.invalid/v1/metrics HTTP/1.1"] if is_used else [])
        expect("failure", text.count("cannot look up host.invalid"), 0 if is_used else 1)
    push("https://host.invalid", "timeout=1s", "--attempts=1", environment={"https_proxy": f"http://{port}"})
    expect("asked", proxy.asked[-1:], ["CONNECT host.invalid:443 HTTP/1.1"])


def a_proxy_is_named_without_its_password():
    for more, environment in ([], {"http_proxy": "me:secret@127.0.0.1:1"}), (["proxy=http://me:secret@127.0.0.1:1"], {}):
        _, text = push("http://host.invalid", *more, "--attempts=1", environment=environment)
        expect(text, text.count("http://host.invalid/v1/metrics through the proxy http://127.0.0.1:1: Failed to connect"), 1)
        expect(text, "secret" in text, False)


def a_secret_in_clear_text_is_warned_of_once():
    warning = "is sent unencrypted over the network"
    file = tempfile.NamedTemporaryFile("w", suffix=".token")
    file.write("abc\n")
    file.flush()
    os.chmod(file.name, 0o644)
    secrets = ["headers=Authorization: Bearer abc", "headers=X-Api-Key: abc", f"headers=A: file:{file.name}"]
    for url, headers, wanted in [("http://host.invalid", secrets, 1), ("http://host.invalid", secrets[1:2], 1),
                                 ("http://host.invalid", secrets[2:], 1), ("https://host.invalid", secrets, 0),
                                 ("http://localhost:1", secrets, 0), ("http://[::1]:1", secrets, 0),
                                 ("http://host.invalid", ["headers=X-Scope-OrgID: tenant"], 0),
                                 ("http://user:abc@host.invalid", [], 1)]:
        _, text = push(url, "--batches=0", *headers)
        expect(f"warnings for {url} {headers}", text.count(warning), wanted)
        expect("secrets in the log", text.count("abc"), 0)
        expect("warnings of a file that all can read", text.count(f"all users can read the secret in {file.name}: run chmod"),
               secrets[2] in headers)


TESTS = [
    a_date_in_retry_after_is_waited_for,
    the_request_is_what_the_protocol_asks_for,
    no_compression_and_a_url_as_it_is,
    environment_ranks_below_options,
    batches_go_one_at_a_time_in_order_over_one_connection,
    large_batches_are_split,
    after_an_outage_the_newest_totals_go_first_and_alone,
    of_the_backlog_of_totals_one_window_stays_for_each_time,
    a_backlog_is_spread_over_an_interval,
    deltas_that_a_full_queue_has_no_room_for_are_merged,
    deltas_that_were_refused_or_expired_are_in_the_next_ones,
    what_something_else_answers_keeps_deltas,
    deltas_that_are_always_refused_wait,
    a_request_that_is_too_large_is_cut_and_its_size_is_kept,
    deltas_that_are_too_many_for_a_request_go_in_smaller_ones,
    a_limit_of_points_holds_from_the_start,
    one_bad_point_is_lost_alone,
    a_receiver_that_refuses_everything_is_not_asked_for_ever,
    deltas_that_are_all_refused_are_not_asked_for_ever_and_not_lost,
    one_request_of_deltas_that_comes_always_too_early_does_not_stop_the_others,
    a_receiver_that_is_busy_gets_deltas_in_order,
    deltas_in_doubt_are_repeated_or_skipped_and_counted,
    deltas_in_doubt_are_never_merged,
    at_the_end_all_that_waits_is_one_request,
    at_the_end_the_newest_totals_do_not_wait_for_older_ones,
    an_outage_of_a_day_loses_no_delta,
    what_waits_in_a_spool_outlives_the_process,
    a_spool_keeps_an_hour_as_it_was_and_adds_up_the_rest,
    a_small_spool_merges_and_loses_nothing,
    without_a_place_for_a_spool_the_queue_is_in_memory,
    what_is_damaged_while_it_waits_is_lost_counted_and_kept,
    a_full_disk_and_a_stop_repeat_nothing,
    what_cannot_be_read_now_waits_and_the_exporter_fails,
    a_spool_that_was_deleted_is_made_again,
    in_chaos_no_delta_counts_twice_and_only_those_in_doubt_can_be_missing,
    after_chaos_totals_are_right,
    a_request_that_is_tried_too_long_is_dropped,
    an_absurd_retry_after_is_clamped_and_zero_does_not_spin,
    nobody_listens_then_somebody_does,
    a_receiver_that_moves_is_found_at_the_next_attempt,
    an_address_that_does_not_answer_leaves_time_for_the_next,
    after_a_failure_the_next_address_has_its_turn,
    a_name_that_is_not_known_is_named,
    no_body_is_sent_twice_behind_our_back,
    totals_go_again_at_once_if_a_kept_connection_ends_as_they_begin,
    the_second_end_in_a_row_is_a_failure,
    what_http2_has_not_processed_goes_again_at_once,
    a_connection_closed_while_idle_is_replaced,
    a_header_whose_file_is_gone_waits_for_it,
    something_else_on_that_port_is_named_once_a_change,
    another_reason_with_the_same_status_is_said,
    the_port_of_grpc_is_hinted_at,
    the_url_is_named_without_its_secrets,
    a_proxy_is_called_one,
    through_a_proxy_its_own_name_server_counts,
    a_proxy_is_named_without_its_password,
    a_secret_in_clear_text_is_warned_of_once,
    tls_is_checked_both_ways_and_files_are_read_again,
    wrong_options_are_refused_with_reasons,
]


def main():
    if not shutil.which("openssl"):
        print("skipped: openssl is missing")
        sys.exit(77)
    failures = 0
    cases = [(f"answer: {name}", lambda name=name: run_answer(name)) for name in ANSWERS]
    cases += [(test.__name__, test) for test in TESTS]
    for name, run in cases:
        if ONLY and not any(word in name for word in ONLY):
            continue
        try:
            run()
            print(f"ok      {name}")
        except (Failed, subprocess.TimeoutExpired, TimeoutError, IndexError, KeyError, TypeError) as error:
            failures += 1
            print(f"FAILED  {name}: {type(error).__name__}: {error}")
    print(f"{len(cases)} cases, {failures} failed")
    sys.exit(1 if failures else 0)


main()
