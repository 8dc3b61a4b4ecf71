# SPDX-License-Identifier: Apache-2.0
"""Operations of files and disks, an event for each: the workload's own list, and those alone that take long enough."""
import json
import statistics
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import OWNER, PATIENCE_S, Cgroup, agent
from hidden import run_unhidden
from shown import show
from test_block import BEGIN, END, LOOP_MAJOR, SECTOR, Loop, stat
from test_block import WORKLOAD as DISK_WORKLOAD
from test_filesystem import type_of

# Works on a file in a directory, in a cgroup, and writes what it did: operation, file, offset, bytes, error.
WORKLOAD = '''
import errno, json, os, sys
directory, procs, report, times = sys.argv[1:]
done = []
with open(procs, 'w') as file:
    file.write('0')
for i in range(int(times)):
    name = 'file %d' % i
    fd = os.open(directory + '/' + name, os.O_RDWR | os.O_CREAT)
    done.append(['open', name, 0, 0, None])
    done.append(['write', name, 4096, os.pwrite(fd, b'x' * 1000, 4096), None])
    done.append(['write', name, 8, os.pwritev(fd, [b'ab', b'c'], 8), None])
    done.append(['read', name, 5000, len(os.pread(fd, 1000, 5000)), None])
    done.append(['read', name, 1 << 40, os.preadv(fd, [bytearray(5)], 1 << 40), None])
    os.fsync(fd)
    done.append(['fsync', name, 0, 0, None])
    os.close(fd)
    fd = os.open(directory + '/' + name, os.O_RDONLY)
    done.append(['open', name, 0, 0, None])
    try:
        os.write(fd, b'x')
    except OSError as error:
        done.append(['write', name, 0, 0, errno.errorcode[error.errno]])
    os.close(fd)
# Neither is a regular file.
os.read(os.open('/dev/zero', os.O_RDONLY), 9)
with open(procs.replace('/cgroup.procs', '/../cgroup.procs'), 'w') as file:
    file.write('0')
json.dump(done, open(report, 'w'))
'''
FILE = 'bpfpush.file.operation'
DISK = 'bpfpush.disk.operation'


class SlowTest(unittest.TestCase):
    def events(self, min_duration, times=20):
        """-> (events, what the workload did)"""
        with Cgroup('slow') as cgroup, tempfile.TemporaryDirectory(prefix='bpfpush-test-', dir='/var/tmp') as directory, \
                tempfile.NamedTemporaryFile() as report:
            try:
                output, errors = show('slow', cgroup, ['--format=json', '--set=slow.rate_limit=0', '--set=slow.min_duration=' + min_duration],
                                      WORKLOAD, directory, cgroup.procs, report.name, str(times))
            except subprocess.CalledProcessError as error:
                if b'the kernel refused all programs' in error.stderr:
                    self.skipTest('needs a kernel that allows fexit or kprobes')
                self.fail(error.stderr.decode())
            self.assertEqual(errors, '')
            events = [json.loads(line) for line in output.splitlines()]
            for event in events:
                self.assertEqual((event['event'], event['severity'], event['attributes'][OWNER]), ('file.operation', 'WARN', cgroup.path))
                self.assertEqual(event['attributes']['system.filesystem.type'], type_of('/var/tmp'))
            return [event['attributes'] for event in events], json.load(report)

    def test_each_is_there_with_its_place_and_result(self):
        events, truth = self.events('0')
        self.assertEqual([[at['bpfpush.filesystem.operation'], at['file.name'], at[FILE + '.offset'], at[FILE + '.size'],
                           at.get('error.type')] for at in events if at['file.name'].startswith('file ')], truth)
        self.assertEqual(len({(at['process.pid'], at['thread.name']) for at in events}), 1)
        self.assertTrue(all(0 < at[FILE + '.duration'] < PATIENCE_S for at in events))

    def test_only_those_that_take_long_enough(self):
        events, truth = self.events('0')
        middle_ns = int(statistics.median(at[FILE + '.duration'] for at in events) * 1e9)
        slow, _ = self.events('%dns' % middle_ns)
        self.assertTrue(slow)
        self.assertGreaterEqual(min(at[FILE + '.duration'] for at in slow), middle_ns / 1e9)
        self.assertLess(len(slow), len(events))
        self.assertEqual(self.events('1h')[0], [])


class DiskTest(unittest.TestCase):
    def events(self, loop, min_duration, *work):
        def run():
            before = stat(loop.name)
            done = subprocess.run([agent(), 'events', '--config=/dev/null', 'disk', '--where=system.device=' + loop.name, '--format=json',
                                   '--set=disk.rate_limit=0', '--set=disk.min_duration=' + min_duration, '--whole-machine', '--',
                                   sys.executable, '-c', DISK_WORKLOAD, '/dev/' + loop.name, *work],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
            self.assertEqual(done.stderr, '')
            events = [json.loads(line) for line in done.stdout.splitlines()]
            return [event['attributes'] for event in events], [now - then for now, then in zip(stat(loop.name), before)]

        return run_unhidden(run, BEGIN, END, about='%d,%s ' % (LOOP_MAJOR, loop.name.removeprefix('loop')))

    def test_each_is_there_with_its_place_and_times(self):
        with Loop('/var/tmp', 64 << 20) as loop:
            events, grown = self.events(loop, '0', 'read', '100', '8192', 'write', '50', '16384')
        self.assertEqual([[at[DISK], at[DISK + '.sector'], at[DISK + '.size']] for at in events],
                         [['read', i * 8192 // SECTOR, 8192] for i in range(100)] +
                         [['write', i * 16384 // SECTOR, 16384] for i in range(50)])
        took_ms = sum(at[DISK + '.duration'] + at[DISK + '.queue_duration'] for at in events) * 1e3
        self.assertTrue(0 < took_ms < grown[3] + grown[7] + 2)  # whole milliseconds each

    def test_only_those_that_take_long_enough(self):
        with Loop('/var/tmp', 1 << 20) as loop:
            self.assertEqual(self.events(loop, '1h', 'read', '20', '4096')[0], [])
            events, _ = self.events(loop, '0', 'read', '20', '4096')
            middle_ns = int(statistics.median(at[DISK + '.duration'] + at[DISK + '.queue_duration'] for at in events) * 1e9)
            for at in self.events(loop, '%dns' % middle_ns, 'read', '20', '4096')[0]:
                self.assertGreaterEqual(at[DISK + '.duration'] + at[DISK + '.queue_duration'], middle_ns / 1e9)

    def test_a_failed_one_has_its_error(self):
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory:
            subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory], check=True)
            try:
                with Loop(directory, 1 << 20) as loop:
                    events, _ = self.events(loop, '0', 'write?', '3', str(64 << 10))
                self.assertEqual([at.get('error.type') for at in events], [None, 'ENOSPC'])
            finally:
                subprocess.run(['umount', directory], check=True)


if __name__ == '__main__':
    harness.main()
