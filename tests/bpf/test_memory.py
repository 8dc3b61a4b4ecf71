# SPDX-License-Identifier: Apache-2.0
"""Memory: page faults equal to getrusage(), OOM kills and reclaim stalls of a small memory cgroup."""
import os
import re
import subprocess
import tempfile
import time
import unittest

import harness
from harness import Cgroup, once, workload

FAULTS = 'process.paging.faults'
TYPE = 'system.paging.fault.type'
KILLS = 'bpfpush.memory.oom_kills'
RECLAIM = 'bpfpush.memory.reclaim.duration'
LIMIT_BYTES = 16 << 20  # as in workload-memory.c


def memory_root():
    """Of cgroup1, whose limits can be set whatever the v2 hierarchy has. None: not mounted."""
    place = '/sys/fs/cgroup/memory'
    return place if os.path.exists(place + '/memory.limit_in_bytes') else None


class MemoryCgroup:
    """A cgroup1 with a limit on memory (swap included, where it is counted)."""

    def __init__(self):
        self.directory = '%s/bpfpush-test-%d' % (memory_root(), os.getpid())
        self.procs = self.directory + '/cgroup.procs'

    def __enter__(self):
        os.mkdir(self.directory)
        for name in ('memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'):
            if os.path.exists(self.directory + '/' + name):
                with open(self.directory + '/' + name, 'w') as file:
                    file.write(str(LIMIT_BYTES))
        return self

    def read(self, name):
        with open(self.directory + '/' + name) as file:
            return file.read()

    def __exit__(self, *error):
        os.rmdir(self.directory)


class Trace:
    """The kernel's own trace of two events, as seconds from one to the other, by process."""

    def __init__(self, begin, end):
        self.events = [begin, end]

    def __enter__(self):
        self.mount = tempfile.mkdtemp(prefix='bpfpush-test-')
        try:
            subprocess.run(['mount', '-t', 'tracefs', 'tracefs', self.mount], check=True)
            self.directory = '%s/instances/bpfpush-test-%d' % (self.mount, os.getpid())
            os.mkdir(self.directory)
        except (OSError, subprocess.CalledProcessError) as error:
            raise unittest.SkipTest('needs tracefs: %s' % error)
        for event in self.events:
            with open('%s/events/vmscan/%s/enable' % (self.directory, event), 'w') as file:
                file.write('1')
        return self

    def durations(self, pid):
        begin, durations = None, []
        with open(self.directory + '/trace') as file:
            for line in file:
                found = re.match(r'.*-(\d+) +\[.* ([0-9.]+): (\w+): ', line)
                if not found or int(found[1]) != pid:
                    continue
                if found[3] == self.events[0]:
                    begin = float(found[2])
                else:
                    durations.append(float(found[2]) - begin)
        return durations

    def __exit__(self, *error):
        os.rmdir(self.directory)
        subprocess.run(['umount', self.mount], check=True)
        os.rmdir(self.mount)


class FaultsTest(unittest.TestCase):
    def run_workload(self, mode, n, params=None):
        with Cgroup('memory') as cgroup:
            seen = once(['memory'], [workload('memory'), cgroup.directory, mode, n],
                        {'memory': params or {}})
            return seen.of(cgroup), seen.expected

    def check(self, mine, expected):
        self.assertEqual(mine.total(FAULTS, **{TYPE: 'minor'}), expected['minor'])
        self.assertEqual(mine.total(FAULTS, **{TYPE: 'major'}), expected['major'])

    def check_rusage(self, expected):
        self.assertEqual(expected['rusage_minor'], expected['minor'])
        self.assertEqual(expected['rusage_major'], expected['major'])

    def test_fresh_pages_are_minor_faults(self):
        mine, expected = self.run_workload('minor', 1000)
        self.assertGreaterEqual(expected['forced_minor'], 1000)
        self.assertEqual(expected['major'], 0)
        self.check(mine, expected)
        self.check_rusage(expected)

    def test_pages_that_must_be_read_are_major_faults(self):
        mine, expected = self.run_workload('major', 500)
        if expected['forced_major'] < 500:
            self.skipTest('the file system of /var/tmp keeps its pages: %d of 500 faults were major'
                          % expected['forced_major'])
        self.check(mine, expected)
        self.check_rusage(expected)

    def test_children_that_exit_at_once_are_counted(self):
        mine, expected = self.run_workload('short', 200)
        self.assertGreaterEqual(expected['forced_minor'], 200 * 20)
        self.check(mine, expected)
        self.check_rusage(expected)

    def test_a_process_that_lives_on_is_counted(self):
        mine, expected = self.run_workload('hold', 500)
        self.assertGreaterEqual(expected['forced_minor'], 500)
        self.check(mine, expected)

    def test_a_process_has_its_own_numbers_on_request(self):
        mine, expected = self.run_workload('short', 10, {'per_process': 'yes', 'fault_counts_slots': 4096})
        self.check(mine, expected)
        by_process = mine.by('process.pid', FAULTS, **{TYPE: 'minor'})
        self.assertEqual(len(by_process), 10)
        self.assertGreaterEqual(min(by_process.values()), 20)

    def test_what_was_before_is_not_counted(self):
        with Cgroup('memory') as cgroup:
            old = cgroup.start(['sleep', '60'])
            time.sleep(0.2)
            seen = once(['memory'], ['true']).of(cgroup)
            old.kill()
            old.wait()
            self.assertEqual(seen.total(FAULTS), 0)


@unittest.skipIf(memory_root() is None, 'needs the memory hierarchy of cgroup1 at /sys/fs/cgroup/memory')
class LimitTest(unittest.TestCase):
    def run_workload(self, mode):
        with Cgroup('memory') as cgroup, MemoryCgroup() as memory:
            seen = once(['memory'], [workload('memory'), cgroup.directory, mode, memory.procs])
            return seen.of(cgroup), seen.expected, memory.read('memory.oom_control')

    def test_a_victim_is_counted_once(self):
        mine, expected, oom_control = self.run_workload('oom')
        self.assertEqual(expected['killed'], 1)
        self.assertIn('oom_kill 1\n', oom_control)
        self.assertEqual(mine.total(KILLS), 1)
        self.assertEqual(mine.total(FAULTS), expected['minor'] + expected['major'])

    def test_stalls_at_the_limit_are_timed(self):
        with Trace('mm_vmscan_memcg_reclaim_begin', 'mm_vmscan_memcg_reclaim_end') as trace:
            mine, expected, _ = self.run_workload('reclaim')
            durations = trace.durations(expected['pid'])
        stalls = mine.total(RECLAIM)
        self.assertEqual(mine.total(KILLS), 0)
        self.assertGreater(len(durations), 10)
        self.assertEqual(stalls['count'], len(durations))
        # the trace has microseconds, and its own cost lies between the two
        self.assertAlmostEqual(stalls['sum'], sum(durations), delta=5e-6 * len(durations))


if __name__ == '__main__':
    harness.main()
