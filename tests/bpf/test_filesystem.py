# SPDX-License-Identifier: Apache-2.0
"""The filesystem collector: a known number of operations on two file systems. Not where the kernel refuses fexit and kprobes."""
import os
import sys
import tempfile
import unittest

import harness
from harness import Cgroup, check_counted, once

DURATION = 'bpfpush.filesystem.operation.duration'
OPERATION = 'bpfpush.filesystem.operation'
TYPE = 'system.filesystem.type'
PLACES = {'/var/tmp': 1, '/dev/shm': 2, '/run': 3}  # and how often each operation is done there
WORKLOAD = """
import os, sys

def move(procs):
    with open(procs, 'w') as file:
        file.write('0')

def work(place, times):
    for i in range(times):
        fd = os.open('%s/%d' % (place, i), os.O_RDWR | os.O_CREAT)
        for _ in range(2):
            os.write(fd, b'some')
        for _ in range(3):
            os.pwritev(fd, [b'a', b'b'], 0)
        for _ in range(4):
            os.pread(fd, 4, 0)
        for _ in range(5):
            os.preadv(fd, [bytearray(1)], 0)
        os.fsync(fd)
        os.fdatasync(fd)
        os.close(fd)
    # None of these is on a regular file, and none of these is open.
    os.read(os.open('/proc/uptime', os.O_RDONLY), 9)
    os.read(os.open('/dev/zero', os.O_RDONLY), 9)
    a, b = os.pipe()
    os.write(b, b'x')
    os.read(a, 1)
    os.path.exists(place + '/none')

move(sys.argv[1])
for place, times in zip(sys.argv[3::2], sys.argv[4::2]):
    work(place, int(times))
move(sys.argv[2])
"""


def type_of(place):
    """As /proc/mounts has it: the file system mounted closest above."""
    with open('/proc/mounts') as file:
        mounts = {line.split()[1]: line.split()[2] for line in file}
    while place not in mounts:
        place = os.path.dirname(place)
    return mounts[place]


class FileSystemTest(unittest.TestCase):
    def count(self, params=None):
        words, self.expected = [], {}
        for place, times in PLACES.items():
            if not os.path.isdir(place):
                continue
            words += [self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-', dir=place)), 100 * times]
            for operation, n in {'open': 1, 'read': 9, 'write': 5, 'fsync': 2}.items():
                key = (type_of(place), operation)
                self.expected[key] = self.expected.get(key, 0) + n * 100 * times
        with Cgroup('files') as cgroup, Cgroup('after') as after:
            try:
                self.seen = once(['filesystem'], [sys.executable, '-c', WORKLOAD, cgroup.procs, after.procs] + words, params)
                return self.seen.of(cgroup)
            except AssertionError as error:
                if 'the kernel refused all programs that count' in str(error):
                    self.assertIn('status 69', str(error))
                    self.skipTest('needs a kernel that allows fexit or kprobes')
                raise

    def test_every_operation_is_timed(self):
        seen = self.count()
        counts = {(type_, operation): seen.total(DURATION, **{TYPE: type_, OPERATION: operation})['count']
                  for type_ in seen.by(TYPE) for operation in seen.by(OPERATION)}
        self.assertEqual({key for key, n in counts.items() if n}, set(self.expected))
        for key, truth in self.expected.items():
            check_counted(self, counts[key], truth, self.seen, 'filesystem')
        self.assertTrue(0 < seen.total(DURATION)['sum'] < seen.length_s())

    def test_operations_belong_to_their_process(self):
        seen = self.count({'filesystem': {'per_process': 'yes'}})
        self.assertEqual(len(seen.by('process.pid')), 1)
        check_counted(self, seen.total(DURATION)['count'], sum(self.expected.values()), self.seen, 'filesystem')


if __name__ == '__main__':
    harness.main()
