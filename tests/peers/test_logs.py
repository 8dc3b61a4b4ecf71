#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A store of logs finds events by their name, by their unit and by the words of their body: VictoriaLogs, by night."""

import json
import os
import sys
import unittest
import urllib.parse
import urllib.request

import receiver
import test_events
from agent import Agent, require_agent
from agent import Unavailable as NoAgent

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import patience

EXECS = 100


class VictoriaLogs(receiver.Receiver):
    name = "victoria-logs"
    protocol = "tcp"

    def command(self):
        return [os.path.join(self.home, "victoria-logs"), f"-httpListenAddr={self.endpoint}", f"-storageDataPath={self.path('data')}",
                "-memory.allowedBytes=128MB"]

    def url(self, path):
        return f"http://{self.endpoint}{path}"

    def find(self, query):
        """The records that match a query in LogsQL."""
        query = urllib.parse.urlencode({"query": query, "limit": 10 * EXECS})
        with urllib.request.urlopen(self.url("/select/logsql/query?" + query), timeout=patience.PATIENCE_S) as answer:
            return [json.loads(line) for line in answer.read().splitlines()]


class LogsTest(test_events.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.logs = cls.enterClassContext(VictoriaLogs())
        config = test_events.config_text("http://127.0.0.1:9", cls.lines_path, cls.points_path, ("", "signals = events\nlogs_endpoint = " +
                                         cls.logs.url("/insert/opentelemetry/v1/logs")), "1s")
        cls.by_unit = f'{test_events.OWNER}:="{cls.cgroup}"'
        with Agent(config) as agent:
            cls.truth = cls.execute(0, EXECS)
            patience.wait(lambda: len(cls.logs.find(cls.by_unit)) >= EXECS, "the events", 0.1)
            agent.stop()

    def assert_all(self, query):
        found = self.logs.find(query)
        self.assertEqual(sorted((int(record["process.pid"]), int(record["process.parent_pid"]), json.loads(record["process.command_args"]))
                                for record in found), sorted(map(tuple, self.truth)))
        return found

    def test_events_are_found_by_name_and_unit(self):
        for record in self.assert_all(f'event_name:="process.exec" AND {self.by_unit}'):
            self.assertEqual((record["severity_text"], record["host.name"], record["scope.name"]), ("INFO", "vm1", "bpfpush.exec"))

    def test_events_are_found_by_words_of_the_body(self):
        self.assert_all(f'_msg:"process.exec" AND _msg:"{self.cgroup}"')

    def test_one_is_found_by_its_arguments(self):
        pid, parent, words = self.truth[EXECS // 2]
        record, = self.logs.find(f'{self.by_unit} AND process.pid:={pid} AND process.parent_pid:={parent}')
        self.assertEqual(json.loads(record["process.command_args"]), words)


if __name__ == "__main__":
    try:
        require_agent()
        receiver.installed(VictoriaLogs.name)
    except (NoAgent, receiver.Unavailable) as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
