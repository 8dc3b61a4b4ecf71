#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Events arrive at the real Collector as log records, spans as traces, and both in a file as JSON lines: each once, with all its names.

What they are compared with is the list of the program that executed others. While the Collector is away, they wait."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import collector
import json_lines
import patience
from agent import BPFPUSH, Agent, cgroup2_mount, require_agent
from agent import Unavailable as NoAgent
from collector import Collector

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "bpf"))
import test_spans
from manager import Manager

EXECS = 400
SPANS = 300
OWNER = "process.linux.cgroup"
# Executes true so many times, with numbers as arguments, in a cgroup, and says which process had which.
WORKLOAD = """
import json, os, sys
open(sys.argv[1], 'w').write('0')
done = []
for i in range(int(sys.argv[2]), int(sys.argv[3])):
    child = os.fork()
    if not child:
        try:
            os.execv('/bin/true', ['true', str(i), '\\u00e4 b'])
        finally:
            os._exit(9)
    os.waitpid(child, 0)
    done.append([child, os.getpid(), ['true', str(i), '\\u00e4 b']])
print(json.dumps(done))
"""


def config_text(url, lines_path, points_path, more, interval):
    return f"""
[agent]
interval = {interval}
collectors = exec
{more[0]}
[collector exec]
rate_limit = 0
[resource]
host.name = vm1
[exporter central]
type = otlp
endpoint = {url}
retry_initial = 100ms
retry_max = 500ms
{more[1]}
[exporter lines]
type = json
signals = events
path = {lines_path}
[exporter points]
type = json
path = {points_path}
"""


class Case(unittest.TestCase):
    """Executes programs in a cgroup of its own; an agent writes events and points to files."""

    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="bpfpush-events."))
        cls.cgroup = f"/events-{os.getpid()}"
        os.mkdir(cgroup2_mount() + cls.cgroup)
        cls.addClassCleanup(os.rmdir, cgroup2_mount() + cls.cgroup)
        cls.lines_path, cls.points_path = (os.path.join(cls.directory, name) for name in ("lines", "points"))

    @classmethod
    def config(cls, receiver, of_agent="", of_exporter="", interval="1s"):
        return config_text(receiver.otlp_urls[0], cls.lines_path, cls.points_path, (of_agent, of_exporter), interval)

    @classmethod
    def execute(cls, first, end):
        done = subprocess.run([sys.executable, "-c", WORKLOAD, cgroup2_mount() + cls.cgroup + "/cgroup.procs", str(first), str(end)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience.PATIENCE_S, check=True)
        return json.loads(done.stdout)

    @classmethod
    def mine(cls, events):
        return [event for event in events if event["attributes"].get(OWNER) == cls.cgroup]

    @staticmethod
    def said(events):
        return [[event["attributes"]["process.pid"], event["attributes"]["process.parent_pid"],
                 event["attributes"]["process.command_args"]] for event in events]

    @classmethod
    def fates(cls):
        """{(exporter, error.type): events}, and how many wait there"""
        fates, waiting = {}, {}
        for point in json_lines.points(json_lines.read(cls.points_path)):
            attributes = point["attributes"]
            if point["name"] == "otel.sdk.exporter.log.exported":
                fates[attributes["otel.component.name"], attributes.get("error.type")] = point["total"]
            elif point["name"] == "otel.sdk.exporter.log.inflight":
                waiting[attributes["otel.component.name"]] = point["value"]
        return {key: total for key, total in fates.items() if total}, waiting


class ReceivedTest(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with Collector() as receiver:
            with Agent(cls.config(receiver)) as agent:
                cls.truth = cls.execute(0, EXECS)
                patience.wait(lambda: len(cls.mine(receiver.events())) >= EXECS, "the first events", 0.1)
                # Else a request whose answer is lost arrives twice.
                n_received = len(receiver.events())
                patience.wait(lambda: cls.fates()[0].get(("central/events", None), 0) >= n_received, "the answers", 0.1)
                receiver.stop()
                cls.truth += cls.execute(EXECS, 2 * EXECS)
                receiver.come_back()
                patience.wait(lambda: len(cls.mine(receiver.events())) >= 2 * EXECS, "those of the outage", 0.1)
                agent.stop()
                cls.log = agent.log_text()
            receiver.stop()
            cls.received = cls.mine(receiver.events())
            cls.names = {point["name"] for point in receiver.points()}
        cls.lines = json_lines.points(json_lines.read(cls.lines_path))

    def test_each_is_received_once_with_its_arguments(self):
        self.assertEqual(self.said(self.received), self.truth)
        for event in self.received:
            self.assertEqual((event["scope"], event["name"], event["severity"]), ("bpfpush.exec", "process.exec", (9, "INFO")))
            self.assertEqual(event["attributes"]["process.executable.path"], "/bin/true")
            self.assertEqual(event["body"], "process.exec " + " ".join(
                f"{name}={' '.join(value) if isinstance(value, list) else value}" for name, value in event["attributes"].items()))
            self.assertEqual((event["resource"]["host.name"], event["resource"]["service.name"]), ("vm1", "bpfpush"))

    def test_lines_say_the_same(self):
        lines = self.mine(self.lines)
        self.assertEqual([(line["time_ns"], line["attributes"]) for line in lines],
                         [(event["time_ns"], event["attributes"]) for event in self.received])
        self.assertEqual({(line["collector"], line["event"], line["severity"]) for line in self.lines},
                         {("exec", "process.exec", "INFO")})

    def test_metrics_are_pushed_beside_them(self):
        self.assertIn("bpfpush.series.count", self.names)
        self.assertIn("otel.sdk.exporter.log.exported", self.names)

    def test_each_is_accounted_for(self):
        fates, _ = self.fates()
        self.assertEqual(set(fates), {("central/events", None), ("lines/events", None)})
        self.assertGreaterEqual(fates["central/events", None], 2 * EXECS)
        self.assertNotIn("are dropped", self.log)


class WaitingTest(Case):
    @contextlib.contextmanager
    def service(self, **config):
        """-> (the receiver, start(), which starts the next process, what these have said)"""
        path, log_path = (os.path.join(self.directory, name) for name in ("agent.conf", "log"))
        with Collector() as receiver, Manager() as manager, open(log_path, "w", encoding="utf-8") as log:

            def start():
                process = manager.start([BPFPUSH, "run", "--config=" + path], stderr=log)
                manager.wait_for("READY=1")
                return process

            def said():
                with open(log_path, encoding="utf-8") as file:
                    return file.read()

            with open(path, "w", encoding="utf-8") as file:
                file.write(self.config(receiver, **config))
            receiver.stop()
            yield receiver, start, said

    def check_received(self, receiver, process, truth):
        patience.wait(lambda: len(self.mine(receiver.events())) >= len(truth), "what waited", 0.1)
        process.send_signal(signal.SIGTERM)
        process.wait(patience.PATIENCE_S)
        receiver.stop()
        self.assertEqual(self.said(self.mine(receiver.events())), truth)

    def test_what_waits_goes_with_the_next_process(self):
        with self.service() as (receiver, start, _):
            process = start()
            truth = self.execute(0, EXECS)
            patience.wait(lambda: self.fates()[1].get("central/events", 0) >= EXECS, "events that wait", 0.1)
            process.send_signal(signal.SIGTERM)
            process.wait(patience.PATIENCE_S)
            truth += self.execute(EXECS, EXECS + 10)  # the programs go on, and what they report waits
            process = start()
            truth += self.execute(EXECS + 10, EXECS + 20)
            receiver.come_back()
            self.check_received(receiver, process, truth)
            self.assertEqual({key for key in self.fates()[0] if key[1]}, set())

    def test_what_waits_outlives_a_kill_between_two_collections(self):
        with self.service(of_agent="include_units = " + self.cgroup, interval="1h") as (receiver, start, said):
            process = start()
            truth = self.execute(0, 1)
            patience.wait(lambda: "exporter central/events: " in said(), "an attempt to send it", 0.1)
            process.kill()
            process.wait()
            truth += self.execute(1, 11)
            process = start()
            receiver.come_back()
            self.check_received(receiver, process, truth)


class TracesTest(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test_spans.prepare(cls.directory)
        cls.truth = test_spans.make_spans(2 * SPANS)
        with Collector() as receiver:
            with Agent(cls.config(receiver).replace("collectors = exec", f"collectors = spans\ncollector_directory = {cls.directory}")
                       .replace("[collector exec]", "[collector spans]")) as agent:
                cls.execute_spans(cls.truth[:SPANS])
                patience.wait(lambda: len(cls.mine(receiver.spans())) >= SPANS, "the first spans", 0.1)
                patience.wait(lambda: all(cls.fates()[0].get((f"central/{name}", None), 0) >= SPANS for name in ("events", "traces")), "the answers", 0.1)
                receiver.stop()
                cls.execute_spans(cls.truth[SPANS:])
                receiver.come_back()
                patience.wait(lambda: min(len(cls.mine(receiver.spans())), len(cls.mine(receiver.events()))) >= 2 * SPANS, "those of the outage", 0.1)
                agent.stop()
                cls.log = agent.log_text()
            receiver.stop()
            cls.spans, cls.notes = cls.mine(receiver.spans()), cls.mine(receiver.events())
            cls.names = {point["name"] for point in receiver.points()}
        cls.lines = cls.mine(json_lines.points(json_lines.read(cls.lines_path)))

    @classmethod
    def execute_spans(cls, spans):
        subprocess.run([sys.executable, "-c", test_spans.WORKLOAD, json.dumps(spans), cgroup2_mount() + cls.cgroup + "/cgroup.procs"],
                       stdin=subprocess.DEVNULL, timeout=patience.PATIENCE_S, check=True)

    @classmethod
    def fates(cls):
        fates = {}
        for point in json_lines.points(json_lines.read(cls.points_path)):
            if point["name"] in ("otel.sdk.exporter.log.exported", "otel.sdk.exporter.span.exported"):
                fates[point["attributes"]["otel.component.name"], point["attributes"].get("error.type")] = point["total"]
        return {key: total for key, total in fates.items() if total}, {}

    def test_each_is_received_once_as_the_program_said_it(self):
        for span, truth in zip(self.spans, self.truth, strict=True):
            names = test_spans.said(*truth)
            self.assertEqual(span["ids"], tuple(names.pop(name, "") for name in ("trace_id", "span_id", "parent_span_id")))
            self.assertEqual(span["end_ns"] - span["begin_ns"], truth[5])
            self.assertEqual(span["name"], names.pop("span_name"))
            del names["duration"]
            self.assertEqual(span["attributes"], {**names, OWNER: self.cgroup})
            self.assertEqual((span["scope"], span["kind"], span["status"]), ("bpfpush.spans", 1, 2 if "error.type" in names else 0))
            self.assertEqual((span["resource"]["host.name"], span["resource"]["service.name"]), ("vm1", "bpfpush"))

    def test_records_have_the_ids_of_their_trace(self):
        self.assertEqual([note["ids"] for note in self.notes], [span["ids"][:2] for span in self.spans])
        self.assertEqual({tuple(note["attributes"]) for note in self.notes}, {(OWNER,)})

    def test_lines_say_the_same(self):
        lines = [line for line in self.lines if line["event"] == "test.call"]
        self.assertEqual([(line["time_ns"], line["attributes"]["span_id"]) for line in lines], [(span["begin_ns"], span["ids"][1]) for span in self.spans])

    def test_each_is_accounted_for(self):
        fates, _ = self.fates()
        self.assertEqual(set(fates), {("central/events", None), ("central/traces", None), ("lines/events", None)})
        self.assertGreaterEqual(fates["central/traces", None], 2 * SPANS)
        self.assertIn("otel.sdk.exporter.span.exported", self.names)
        self.assertNotIn("are dropped", self.log)


class FullTest(Case):
    def test_what_no_memory_holds_is_counted_and_metrics_lose_nothing(self):
        with Collector() as receiver:
            receiver.stop()  # before anything is sent: a request whose answer is lost arrives twice
            with Agent(self.config(receiver, "queue_size = 64KiB", "compression = none\nmax_request_size = 8KiB")) as agent:
                self.execute(0, EXECS)

                def is_full():
                    self.execute(0, EXECS)
                    return self.fates()[0].get(("central/events", "queue_full"))
                patience.wait(is_full, "a full queue", 0.1)
                receiver.come_back()
                patience.wait(lambda: self.fates()[1].get("central/events") == 0, "what waited", 0.1)
                agent.stop()
                log = agent.log_text()
            receiver.stop()
            n_received = len(receiver.events())
        fates, waiting = self.fates()
        self.assertEqual({key for key in fates if key[0] != "lines/events"},
                         {("central/events", None), ("central/events", "queue_full")})
        # The last points are written before the last events are sent.
        self.assertEqual(fates["central/events", None] + waiting["central/events"], n_received)
        self.assertEqual(n_received + fates["central/events", "queue_full"], len(json_lines.read(self.lines_path)))
        self.assertEqual(log.count("the oldest events are dropped; queue_size in [agent] gives it more room"), 1, log)


def fields_of(entry):
    """Of the journal's own protocol, with a size before each value."""
    fields = {}
    while entry:
        name, _, rest = entry.partition(b"\n")
        size, = struct.unpack_from("<Q", rest)
        fields[name.decode()], entry = rest[8:8 + size].decode(), rest[9 + size:]
    return fields


class JournalTest(Case):
    """A journal that reads when it is told to; the real one is in tests/system/test_service.py."""

    def setUp(self):
        path = os.path.join(self.directory, "journal")
        self.socket = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.socket.bind(path)
        self.addCleanup(os.unlink, path)
        self.entries = []
        self.text = config_text("http://127.0.0.1:9", self.lines_path, self.points_path,
                                ("include_units = " + self.cgroup, f"enabled = no\n[exporter journal]\ntype = journal\nendpoint = unix:{path}"), "1s")
        for path in self.lines_path, self.points_path:
            with open(path, "w", encoding="ascii"):
                pass

    def read(self):
        def take():
            while entry := self.socket.recv(1 << 20):
                self.entries.append(fields_of(entry))
        thread = threading.Thread(target=take)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(lambda: self.socket.shutdown(socket.SHUT_RD))

    def expected(self, truth):
        return [[str(child), str(parent), " ".join(words)] for child, parent, words in truth]

    def check_accounts(self):
        """-> how many were dropped. The last that it took is in doubt until the next."""
        def add_up():
            fates, waiting = self.fates()
            dropped = fates.get(("journal/events", "queue_full"), 0)
            return fates.get(("journal/events", None), 0) + waiting.get("journal/events", 0) == len(self.entries) and \
                len(self.entries) + dropped == len(json_lines.read(self.lines_path)) and (dropped, fates)
        dropped, fates = patience.wait(add_up, lambda: f"{self.fates()}, {len(self.entries)} entries", 0.1)
        self.assertLessEqual({key[1] for key in fates if key[0] == "journal/events"}, {None, "queue_full"})
        return dropped

    def test_each_is_an_entry_with_fields_when_it_reads_again(self):
        with Agent(self.text) as agent:
            truth = self.execute(0, EXECS)
            patience.wait(lambda: self.fates()[1].get("journal/events", 0) > 1, "entries that wait", 0.1)
            self.read()
            patience.wait(lambda: len(self.entries) >= EXECS, "entries", 0.1)
            truth += self.execute(EXECS, EXECS + 1)
            patience.wait(lambda: len(self.entries) > EXECS, "one more", 0.1)
            self.assertEqual(self.check_accounts(), 0)
            self.assertEqual(agent.stop(), 0)
        self.assertEqual([[entry["PROCESS_PID"], entry["PROCESS_PARENT_PID"], entry["PROCESS_COMMAND_ARGS"]] for entry in self.entries],
                         self.expected(truth))
        for entry in self.entries:
            self.assertEqual([entry[name] for name in ("PRIORITY", "SYSLOG_IDENTIFIER", "EVENT_NAME", "PROCESS_LINUX_CGROUP")],
                             ["6", "bpfpush-events", "process.exec", self.cgroup])
            self.assertTrue(entry["MESSAGE"].startswith(f"process.exec process.linux.cgroup={self.cgroup} process.pid={entry['PROCESS_PID']} "), entry)

    def test_an_exporter_of_events_alone_leaves_metrics_behind(self):
        text = self.text.replace("collectors = exec", "collectors = exec, memory")
        begin, end = text.index("[exporter journal]"), text.index("[exporter lines]")
        for exporters, n_warnings in (text[begin:end], 1), (text[begin:], 0):
            with self.subTest(n_warnings), Agent(text[:text.index("[exporter central]")] + exporters) as agent:
                agent.stop()
                self.assertEqual(agent.log_text().count("metrics are counted, but not pushed"), n_warnings, agent.log_text())

    def test_the_variable_of_metrics_takes_none(self):
        done = subprocess.run([BPFPUSH, "check", "--config=/dev/null"], env={**os.environ, "OTEL_METRICS_EXPORTER": "journal, json"},
                              capture_output=True, text=True, timeout=patience.PATIENCE_S, check=True)
        self.assertIn('OTEL_METRICS_EXPORTER: no metrics go to an exporter "journal": ignored', done.stderr)
        self.assertRegex(done.stdout, "^OK: .*1 exporter: json")

    def test_what_finds_no_room_is_counted(self):
        with Agent(self.text.replace("[agent]", "[agent]\nqueue_size = 64KiB")) as agent:
            def is_full():
                self.execute(0, EXECS)
                return self.fates()[0].get(("journal/events", "queue_full"))
            patience.wait(is_full, "a full buffer", 0.1)
            self.read()
            self.assertGreater(self.check_accounts(), 0)
            agent.stop()
            log = agent.log_text()
        self.assertEqual(log.count("exporter journal/events: its queue is full, the oldest events are dropped; queue_size"), 1, log)


if __name__ == "__main__":
    try:
        require_agent()
    except NoAgent as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    collector.main()
