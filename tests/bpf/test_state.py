# SPDX-License-Identifier: Apache-2.0
"""Totals that outlive the agent: it is killed again and again, and no event is lost or counted twice.

BPFPUSH_TEST_KILLS=1000 in the environment ends it so many times, which takes half an hour.
"""
import collections
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import harness
import json_lines
from harness import OWNER, PATIENCE_S, Cgroup, workload
from manager import Manager

COUNT = 'bpfpush.syscalls'
OWN_TIME = 'otel.sdk.metric_reader.collection.duration'
KILLS = int(os.environ.get('BPFPUSH_TEST_KILLS', 8))
CYCLE = 8  # of which the receiver is away for two


class Receiver:
    """A StatsD server at a unix socket, which can be away. Adds up the calls of getsid() that succeeded, by owner."""

    def __init__(self, path):
        self.path = path
        self.sums = collections.Counter()
        self.last = None      # datagram
        self.repeats = set()  # the last datagrams before the kills; see state.h
        self.socket = None
        self.lock = threading.Lock()
        self.come()
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def come(self):
        with self.lock:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            self.socket.settimeout(0.05)
            self.socket.bind(self.path)

    def go(self):
        """What it has not read is read still: the agent counts it as delivered."""
        os.unlink(self.path)
        self._drain()
        with self.lock:
            self.socket.close()
            self.socket = None

    def _drain(self):
        while self._receive():
            pass

    def _receive(self):
        with self.lock:
            try:
                data = self.socket and self.socket.recv(65536)
            except TimeoutError:
                data = None
            if data and not (data in self.repeats and not self.repeats.remove(data)):
                self._add(data.decode())
                self.last = data
            return data

    def _listen(self):
        while True:
            if not self._receive():
                time.sleep(0.01)

    def _add(self, datagram):
        for line in datagram.split('\n'):
            match = re.fullmatch(r'(.*?):(\d+)\|c\|#(.*)', line)
            tags = dict(tag.split(':', 1) for tag in match.group(3).split(',')) if match else {}
            if match and match.group(1) == COUNT and tags.get('bpfpush.syscall.name') == 'getsid' and \
                    'error.type' not in tags and OWNER in tags:
                self.sums[tags[OWNER]] += int(match.group(2))

    def note_kill(self):
        """The process was killed: if that was while it sent its last datagram, this one comes again."""
        self._drain()
        with self.lock:
            self.repeats = {self.last} - {None}


class StateTest(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-'))
        self.output = os.path.join(self.directory, 'points.json')
        self.receiver = Receiver(os.path.join(self.directory, 'statsd'))
        self.manager = self.enterContext(Manager())
        self.config = os.path.join(self.directory, 'agent.conf')
        with open(self.config, 'w') as file:
            file.write('[agent]\ninterval = 1s\ncollectors = syscalls\n[exporter file]\ntype = json\npath = %s\n'
                       '[exporter statsd]\ntype = statsd\ndialect = dogstatsd\nendpoint = unix:%s\n'
                       'template = {metric}\nretry_max = 200ms\n' % (self.output, self.receiver.path))
        self.process = None
        self.chance = harness.chance()

    def restart(self, is_killed=True):
        if self.process:
            self.process.kill() if is_killed else self.process.terminate()
            self.process.wait()
            self.receiver.note_kill()
        with open(os.path.join(self.directory, 'log'), 'w') as log:
            self.process = self.manager.start([harness.agent(), 'run', '--config=' + self.config], stderr=log)
        self.manager.wait_for('READY=1')

    def points(self):
        for point in json_lines.points(json_lines.read(self.output), n_killed=len(self.manager.processes)):
            # Other units of the machine may end and come again, and then begin again.
            owner = point['attributes'].get(OWNER, '')
            if point['name'] == OWN_TIME or (point['kind'] == 'sum' and owner.startswith('/bpfpush-test-state')):
                yield point

    def totals(self):
        """The last total of each series; none of the kernel's may ever fall, and none start a second time."""
        last = {}
        for point in self.points():
            series = point['name'], json.dumps(point['attributes'], sort_keys=True)
            before = last.get(series, point)
            # The agent may be killed when it has written a line and not saved what it counted itself.
            if point['name'] != OWN_TIME:
                self.assertGreaterEqual(point['total'], before['total'], point)
            self.assertEqual(point['start_time_ns'], before['start_time_ns'], point)
            last[series] = point
        found = collections.Counter()
        for point in last.values():
            attributes = point['attributes']
            if point['name'] == COUNT and attributes.get('bpfpush.syscall.name') == 'getsid' and \
                    'error.type' not in attributes:
                found[attributes.get(OWNER)] += point['total']
        return found

    def run_workload(self, i, expected):
        with Cgroup('state%d' % i) as cgroup:
            with subprocess.Popen([workload('syscall'), cgroup.procs], stdout=subprocess.PIPE) as process:
                time.sleep(self.chance.random() * 1.2)
                self.restart(is_killed=i % 5 != 4)
                expected[cgroup.path] = json.loads(process.communicate()[0])['getsid']
        # Its keys are removed from the kernel's maps later on, under other kills.

    def wait_for(self, seen, expected):
        for _ in range(PATIENCE_S * 2):
            found = {name: seen().get(name) for name in expected}
            if found == expected:
                return
            time.sleep(0.5)
        self.assertEqual(found, expected)

    def test_what_a_workload_did_is_counted_once_whenever_the_agent_is_killed(self):
        expected = {}
        self.restart()
        for i in range(KILLS):
            if i % CYCLE == 3:
                self.receiver.go()
            if i % CYCLE == 5:  # what waited outlived two agents
                self.receiver.come()
            self.run_workload(i, expected)
        self.wait_for(self.totals, expected)
        self.wait_for(lambda: self.receiver.sums, expected)
        self.process.terminate()
        self.assertEqual(self.process.wait(PATIENCE_S), 0)
        self.assertEqual({name: self.totals()[name] for name in expected}, expected)
        self.assertEqual({name: self.receiver.sums[name] for name in expected}, expected)


if __name__ == '__main__':
    harness.main()
