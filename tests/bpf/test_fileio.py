# SPDX-License-Identifier: Apache-2.0
"""Files: operations, bytes and errors of regular files, exactly, and of nothing else."""
import shutil
import tempfile
import unittest

import harness
from harness import ANY, Cgroup, once, remembered, workload

OPERATIONS = 'bpfpush.file.operations'
IO = 'bpfpush.file.io'
DURATION = 'bpfpush.file.operation.duration'
DISK = 'process.disk.io'
OPERATION = 'bpfpush.file.operation'
DIRECTION = 'disk.io.direction'
ERROR = 'error.type'


class FileioTest(unittest.TestCase):
    def setUp(self):
        # /var/tmp is on a disk where /tmp is in memory; the workload goes there as another user too.
        self.directory = tempfile.mkdtemp(prefix='bpfpush-test-', dir='/var/tmp')
        self.addCleanup(shutil.rmtree, self.directory)
        shutil.os.chmod(self.directory, 0o755)

    @remembered
    def run_workload(self, params=None, agent=None):
        with Cgroup('fileio') as cgroup:
            seen = once(['fileio'], [workload('file'), cgroup.procs, self.directory],
                        {'agent': agent or {}, 'fileio': params or {}})
            return seen.of(cgroup), seen.expected

    def check_counts(self, mine, expected):
        for operation in ('read', 'write', 'open', 'fsync'):
            with self.subTest(operation):
                self.assertEqual(mine.total(OPERATIONS, **{OPERATION: operation, ERROR: None}),
                                 expected[operation])
        for direction in ('read', 'write'):
            with self.subTest(direction + '_bytes'):
                self.assertEqual(mine.total(IO, **{DIRECTION: direction}), expected[direction + '_bytes'])

    def test_operations_and_bytes_of_regular_files_are_counted(self):
        self.check_counts(*self.run_workload())

    def test_failures_are_counted_by_error(self):
        mine, expected = self.run_workload()
        seen = {(point['attributes'][OPERATION], point['attributes'][ERROR]): point['total']
                for point in mine.select(OPERATIONS, **{ERROR: ANY})}
        self.assertEqual(seen, {tuple(key.split('_')): count for key, count in expected.items()
                                if '_E' in key and count})

    def test_disk_bytes_are_those_of_the_kernel(self):
        mine, expected = self.run_workload()
        self.assertGreater(expected['disk_write_bytes'], 0)
        for direction in ('read', 'write'):
            with self.subTest(direction):
                self.assertEqual(mine.total(DISK, **{DIRECTION: direction}),
                                 expected['disk_%s_bytes' % direction])

    def test_durations_are_measured_on_request_and_one_an_operation(self):
        mine, expected = self.run_workload({'duration': 'yes'})
        self.check_counts(mine, expected)
        for operation in ('read', 'write', 'open', 'fsync'):
            with self.subTest(operation):
                timed = mine.total(DURATION, **{OPERATION: operation})
                self.assertEqual(timed['count'], mine.total(OPERATIONS, **{OPERATION: operation}))
                self.assertGreater(timed['sum'], 0)

    def test_without_a_request_nothing_is_timed(self):
        mine, _ = self.run_workload({'duration': 'no'})
        self.assertEqual(mine.select(DURATION), [])

    def test_what_was_done_before_the_start_is_not_counted(self):
        with Cgroup('before') as cgroup:
            done = cgroup.run([workload('file'), cgroup.procs, self.directory], stdout=-1, check=True)
            self.assertIn(b'disk_write_bytes', done.stdout)
            seen = once(['fileio'], ['true']).of(cgroup)
            self.assertEqual([point for point in seen if point['total']], [])

    def test_a_process_has_its_own_numbers_on_request(self):
        # most of them are gone when the agent reads
        mine, expected = self.run_workload({'per_process': 'yes'}, {'brief_processes': '1000'})
        self.check_counts(mine, expected)
        by_process = mine.by('process.pid', IO, **{DIRECTION: 'write'})
        self.assertEqual(sorted(by_process.values())[-2], 300)  # 200 children wrote that much each
        self.assertEqual(len([bytes_ for bytes_ in by_process.values() if bytes_ == 300]), 200)


if __name__ == '__main__':
    harness.main()
