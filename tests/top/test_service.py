# SPDX-License-Identifier: Apache-2.0
"""`bpfpush top` where the service runs: it shows the service's collections, and counts nothing by itself."""
import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path += [HERE, os.path.join(HERE, '..'), os.path.join(HERE, '..', 'bpf')]
import harness
import patience
from harness import PATIENCE_S, Cgroup
from manager import object_id
from rights import NOBODY
from screen import Screen, paused_s

CALLS = 'import os, sys\nsys.stdin.readline()\nfor i in range(%d): os.getpriority(os.PRIO_PROCESS, 0)\nsys.stdin.readline()'
VIEWERS_MAX = 4


class Service:
    """`bpfpush run` with a collection each second, and a socket in a directory of its own."""

    def __init__(self, interval='1s'):
        self.directory = tempfile.TemporaryDirectory(prefix='bpfpush-test-')
        self.environment = 'RUNTIME_DIRECTORY=' + self.directory.name
        self.path = os.path.join(self.directory.name, 'collections')
        self.config = os.path.join(self.directory.name, 'agent.conf')
        self.interval, self.process = interval, None
        self.configure('')

    def __enter__(self):
        os.chmod(self.directory.name, 0o755)
        self.start()
        return self

    def __exit__(self, *error):
        self.end(signal.SIGTERM)
        self.directory.cleanup()

    def configure(self, more):
        with open(self.config, 'w', encoding='utf-8') as file:
            file.write('[agent]\ninterval = %s\n%s\n[exporter file]\ntype = json\npath = %s/points\n' % (self.interval, more, self.directory.name))

    def start(self):
        with open(os.path.join(self.directory.name, 'log'), 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen([harness.agent(), 'run', '--config=' + self.config], stderr=log,
                                            env=dict(os.environ, RUNTIME_DIRECTORY=self.directory.name))
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.connect().close()
                return
            time.sleep(0.05)
        with open(log.name, encoding='utf-8') as log:
            raise AssertionError('nobody listens; the service said:\n' + log.read())

    def end(self, by):
        if self.process.poll() is None:
            self.process.send_signal(by)
        self.process.wait(PATIENCE_S)

    def connect(self):
        viewer = socket.socket(socket.AF_UNIX)
        try:
            viewer.settimeout(PATIENCE_S)
            viewer.connect(self.path)
        except OSError:
            viewer.close()
            raise
        return viewer

    def top(self, *words, **options):
        """In a pipe."""
        return subprocess.run([harness.agent(), 'top', *words], env=dict(os.environ, RUNTIME_DIRECTORY=self.directory.name),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_S, **options)


def bpf_objects(pid):
    """How many descriptors of BPF objects a process has."""
    n = 0
    for fd in os.listdir('/proc/%d/fd' % pid):
        with contextlib.suppress(FileNotFoundError):
            n += object_id(int(fd), pid) is not None
    return n


def message(viewer):
    """The next one, as bytes."""
    def read(size):
        data = b''
        while len(data) < size:
            more = viewer.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data
    header = read(16)
    return header + read(struct.unpack('=QQ', header)[1] - 16)


class ShownTest(unittest.TestCase):
    def test_its_numbers_are_those_of_the_service(self):
        question = ('--where=syscall.name=getpriority', '--where=unit=*-test-watched-*')
        with Service() as service, Cgroup('watched') as cgroup, \
                cgroup.start([sys.executable, '-c', CALLS % 700], stdin=subprocess.PIPE, text=True) as calls:
            with Screen(100, 40, *question, environment=service.environment) as screen:
                screen.wait_for('by the service', 'every 1 s', '0 rows')
                calls.stdin.write('\n')
                calls.stdin.flush()
                screen.wait_for('/bpfpush-', '1 row')
                self.assertEqual(bpf_objects(screen.pid()), 0)
                self.assertGreater(bpf_objects(service.process.pid), 20)
                screen.keys('s')
                screen.wait_for('since counting began')
                for key in 'Enter', 'Enter':
                    screen.keys(key)
                    screen.wait(lambda text: re.search(r'getpriority +700 ', text), '700 in all')
            # One that comes later has the same.
            with Screen(100, 40, *question, environment=service.environment) as screen:
                screen.wait_for('by the service', '1 row')
                for key in 's', 'Enter', 'Enter':
                    screen.keys(key)
                screen.wait(lambda text: re.search(r'getpriority +700 ', text), '700 in all')
            calls.kill()

    def test_it_needs_no_rights_but_those_to_the_socket(self):
        with Service() as service:
            shown = service.top('--count=2', user=NOBODY, group=0, extra_groups=[])
            self.assertEqual((shown.returncode, shown.stderr), (0, ''))
            self.assertEqual(len(re.findall('(?m)^.* UTC, .*by the service$', shown.stdout)), 2, shown.stdout)
            alone = service.top('--count=1', '--interval=1s', user=NOBODY, group=0, extra_groups=[])
            self.assertEqual((alone.returncode, alone.stdout), (77, ''))
            self.assertIn('without these rights, top can only show what a running service counts', alone.stderr)
            refused = service.top('--count=1', user=NOBODY, group=NOBODY, extra_groups=[])
            self.assertEqual(refused.returncode, 77, refused)
            self.assertIn(service.path + ": Permission denied; run it as root or in the service's group", refused.stderr)

    def test_what_is_unknown_has_a_name(self):
        with Service() as service:
            with Screen(300, 30, '--where=no.such=x', environment=service.environment) as screen:
                screen.wait_for('no series has an attribute "no.such"', '0 rows')
            wrong = service.top('--sort=nothing', '--count=1')
            self.assertEqual((wrong.returncode, wrong.stdout), (64, ''))
            self.assertIn('unknown column "nothing"', wrong.stderr)

    def test_a_plain_table_ends_with_it(self):
        with Service() as service, subprocess.Popen([harness.agent(), 'top'], env=dict(os.environ, RUNTIME_DIRECTORY=service.directory.name),
                                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as top:
            self.assertIn('by the service', top.stdout.readline())
            service.end(signal.SIGTERM)
            self.assertEqual(top.communicate(timeout=PATIENCE_S)[1], 'stopped: the service has ended\n')
            self.assertEqual(top.returncode, 69)

    def test_it_says_that_the_service_hangs(self):
        with Service() as service, Screen(80, 24, environment=service.environment) as screen:
            screen.wait_for('by the service', 'cpu%')
            service.process.send_signal(signal.SIGSTOP)
            screen.wait_for('nothing from the service for')
            service.process.send_signal(signal.SIGCONT)
            screen.wait(lambda text: 'nothing from' not in text, 'new numbers')

    def test_collectors_without_units_show_all_that_they_have(self):
        with Service() as service, Screen(100, 30, environment=service.environment) as screen:
            screen.wait_for('by the service', 'cpu%')
            for collectors, there, gone in (('softirq', 'bpfpush.softirq.duration', 'cpu%'), ('scheduler softirq', 'cpu%', 'bpfpush.softirq')):
                service.end(signal.SIGTERM)
                service.configure('collectors = ' + collectors)
                service.start()
                screen.wait(lambda text, there=there, gone=gone: there in text and gone not in text, there)

    def test_it_waits_for_the_next_service(self):
        with Service() as service, Screen(100, 30, environment=service.environment) as screen:
            for by in signal.SIGTERM, signal.SIGKILL:
                screen.wait_for('by the service', 'cpu%', 'no unit')
                service.end(by)
                screen.wait_for('the service has ended')
                service.start()
                screen.wait(lambda text: 'cpu%' in text and 'no unit' in text and 'has ended' not in text, 'the next one')
            screen.keys('q')
            screen.wait_for('it has ended')
            self.assertEqual(screen.file('status'), '0\n')

    def test_what_the_service_does_not_do_top_does(self):
        for key, there in (('+', 'cpu%'), ('p', 'pid')):
            with self.subTest(key), Service() as service, Screen(120, 30, environment=service.environment) as screen:
                screen.wait_for('by the service', 'cpu%')
                screen.keys(key)
                screen.wait_for(', agent ', there)
                self.assertNotIn('by the service', screen.text())
                self.assertGreater(bpf_objects(screen.pid()), 20)

    def test_a_pause_is_not_lost(self):
        with Service() as service, Screen(100, 30, '--limit=10', environment=service.environment) as screen:
            screen.wait_for('by the service', 'cpu%')
            screen.keys('Space')
            text = screen.wait(lambda text: paused_s(text) >= 2, 'more than an interval')
            later = screen.wait(lambda now: paused_s(now) > paused_s(text), 'a longer pause')
            self.assertEqual(self.table_of(later), self.table_of(text))
            screen.keys('Space')
            screen.wait(lambda now: 'paused' not in now and self.table_of(now) != self.table_of(text), 'new numbers')

    @staticmethod
    def table_of(text):
        """The rows: what the service complains of may come and go above them."""
        return [line for line in text.partition('cpu%')[2].split('\n') if line]


class SocketTest(unittest.TestCase):
    def test_who_does_not_read_holds_up_nobody(self):
        with Service() as service:
            lazy, reader = service.connect(), service.connect()
            sizes = [len(message(reader)) for _ in range(6)]
            self.assertGreater(min(sizes), 1000)
            for _ in range(2):  # what waited for it, and then what is new
                self.assertGreater(len(message(lazy)), 1000)
            lazy.close()
            self.assertGreater(len(message(reader)), 1000)
            reader.close()

    def test_there_is_room_for_some(self):
        with Service() as service:
            viewers = [service.connect() for _ in range(VIEWERS_MAX)]
            for viewer in viewers:
                message(viewer)
            with service.connect() as another:
                self.assertEqual(another.recv(1), b'')
            self.assertIn(', agent ', service.top('--count=1').stdout)  # it counts by itself
            refused = service.top('--count=1', user=NOBODY, group=0, extra_groups=[])
            self.assertEqual((refused.returncode, refused.stderr), (69, 'stopped: too many others watch the service\n'))
            viewers.pop().close()
            patience.wait(lambda: self.is_told(service), 'a place for another')
            for viewer in viewers:
                viewer.close()

    @staticmethod
    def is_told(service):
        with service.connect() as viewer, contextlib.suppress(EOFError, ConnectionResetError):
            return message(viewer)

    def test_only_the_group_may_connect(self):
        with Service() as service:
            self.assertEqual(os.stat(service.path).st_mode & 0o777, 0o660)


class HostileTest(unittest.TestCase):
    def answer(self, data, *words, **options):
        """Top, where what listens is not the service."""
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory, socket.socket(socket.AF_UNIX) as listener:
            os.chmod(directory, 0o755)
            listener.bind(os.path.join(directory, 'collections'))
            os.chmod(os.path.join(directory, 'collections'), 0o666)
            listener.listen()
            with subprocess.Popen([harness.agent(), 'top', *words], env=dict(os.environ, RUNTIME_DIRECTORY=directory),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as top:
                listener.settimeout(PATIENCE_S)
                viewer, _ = listener.accept()
                with viewer, contextlib.suppress(BrokenPipeError):
                    viewer.sendall(data)
                    shown, said = top.communicate(timeout=PATIENCE_S)
                return top.returncode, shown, said

    def test_another_version_is_left_alone(self):
        with Service() as service:
            viewer = service.connect()
            right = message(viewer)
            viewer.close()
        size = len(right)
        for data in (b'x' * 64, struct.pack('=QQ', 7, size) + right[16:], right[:8] + struct.pack('=Q', 1 << 62),
                     right[:8] + struct.pack('=Q', 3), right[:16] + b'\xff' * (size - 16), right[:16] + bytes(size - 16)):
            with self.subTest(data[:16]):
                code, shown, said = self.answer(data, '--count=1')
                self.assertEqual((code, said), (0, ''))
                self.assertIn(', agent ', shown)  # it counts by itself
        code, shown, said = self.answer(b'x' * 64, user=NOBODY, group=NOBODY, extra_groups=[])
        self.assertEqual((code, shown), (69, ''))
        self.assertIn('what the service sends cannot be read', said)

    def test_what_it_says_obeys_no_terminal(self):
        with Service() as service:
            viewer = service.connect()
            right = message(viewer)
            viewer.close()
        # The header, two numbers, the problems, and a batch without metrics: its time, the one before, how many.
        begin = right[16:right.index(b'\0', 16)]
        body = begin + b'fails \x1b]0;x\x07\r\x08\xff\xe2\x80\xae!\0' + b'\x02\x01\x00'
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.join(directory, 'collections'))
            listener.listen()
            listener.settimeout(PATIENCE_S)
            with Screen(100, 30, environment='RUNTIME_DIRECTORY=' + directory) as screen, listener.accept()[0] as viewer:
                viewer.sendall(right[:8] + struct.pack('=Q', 16 + len(body)) + body)
                screen.wait_for('fails ?]0;x?????!')


if __name__ == '__main__':
    if not shutil.which('tmux'):
        print('skipped: needs tmux')
        sys.exit(harness.SKIP_STATUS)
    harness.main()
