# SPDX-License-Identifier: Apache-2.0
"""Events: a line for each program that is executed and each process that ends, equal to the list of the workload that did it."""
import csv
import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import harness
import patience
from harness import OWNER, PATIENCE_S, Cgroup, agent
from shown import show

# Executes each of the lists of its first argument N times, in a cgroup, and writes what it did to a file, as JSON.
WORKLOAD = '''
import json, os, sys
done = []
with open(sys.argv[3], 'w') as procs:
    procs.write('0')
for i in range(int(sys.argv[2])):
    for path, *words in json.loads(sys.argv[1]):
        child = os.fork()
        if not child:
            try:
                os.execv(path, [os.fsencode(word) for word in words])
            finally:
                os._exit(9)
        os.waitpid(child, 0)
        done.append({'pid': child, 'parent': os.getpid(), 'path': path, 'args': words})
json.dump(done, open(sys.argv[4], 'w'))
'''
# Forks a child for each word, in a cgroup, and writes how each ended, as wait() said, and how long it lived at most.
ENDS = '''
import ctypes, json, os, signal, sys, threading, time

def threads(end):
    ready = threading.Barrier(5)
    for i in range(4):
        threading.Thread(target=lambda: (ready.wait(), time.sleep(60)), daemon=True).start()
    ready.wait()
    end()

def leader_first():
    threading.Thread(target=lambda: (time.sleep(0.01), os._exit(6))).start()
    ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 7)  # exit: of this thread alone

KINDS = {
    'code0': lambda: os._exit(0),
    'code255': lambda: os._exit(255),
    'killed': lambda: os.kill(os.getpid(), signal.SIGKILL),
    'term': lambda: (signal.signal(signal.SIGTERM, signal.SIG_DFL), os.kill(os.getpid(), signal.SIGTERM)),
    'realtime': lambda: os.kill(os.getpid(), 40),
    'threads': lambda: threads(lambda: os._exit(5)),
    'leader_first': leader_first,
}
done = []
with open(sys.argv[1], 'w') as procs:
    procs.write('0')
for word in sys.argv[3:]:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    child = os.fork()
    if not child:
        KINDS[word]()
    status = os.waitpid(child, 0)[1]
    done.append({'pid': child, 'status': status, 'at_most': time.clock_gettime(time.CLOCK_BOOTTIME) - before})
json.dump(done, open(sys.argv[2], 'w'))
'''
TRUE = '/bin/true'
NO_LIMIT = ['--set=exec.rate_limit=0']  # others of this machine may execute as many as they like


def run(cgroup, lists, n=1, options=()):
    """-> (stdout, stderr, what the workload did)"""
    with tempfile.NamedTemporaryFile() as file:
        return *show('exec', cgroup, options, WORKLOAD, json.dumps(lists), str(n), cgroup.procs, file.name), json.load(file)


def said(events):
    """As the workload has it."""
    return [{'pid': at['process.pid'], 'parent': at['process.parent_pid'], 'path': at['process.executable.path'],
             'args': at.get('process.command_args', [])} for at in (event['attributes'] for event in events)]


class ExecTest(unittest.TestCase):
    def events(self, lists, n=1, options=()):
        with Cgroup('exec') as cgroup:
            begin_ns = time.time_ns()
            output, errors, truth = run(cgroup, lists, n, ['--format=json', *options])
            events = [json.loads(line) for line in output.splitlines()]
            for event in events:
                self.assertEqual({key: event[key] for key in ('collector', 'event', 'severity')},
                                 {'collector': 'exec', 'event': 'process.exec', 'severity': 'INFO'})
                self.assertTrue(begin_ns <= event['time_ns'] <= time.time_ns(), event)
                self.assertEqual(event['attributes'].pop(OWNER), cgroup.path)
        return events, truth, errors

    def test_each_is_there_with_its_arguments(self):
        events, truth, errors = self.events([[TRUE, 'true', 'a', '', 'b c'], ['/bin/sleep', 'sleep', '0', '0']], 100, NO_LIMIT)
        self.assertEqual((said(events), errors), (truth, ''))
        self.assertEqual(len(truth), 200)
        times = [event['time_ns'] for event in events]
        self.assertEqual(times, sorted(times))

    def test_one_that_fails_is_not_there(self):
        events, truth, _ = self.events([['/nonexistent', 'x'], [TRUE, 'true']], 3)
        self.assertEqual(said(events), [one for one in truth if one['path'] == TRUE])

    def test_long_arguments_are_cut_and_strange_ones_are_safe(self):
        hostile = '\x1b[31m\x07\udcff' + 'x' * 300
        events, truth, _ = self.events([[TRUE, 'true', hostile, 'y' * 5000, 'z']])
        words = events[0]['attributes']['process.command_args']
        self.assertEqual(words[0], 'true')
        self.assertRegex(words[1], '^\ufffd\\[31m\ufffd\ufffdx{300}~[0-9a-f]{8}$')
        self.assertRegex(words[2], '^y{3000,4095}~?')
        self.assertNotIn('z', words)
        self.assertEqual(len(truth), 1)

    def test_a_flood_is_limited_and_counted(self):
        for limit in (0, 1):
            with self.subTest(limit):
                events, truth, errors = self.events([[TRUE, 'true']], 400, [f'--set=exec.rate_limit={limit}'])
                found = re.search(r'^bpfpush events: exec: (\d+) more events? happened than rate_limit lets '
                                  r'through; --set=exec\.rate_limit=0 shows all$', errors, re.MULTILINE)
                if not limit:
                    self.assertEqual((said(events), errors), (truth, ''))
                    continue
                self.assertGreater(int(found[1]), 0)
                # Of a second, all, the workload's start and what others of this machine execute included.
                seconds = {event['time_ns'] // 10**9 for event in events}
                self.assertLessEqual(len(events), limit * (len(seconds) + 1))
                self.assertGreaterEqual(len(events) + int(found[1]), len(truth))

    def test_only_what_a_command_executes(self):
        done = subprocess.run([agent(), 'events', '--config=/dev/null', 'exec', *NO_LIMIT, '--format=json', '--', 'sh', '-c',
                               '/bin/true 1; /bin/true 2; exit 3'],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (3, b''))
        self.assertEqual([json.loads(line)['attributes']['process.command_args'] for line in done.stdout.splitlines()],
                         [['sh', '-c', '/bin/true 1; /bin/true 2; exit 3'], [TRUE, '1'], [TRUE, '2']])

    def test_conditions(self):
        for condition, n in (('process.executable.path=*sleep', 1), ('executable.path!=*sleep', 1), ('pid', 2),
                             ('command_args=* last', 1), ('command_args!=*last*', 1), ('command_args=true', 0)):
            with self.subTest(condition):
                events, _, _ = self.events([[TRUE, 'true', 'last'], ['/bin/sleep', 'sleep', '0']], 1, ['--where=' + condition])
                self.assertEqual(len(events), n)
        done = subprocess.run([agent(), 'events', '--config=/dev/null', 'exec', '--where=paht=x', '--for=1s'],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 64)
        self.assertIn('--where: unknown attribute "paht"', done.stderr)

    def test_csv(self):
        with Cgroup('exec') as cgroup:
            output, _, _ = run(cgroup, [[TRUE, 'true', '=1', 'a"b,c']], 1, ['--format=csv'])
        rows = list(csv.DictReader(io.StringIO(output, newline='')))
        self.assertEqual([(row[OWNER], row['process.executable.path'], row['process.command_args']) for row in rows],
                         [(cgroup.path, TRUE, 'true =1 a"b,c')])

    def test_a_line_of_a_table(self):
        with Cgroup('exec') as cgroup:
            output, _, _ = run(cgroup, [[TRUE, 'true', 'an argument']])
        lines = output.splitlines()
        self.assertRegex(lines[0], r'^time UTC +unit +pid +parent_pid +path +command_args$')
        self.assertRegex(lines[1], r'^\d\d:\d\d:\d\d\.\d{3}  %s +\d+ +\d+  /bin/true +true an argument$' % cgroup.path)
        self.assertEqual(len(lines), 2)

    def test_it_starts_at_once_and_ends_with_ctrl_c_without_a_lost_line(self):
        leader, follower = pty.openpty()
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen([agent(), 'events', '--config=/dev/null', 'exec', *NO_LIMIT, '--format=json'],
                                       stdin=follower, stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
            os.close(follower)
            self.addCleanup(os.close, leader)
            self.addCleanup(process.kill)

            def is_seen():
                subprocess.run([TRUE, 'probe'], check=True)
                return select.select([process.stdout], [], [], 0)[0]
            patience.wait(is_seen, 'the first line')
            for i in range(50):
                subprocess.run([TRUE, 'marked', str(i)], check=True)
            process.send_signal(signal.SIGINT)
            output = process.stdout.read()
            self.assertEqual(process.wait(PATIENCE_S), 0)
            process.stdout.close()
        words = [json.loads(line)['attributes'].get('process.command_args', []) for line in output.splitlines()]
        self.assertEqual([one[2] for one in words if one[1:2] == ['marked']], [str(i) for i in range(50)])


class OutputTest(unittest.TestCase):
    def test_a_full_disk_ends_it_and_the_command(self):
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([agent(), 'events', '--config=/dev/null', 'exec', '--', 'sh', '-c', 'while :; do /bin/true; done'],
                                  stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                                  check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (74, 'bpfpush events: standard output cannot be written: No space left on device\n'))

    def start(self, **options):
        process = subprocess.Popen([agent(), 'events', '--config=/dev/null', 'exec', *NO_LIMIT, '--for=1h'],
                                   stdin=subprocess.DEVNULL, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_reader_that_goes_ends_it(self):
        process = self.start(stdout=subprocess.PIPE)

        def has_output():
            subprocess.run([TRUE], check=True)
            return select.select([process.stdout], [], [], 0)[0]

        def has_ended():
            subprocess.run([TRUE], check=True)
            return process.poll() is not None
        patience.wait(has_output, 'the first line')
        process.stdout.close()
        patience.wait(has_ended, 'its end')
        self.assertEqual(process.returncode, -signal.SIGPIPE)

    def test_a_reader_that_does_not_read_can_be_left(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        errors = self.enterContext(tempfile.TemporaryFile('w+'))
        process = self.start(stdout=writer, stderr=errors)
        os.close(writer)
        execute = [sys.executable, '-c', 'import subprocess\nfor i in range(100): subprocess.run(["/bin/true", "x" * 2000])']

        def held():
            return int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), sys.byteorder)

        def is_full():
            before = held()
            subprocess.run(execute, check=True)
            return held() == before > 0
        patience.wait(is_full, 'a pipe that is full')
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), 0)
        errors.seek(0)
        self.assertIn('bpfpush events: lines are missing at the end', errors.read())


class ExitTest(unittest.TestCase):
    def test_each_end_is_there_as_wait_reports_it(self):
        kinds = ['code0', 'code255', 'killed', 'term', 'realtime', 'threads', 'leader_first'] * 5
        with Cgroup('exit') as cgroup, tempfile.NamedTemporaryFile() as file:
            output, errors = show('exit', cgroup, ['--format=json'], ENDS, cgroup.procs, file.name, *kinds)
            truth = json.load(file)
        *events, last = [json.loads(line)['attributes'] for line in output.splitlines()]
        self.assertEqual((errors, last['process.exit.code']), ('', 0))  # the workload itself
        names = {9: 'SIGKILL', 15: 'SIGTERM', 40: '40'}
        self.assertEqual([(event['process.pid'], event['process.parent_pid'], event['process.exit.code'],
                           event.get('bpfpush.process.exit.signal')) for event in events],
                         [(one['pid'], last['process.pid'], os.WEXITSTATUS(one['status']) if os.WIFEXITED(one['status']) else
                           128 + os.WTERMSIG(one['status']),
                           names[os.WTERMSIG(one['status'])] if os.WIFSIGNALED(one['status']) else None) for one in truth])
        for event, one in zip(events, truth):
            self.assertTrue(0 < event['bpfpush.process.lifetime'] <= one['at_most'], event)
            self.assertEqual(event['thread.name'], last['thread.name'])


class NoEventsTest(unittest.TestCase):
    def test_a_collector_without_events_says_so(self):
        done = subprocess.run([agent(), 'events', '--config=/dev/null', 'process', '--for=1s'],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr.startswith('bpfpush events: no collector that counts here has events')),
                         (64, True))


if __name__ == '__main__':
    harness.main()
