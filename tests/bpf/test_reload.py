# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: a right configuration is used at once by the same process, and a wrong one changes nothing. What loads other
programs is left to the manager, and the counts go on."""
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness
import json_lines
from harness import PATIENCE_S, Cgroup, Points, workload
from manager import Manager

USER = 65534
# The last one to find the program and its collectors.
CAPABILITIES = '+bpf,+perfmon,+dac_read_search'
ORDINARY = ['setpriv', '--reuid=%d' % USER, '--regid=%d' % USER, '--clear-groups', '--inh-caps=' + CAPABILITIES,
            '--ambient-caps=' + CAPABILITIES, '--bounding-set=-all,' + CAPABILITIES, '--no-new-privs']


class Receiver(http.server.ThreadingHTTPServer):
    """Takes requests, and answers them only when it may."""

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.may_answer = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *error):
        self.may_answer.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.server.may_answer.wait()
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


class Service(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-'))
        os.chmod(self.directory, 0o755)
        self.config = os.path.join(self.directory, 'agent.conf')
        self.log = os.path.join(self.directory, 'log')
        self.manager = self.enterContext(Manager())
        os.chmod(self.manager.directory.name, 0o755)
        os.chmod(self.manager.path, 0o666)

    def configure(self, output, settings='', collectors='memory'):
        """The path of the file to which the next agent writes, which is there."""
        path = os.path.join(self.directory, output)
        with open(path, 'a'):
            os.chmod(path, 0o666)
        with open(self.config, 'w') as file:
            file.write('[agent]\ninterval = 1s\ncollectors = %s\n%s\n'
                       '[exporter file]\ntype = json\npath = %s\n' % (collectors, settings, path))
        return path

    def start(self, is_waiting=True, program=None):
        with open(self.log, 'w') as log:
            self.process = self.manager.start(ORDINARY + [program or harness.agent(), 'run', '--config=' + self.config], stderr=log)
        if is_waiting:
            self.manager.wait_for('READY=1')

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def messages(self):
        with open(self.log) as file:
            return file.read()

    def wait(self, condition):
        for _ in range(PATIENCE_S * 10):
            if condition():
                return
            self.assertIsNone(self.process.poll(), self.messages())
            time.sleep(0.1)
        self.fail('did not happen; the agent said:\n' + self.messages())

    def wait_for_points(self, path):
        size = os.path.getsize(path)
        self.wait(lambda: os.path.getsize(path) > size)

    def wait_for_start(self, n):
        """The manager may miss messages of a process that is replaced at once."""
        self.wait(lambda: self.messages().count('started: ') >= n)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(PATIENCE_S), 0, self.messages())


class ReloadTest(Service):
    def test_a_right_file_is_used_by_the_same_process_and_the_kernel_counts_on(self):
        first = self.configure('first')
        self.start()
        links = self.manager.ids(r'\.l\.')
        self.wait_for_points(first)
        second = self.configure('second', 'series_limit = 5000')
        self.hang_up()
        self.assertRegex(self.manager.wait_for('RELOADING=1')[1], '^MONOTONIC_USEC=[1-9][0-9]+$')
        self.manager.wait_for('READY=1')
        self.wait_for_points(second)
        self.assertEqual((self.manager.ids(r'\.l\.'), len(links) > 0), (links, True))
        size = os.path.getsize(first)
        self.stop()
        self.assertEqual(os.path.getsize(first), size)
        self.assertNotIn('stopped\n', self.messages().split('reloading the configuration')[0])

    def test_a_wrong_file_is_said_and_changes_nothing(self):
        path = self.configure('points')
        self.start()
        self.configure('points', 'intervall = 5s')
        self.hang_up()
        self.manager.wait_for('STATUS=.*; the configuration has mistakes, and the old one goes on;.*')
        self.assertRegex(self.messages(), r'agent\.conf:4: .*intervall')
        self.wait_for_points(path)
        self.configure('points')
        self.hang_up()
        self.manager.wait_for('READY=1')
        self.manager.wait_for('STATUS=1 collector, [0-9]+ series, read in [0-9.]+ ms; file: .*')
        self.stop()

    def test_what_a_receiver_has_not_answered_goes_on(self):
        with Receiver() as receiver:
            more = ('shutdown_timeout = 1s\n[exporter slow]\ntype = otlp\ntimeout = 5m\nendpoint = http://127.0.0.1:%d\n'
                    % receiver.server_address[1])
            path = self.configure('points', more)
            self.start()
            for _ in range(2):
                self.wait_for_points(path)
            self.hang_up()
            self.wait_for_start(2)
            self.assertRegex(self.messages(), r'[1-9]\d* series and [1-9]\d* waiting points go on from the process before')
            receiver.may_answer.set()
            self.manager.wait_for('STATUS=.*; slow: delivered [0-9]+ s ago; .*')
            self.stop()

    def test_what_an_exporter_that_is_gone_had_not_sent_is_said(self):
        with Receiver() as receiver:
            path = self.configure('points', 'shutdown_timeout = 1s\n[exporter slow]\ntype = otlp\ntimeout = 5m\nendpoint = http://127.0.0.1:%d\n'
                                  % receiver.server_address[1])
            self.start()
            for _ in range(2):
                self.wait_for_points(path)
            self.configure('points')
            self.hang_up()
            self.wait_for_start(2)
            self.assertRegex(self.messages(), r'exporter slow is not in use any more: [1-9]\d* points that waited are lost\n')
            self.stop()

    def test_a_stop_during_a_reload_stops_it(self):
        with Receiver() as receiver:
            self.configure('points', 'shutdown_timeout = 5m\n[exporter slow]\ntype = otlp\ntimeout = 5m\nendpoint = http://127.0.0.1:%d\n'
                           % receiver.server_address[1])
            self.start()
            self.hang_up()
            self.manager.wait_for('RELOADING=1')
            self.process.send_signal(signal.SIGTERM)
            self.manager.wait_for('STOPPING=1')
            receiver.may_answer.set()
            self.assertEqual(self.process.wait(PATIENCE_S), 0, self.messages())
            self.assertEqual(self.messages().count('started: '), 1)

    def test_a_metric_that_is_disabled_ends(self):
        """Its series do not go on, although the state of the process before has them."""
        faults = 'process.paging.faults'
        first = self.configure('first')
        self.start()
        self.wait_for_points(first)
        second = self.configure('second', '[metric %s]\nenabled = no\n' % faults)
        self.hang_up()
        self.wait_for_start(2)
        for _ in range(2):
            self.wait_for_points(second)
        self.stop()
        names = [{json.loads(line)['name'] for line in open(path, encoding='utf-8')} for path in (first, second)]
        self.assertEqual([faults in each for each in names], [True, False])
        self.assertIn('otel.sdk.exporter.metric_data_point.exported', names[1])

    def test_a_file_that_becomes_wrong_while_the_last_points_are_sent(self):
        with Receiver() as receiver:
            more = ('shutdown_timeout = 5m\n[exporter slow]\ntype = otlp\ntimeout = 5m\nendpoint = http://127.0.0.1:%d\n'
                    % receiver.server_address[1])
            path = self.configure('points', more)
            self.start()
            self.hang_up()
            self.manager.wait_for('RELOADING=1')
            self.configure('points', 'intervall = 5s')
            receiver.may_answer.set()
            self.manager.wait_for('READY=1')
            self.manager.wait_for('STATUS=.*; the configuration has mistakes, and the old one goes on;.*')
            for _ in range(2):
                self.wait_for_points(path)
            self.stop()

    def test_what_takes_rights_is_left_to_the_manager(self):
        """Other sizes of tables: they have to be loaded, and this process cannot load any more."""
        self.configure('points')
        self.start()
        self.configure('points', 'units = 100')
        self.hang_up()
        self.manager.wait_for('STOPPING=1')
        self.assertEqual(self.process.wait(PATIENCE_S), 0)
        self.assertIn('takes rights that are given up', self.messages())

    def test_a_program_that_cannot_be_executed_goes_on(self):
        """It was removed: the new configuration is used by the process that is there, and the kernel counts on."""
        program = os.path.join(self.directory, 'bpfpush')
        shutil.copy(harness.agent(), program)
        collectors = 'collector_directory = ' + os.path.join(os.path.dirname(os.path.realpath(harness.agent())), 'bpf')
        last = self.configure('first', collectors, 'memory tcpstate')
        self.start(program=program)
        links = self.manager.ids(r'\.l\.')
        self.wait_for_points(last)
        os.remove(program)
        for n, name in enumerate(('second', 'third'), 2):
            last = self.configure(name, collectors, 'memory tcpstate' if n == 2 else 'memory')
            self.hang_up()
            self.wait_for_start(n)
            self.wait_for_points(last)
            # A collector that is taken out counts no longer.
            kept = links if n == 2 else {name: link for name, link in links.items() if not name.startswith('socket')}
            self.assertLess(0, len(links) - len(kept) if n == 3 else 1)
            self.assertEqual(self.manager.ids(r'\.l\.'), kept)
        said = self.messages()
        self.assertEqual(said.count('goes on in the same process, because it cannot start again: No such file'), 2, said)
        self.assertEqual(len(re.findall(r'[1-9]\d* series.* go on from the process before', said)), 2, said)
        self.stop()

    def test_signals_that_come_at_any_time(self):
        """While it starts, twice, and a stop at once after another."""
        path = self.configure('points')
        self.start(is_waiting=False)
        self.wait(lambda: os.readlink('/proc/%d/exe' % self.process.pid) == os.path.realpath(harness.agent()))
        self.wait(lambda: blocks_hangup(self.process.pid))
        self.hang_up()
        self.wait_for_start(2)
        self.hang_up()
        self.hang_up()
        self.wait_for_start(3)
        self.wait_for_points(path)
        self.hang_up()
        self.stop()


class ExchangeTest(Service):
    """Programs are loaded again while a workload without a pause is counted."""

    CHANGES = (  # collectors, settings
        ('syscalls, memory, fileio', ''),
        ('memory, scheduler, syscalls', 'units = 300'),
        ('memory, syscalls', '[collector syscalls]\nper_process = yes'),
        ('syscalls, memory', '[collector syscalls]\nper_process = yes\nduration = getsid'),
        ('syscalls, memory', ''),
    )

    def setUp(self):
        super().setUp()
        self.cgroup = self.enterContext(Cgroup('exchange'))
        self.counts = os.path.join(self.directory, 'counts')
        self.gap_s = 0
        self.chance = harness.chance()
        self.brief = {}  # the calls of each cgroup that came and went while no agent ran
        self.path = self.configure('points', collectors='syscalls, memory')
        self.start()
        self.workload = subprocess.Popen([workload('busy'), self.counts, self.cgroup.procs])
        self.addCleanup(self.workload.wait)
        self.addCleanup(self.workload.kill)

    def points_of(self, path):
        lines = (line for line in json_lines.read(self.path) if path.encode() in line)
        return Points(json_lines.points(lines, n_killed=len(self.manager.processes)))

    def collections(self):
        """{time: Points} of the workload."""
        found = {}
        for point in self.points_of(self.cgroup.path):
            found.setdefault(point['time_ns'], Points()).append(point)
        return found

    def pause(self):
        """Stops the workload. What it has done until then, and what was counted of it: calls, faults, CPU seconds."""
        self.workload.send_signal(signal.SIGSTOP)
        n = len(self.collections())
        self.wait(lambda: len(self.collections()) >= n + 3)
        with open(self.counts, 'rb') as file:
            calls = int.from_bytes(file.read(8), sys.byteorder)
        with open('/proc/%d/stat' % self.workload.pid) as file:
            fields = file.read().rsplit(')', 1)[1].split()
        _, last = max(self.collections().items())
        return [calls, int(fields[7]), last.total('bpfpush.syscalls', **{'bpfpush.syscall.name': 'getsid'}),
                last.total('process.paging.faults', **{'system.paging.fault.type': 'minor'}),
                sum(map(int, fields[11:13])) / os.sysconf('SC_CLK_TCK')]

    def start_again(self, killed_after_s=None):
        self.start(is_waiting=killed_after_s is None)
        if killed_after_s is not None:
            time.sleep(killed_after_s)
            self.process.kill()
            self.process.wait()
            self.manager.drain()
            self.manager.n_read = len(self.manager.messages)
        self.gap_s += sum(float(ms) / 1000 for ms in re.findall(r'took over within ([0-9.]+) ms', self.messages()))

    def exchange(self, collectors, settings):
        self.configure('points', settings, collectors)
        self.hang_up()
        self.assertEqual(self.process.wait(PATIENCE_S), 0)
        with Cgroup('brief%d' % len(self.brief)) as cgroup:
            done = subprocess.run([workload('syscall'), cgroup.procs], stdout=subprocess.PIPE, check=True)
            self.brief[cgroup.path] = json.loads(done.stdout)['getsid']
        for killed_after_s in (self.chance.random() * 3, None):
            self.start_again(killed_after_s)
        self.wait_for_points(self.path)

    def assert_series_go_on(self):
        last = {}
        for points in self.collections().values():
            for point in points.select('bpfpush.syscalls') + points.select('process.paging.faults'):
                before = last.setdefault(json.dumps([point['name'], point['attributes']], sort_keys=True), point)
                self.assertGreaterEqual(point['total'], before['total'], point)
                self.assertEqual(point['start_time_ns'], before['start_time_ns'], point)
                self.assertEqual('process.pid' in point['attributes'], 'process.executable.name' in point['attributes'])
                last[json.dumps([point['name'], point['attributes']], sort_keys=True)] = point

    def test_counts_go_on_and_lose_next_to_nothing(self):
        self.wait(lambda: len(self.collections()) > 1)
        before = self.pause()
        self.workload.send_signal(signal.SIGCONT)
        for collectors, settings in self.CHANGES:
            self.exchange(collectors, settings)
        calls, faults, counted_calls, counted_faults, cpu_s = (
            after - before for after, before in zip(self.pause(), before))
        self.assertGreater(self.gap_s, 0)
        for what, done, counted in ('calls', calls, counted_calls), ('faults', faults, counted_faults):
            print('%s: %d done, %d lost, took over within %f s' % (what, done, done - counted, self.gap_s))
            # The stopped workload may have made a call that it has not noted yet.
            self.assertLessEqual(counted, done + 1, what)
            self.assertLessEqual(done - counted, 1 + done / cpu_s * self.gap_s, what)
        self.assert_series_go_on()
        for path, calls in self.brief.items():
            named = self.points_of(path).select('bpfpush.syscalls', **{'bpfpush.syscall.name': 'getsid',
                                                                            'error.type': None})
            totals = {json.dumps(point['attributes']): point['total'] for point in named}  # the last ones
            self.assertEqual(sum(totals.values()), calls, path)
        self.assertEqual(len({name.split('.')[1] for name in self.manager.ids(r'\.[0-9a-f]{16}\.')}), 2)


def blocks_hangup(pid):
    with open('/proc/%d/status' % pid) as status:
        (mask,) = (line.split()[1] for line in status if line.startswith('SigBlk:'))
    return int(mask, 16) & 1 << signal.SIGHUP - 1


if __name__ == '__main__':
    harness.main()
