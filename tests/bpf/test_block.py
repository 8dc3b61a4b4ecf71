# SPDX-License-Identifier: Apache-2.0
"""Disks: operations of a loop device that nobody else uses, equal to what the kernel counts in /sys/block/NAME/stat."""
import collections
import errno
import fcntl
import os
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import check_counted, once
from hidden import run_and_find_hidden, run_unhidden

DURATION, QUEUE = 'bpfpush.disk.operation.duration', 'bpfpush.disk.operation.queue.duration'
SIZE, UNTIMED = 'bpfpush.disk.operation.size', 'bpfpush.disk.operation.untimed'
OPERATION, DEVICE, ERROR = 'bpfpush.disk.operation', 'system.device', 'error.type'
LOOP_CTL_GET_FREE, LOOP_SET_FD, LOOP_CLR_FD, LOOP_SET_DIRECT_IO = 0x4c82, 0x4c00, 0x4c01, 0x4c08
SECTOR = 512
# In /sys/block/NAME/stat (Documentation/block/stat.rst): where an operation's count, sectors and milliseconds are.
STAT = {'read': (0, 2, 3), 'write': (4, 6, 7), 'discard': (11, 13, 14), 'flush': (15, None, 16)}
BEGIN, END = 'block/block_rq_issue', 'block/block_rq_complete'
LOOP_MAJOR = 7
# In what ftrace says of an end: the disk, the operation, which has an F before it if a flush comes first, and sectors.
ENDED = r'(\d+,\d+) F?([RWDF])\S* .* \+ (\d+) '
LETTERS = {'read': 'R', 'write': 'W', 'discard': 'D', 'flush': 'F'}

# read, write N SIZE: of different places, past the page cache. buffered, discard SIZE. fsync N. With "?" it may fail.
WORKLOAD = '''
import fcntl, mmap, os, struct, sys
path, words = sys.argv[1], sys.argv[2:]
direct, plain = os.open(path, os.O_RDWR | os.O_DIRECT), os.open(path, os.O_RDWR)

def work(what, n):
    if what in ('read', 'write'):
        call, buffer = getattr(os, 'p' + what + 'v'), mmap.mmap(-1, int(words.pop(0)))
        for i in range(n):
            call(direct, [buffer], i * len(buffer))
    elif what == 'buffered':
        os.pwrite(plain, b'x' * n, 0)
        os.fsync(plain)
    elif what == 'discard':
        fcntl.ioctl(plain, 0x1277, struct.pack('QQ', 0, n))
    elif what == 'fsync':
        for i in range(n):
            os.pwritev(direct, [mmap.mmap(-1, 4096)], 0)
            os.fsync(plain)

while words:
    what, n = words.pop(0), int(words.pop(0))
    try:
        work(what.rstrip('?'), n)
    except OSError as error:
        assert what.endswith('?'), error
'''


DISKS = r'''
import json, os, re

def stats():
    """
    {disk: the words of its stat}, of those that are no loop devices, and count. Requests go to the paths of an NVMe
    disk, where it has paths: nvme0c0n1 and nvme0c1n1 to nvme0n1.
    """
    seen, names = {}, os.listdir('/sys/block')
    paths = {name: re.sub(r'^(nvme\d+)c\d+(n\d+)$', r'\1\2', name) for name in names}
    with_paths = {disk for name, disk in paths.items() if name != disk}
    for name, disk in paths.items():
        if name in with_paths or name.startswith(('loop', 'zram', 'dm-', 'md')):
            continue
        with open('/sys/block/%s/stat' % name) as file:
            words = [int(word) for word in file.read().split()]
        seen[disk] = [old + new for old, new in zip(seen.get(disk, [0] * len(words)), words)]
    return seen

def grown(before):
    after = stats()
    return {name: [n - before[name][i] for i, n in enumerate(after[name])] for name in after if after[name] != before[name]}

before = stats()
'''
SHOW = "print(json.dumps(grown(before)), flush=True)"


def devices_of(name, devices):
    """Those of "MAJOR,MINOR" that are the disk, or may be a path to it: no file has the number of a path."""
    with open('/sys/block/%s/dev' % name) as file:
        own = file.read().strip().replace(':', ',')
    return {own, *(device for device in devices if not os.path.exists('/sys/dev/block/' + device.replace(',', ':')))}


def stat(name):
    with open('/sys/block/%s/stat' % name) as file:
        return [int(word) for word in file.read().split()]


class Loop:
    """A loop device over a new file in a directory."""

    def __init__(self, directory, n_bytes):
        self.file = tempfile.TemporaryFile(dir=directory)
        self.file.truncate(n_bytes)

    def __enter__(self):
        try:
            with open('/dev/loop-control', 'rb') as control:
                while not self.take(fcntl.ioctl(control, LOOP_CTL_GET_FREE)):
                    pass
        except OSError as problem:
            self.file.close()
            raise unittest.SkipTest('needs loop devices: %s' % problem)
        self.set('iostats', '1')
        return self

    def take(self, number):
        """False: somebody else was faster."""
        self.name = 'loop%d' % number
        self.device = open('/dev/' + self.name, 'r+b', buffering=0)
        try:
            fcntl.ioctl(self.device, LOOP_SET_FD, self.file.fileno())
        except OSError as problem:
            self.device.close()
            if problem.errno != errno.EBUSY:
                raise
            return False
        return True

    def set(self, key, value):
        with open('/sys/block/%s/queue/%s' % (self.name, key), 'w') as file:
            file.write(value)

    def __exit__(self, *error):
        self.set('iostats', '1')
        fcntl.ioctl(self.device, LOOP_CLR_FD)
        self.device.close()
        self.file.close()


class BlockTest(unittest.TestCase):
    def count(self, loop, *work):
        """What was counted, and how /sys/block/NAME/stat grew."""
        def run():
            before = stat(loop.name)
            seen = once(['block'], [sys.executable, '-c', WORKLOAD, '/dev/' + loop.name, *work])
            return seen, [now - then for now, then in zip(stat(loop.name), before)]

        self.seen, grown = run_unhidden(run, BEGIN, END, about='%d,%s ' % (LOOP_MAJOR, loop.name.removeprefix('loop')))
        self.assertEqual(self.seen.total(UNTIMED), 0)
        return self.seen.select(**{DEVICE: loop.name}), grown

    def check(self, mine, grown, expected=None):
        grown[STAT['write'][0]] -= grown[STAT['flush'][0]]  # the kernel counts a flush as a write of nothing, too
        for operation, (count, sectors, _) in STAT.items():
            with self.subTest(operation):
                sizes = mine.total(SIZE, **{OPERATION: operation}) or {'count': 0, 'sum': 0}
                times = mine.total(DURATION, **{OPERATION: operation}) or {'count': 0}
                waits = mine.total(QUEUE, **{OPERATION: operation}) or {'count': 0}  # a flush is never queued
                check_counted(self, sizes['count'], grown[count], self.seen, 'block')
                n_bytes = grown[sectors] * SECTOR if sectors else 0
                check_counted(self, sizes['sum'], n_bytes, self.seen, 'block', each=n_bytes)
                self.assertEqual((times['count'], waits['count']), (sizes['count'], sizes['count'] if sectors else 0))
                if expected:
                    self.assertEqual(grown[count], expected.get(operation, 0))

    def check_times(self, mine, grown):
        """The kernel takes its own time at the end of a request after it has ended the request's parts."""
        took_ms = sum(mine.total(name, **{OPERATION: 'read'})['sum'] for name in (DURATION, QUEUE)) * 1e3
        kernel_ms = grown[STAT['read'][2]]
        self.assertLess(took_ms, kernel_ms + 1)
        self.assertGreater(took_ms, kernel_ms * 0.4 - 1)

    def test_other_disks(self):
        """
        They have other users, too: what is counted lies between what /sys/block/NAME/stat says inside and around that.
        The kernel also counts the ends that it runs no program for.
        """
        with tempfile.NamedTemporaryFile(dir='/var/tmp') as file:
            file.truncate(4 << 20)
            around = {}
            exec(DISKS, around)
            before = around['stats']()
            command = [sys.executable, '-c', DISKS + WORKLOAD + SHOW, file.name, 'write', '100', '8192', 'fsync', '3', 'read', '100', '8192']
            seen, found = run_and_find_hidden(lambda: once(['block'], command), END, ENDED)
            most = around['grown'](before)
        hidden = collections.Counter()
        for match in found:
            hidden[match[1], match[2], 'count'] += 1
            hidden[match[1], match[2], 'sectors'] += int(match[3])
        self.assertGreaterEqual(sum(least[0] for least in seen.expected.values()), 100)
        for name, least in seen.expected.items():
            devices = devices_of(name, {device for device, _, _ in hidden})
            for operation, (count, sectors, _) in STAT.items():
                least[count] -= sum(hidden[device, LETTERS[operation], 'count'] for device in devices)
                if sectors:
                    least[sectors] -= sum(hidden[device, LETTERS[operation], 'sectors'] for device in devices)
                sizes = seen.total(SIZE, **{OPERATION: operation, DEVICE: name}) or {'count': 0, 'sum': 0}
                if operation != 'write':
                    self.assertTrue(least[count] <= sizes['count'] <= most[name][count], (name, operation, sizes))
                if sectors:
                    self.assertTrue(least[sectors] <= sizes['sum'] / SECTOR <= most[name][sectors], (name, operation, sizes))

    def test_each_operation_is_counted_with_its_bytes(self):
        with Loop('/var/tmp', 64 << 20) as loop:
            mine, grown = self.count(loop, 'read', '300', '4096', 'write', '200', '16384', 'fsync', '5', 'discard', str(1 << 20))
            self.check(mine, grown, {'read': 300, 'write': 205, 'flush': 5, 'discard': 1})
            self.check_times(mine, grown)
            buckets = mine.total(SIZE, **{OPERATION: 'read'})['buckets']
            self.assertEqual({bound: n for bound, n in buckets.items() if n}, {4096: 300})

    def test_merged_writes_are_one_operation(self):
        for scheduler in ('none', 'mq-deadline'):
            with self.subTest(scheduler), Loop('/var/tmp', 64 << 20) as loop:
                try:
                    loop.set('scheduler', scheduler)
                except OSError as problem:
                    self.skipTest('needs the scheduler %s: %s' % (scheduler, problem))
                mine, grown = self.count(loop, 'buffered', str(32 << 20))
                self.assertLess(grown[STAT['write'][0]], (32 << 20) // 4096)
                self.check(mine, grown)
                self.assertEqual(mine.total(SIZE, **{OPERATION: 'write'})['sum'], 32 << 20)

    def test_an_operation_in_parts_is_one(self):
        """A read past the end of the file below: the driver completes what there is, begins again, and fails."""
        with Loop('/var/tmp', 64 << 20) as loop:
            try:
                fcntl.ioctl(loop.device, LOOP_SET_DIRECT_IO, 1)
            except OSError as problem:
                self.skipTest('needs a file system that can read past the page cache: %s' % problem)
            loop.file.truncate(12288)
            mine, grown = self.count(loop, 'read?', '1', '65536')
            self.check(mine, grown, {'read': 1})
            self.assertEqual(mine.total(SIZE, **{ERROR: 'EIO'}), mine.total(SIZE))

    def test_a_failed_operation_has_its_error(self):
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory:
            subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory], check=True)
            try:
                with Loop(directory, 1 << 20) as loop:
                    mine, grown = self.count(loop, 'write?', '3', str(64 << 10))
                    self.check(mine, grown, {'write': 2})
                    self.assertEqual(mine.total(SIZE, **{ERROR: 'ENOSPC'})['count'], 1)
                    self.assertEqual(mine.total(DURATION, **{ERROR: 'ENOSPC'})['count'], 1)
            finally:
                subprocess.run(['umount', directory], check=True)

    def test_a_disk_that_counts_nothing_has_no_waits(self):
        with Loop('/var/tmp', 1 << 20) as loop:
            loop.set('scheduler', 'none')
            loop.set('iostats', '0')
            mine, _ = self.count(loop, 'read', '10', '4096')
            self.assertEqual(mine.total(DURATION)['count'], 10)
            self.assertFalse(mine.total(QUEUE))


if __name__ == '__main__':
    harness.main()
