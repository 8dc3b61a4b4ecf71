# SPDX-License-Identifier: Apache-2.0
"""Memory: page faults equal to getrusage(), OOM kills and reclaim stalls of a small memory cgroup."""
import contextlib
import os
import re
import unittest

import harness
import patience
from harness import Cgroup, once, state_of, workload
from hidden import tracefs, write

FAULTS = 'process.paging.faults'
TYPE = 'system.paging.fault.type'
KILLS = 'bpfpush.memory.oom_kills'
RECLAIM = 'bpfpush.memory.reclaim.duration'
LIMIT_BYTES = 16 << 20  # as in workload-memory.c


class Memory1:
    """A cgroup1 with a limit, swap included where it is counted, beside the cgroup that is counted."""
    root = '/sys/fs/cgroup/memory'
    events = 'memory.oom_control'

    @classmethod
    def is_there(cls):
        return os.path.exists(cls.root + '/memory.limit_in_bytes')

    def __init__(self, cgroup):
        self.directory = '%s/bpfpush-test-%d' % (self.root, os.getpid())

    def __enter__(self):
        os.mkdir(self.directory)
        for name in ('memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'):
            if os.path.exists(self.directory + '/' + name):
                write(self.directory + '/' + name, str(LIMIT_BYTES))
        return self

    def __exit__(self, *error):
        os.rmdir(self.directory)


class Memory2:
    """A limit for the cgroup that is counted."""
    events = 'memory.events'

    @classmethod
    def is_there(cls):
        with open(harness.cgroup_root() + '/cgroup.controllers') as file:
            return 'memory' in file.read().split()

    def __init__(self, cgroup):
        self.directory = cgroup.directory

    def __enter__(self):
        write(harness.cgroup_root() + '/cgroup.subtree_control', '+memory')
        write(self.directory + '/memory.max', str(LIMIT_BYTES))
        if os.path.exists(self.directory + '/memory.swap.max'):
            write(self.directory + '/memory.swap.max', '0')
        return self

    def __exit__(self, *error):
        pass


def limits():
    """The kind that this machine has: memory belongs to one of the two hierarchies, or to none."""
    return next((kind for kind in (Memory1, Memory2) if kind.is_there()), None)


def trace_cost_s():
    """Of one event, at most. Tests run in emulated machines too, which are slow."""
    with open('/proc/cpuinfo') as file:
        return 200e-6 if 'QEMU TCG' in file.read() else 5e-6


class Trace:
    """The kernel's own trace of two events, as seconds from one to the other, by process."""

    def __init__(self, begin, end):
        self.events = [begin, end]

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(tracefs())
            if not place:
                raise unittest.SkipTest('needs tracefs')
            self.directory = '%s/instances/bpfpush-test-%d' % (place, os.getpid())
            os.mkdir(self.directory)
            stack.callback(os.rmdir, self.directory)
            write(self.directory + '/trace_clock', 'mono')  # as the programs'
            for event in self.events:
                write('%s/events/vmscan/%s/enable' % (self.directory, event), '1')
            self.stack = stack.pop_all()
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
        self.stack.close()


class FaultsTest(unittest.TestCase):
    def run_workload(self, mode, n, params=None):
        with Cgroup('memory') as cgroup:
            seen = once(['memory'], [workload('memory'), cgroup.directory, mode, n],
                        {'agent': {'brief_processes': '1000'}, 'memory': params or {}})
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
        mine, expected = self.run_workload('short', 10, {'per_process': 'yes'})
        self.check(mine, expected)
        by_process = mine.by('process.pid', FAULTS, **{TYPE: 'minor'})
        self.assertEqual(len(by_process), 10)
        self.assertGreaterEqual(min(by_process.values()), 20)

    def test_what_was_before_is_not_counted(self):
        with Cgroup('memory') as cgroup:
            old = cgroup.start(['sleep', '9999'])
            patience.wait(lambda: state_of(old.pid) == 'S', 'it sleeps')
            seen = once(['memory'], ['true']).of(cgroup)
            old.kill()
            old.wait()
            self.assertEqual(seen.total(FAULTS), 0)


@unittest.skipIf(limits() is None, 'needs limits of memory for cgroups')
class LimitTest(unittest.TestCase):
    def run_workload(self, mode):
        with Cgroup('memory') as cgroup, limits()(cgroup) as memory:
            seen = once(['memory'], [workload('memory'), cgroup.directory, mode, memory.directory + '/cgroup.procs'])
            with open(memory.directory + '/' + memory.events) as file:
                return seen.of(cgroup), seen.expected, file.read()

    def test_a_victim_is_counted_once(self):
        mine, expected, events = self.run_workload('oom')
        self.assertEqual(expected['killed'], 1)
        self.assertIn('oom_kill 1\n', events)
        self.assertEqual(mine.total(KILLS), 1)
        self.assertEqual(mine.total(FAULTS), expected['minor'] + expected['major'])

    def test_stalls_at_the_limit_are_timed(self):
        with Trace('mm_vmscan_memcg_reclaim_begin', 'mm_vmscan_memcg_reclaim_end') as trace:
            mine, expected, events = self.run_workload('reclaim')
            durations = trace.durations(expected['pid'])
        stalls = mine.total(RECLAIM)
        self.assertIn('oom_kill %d\n' % mine.total(KILLS), events)  # a slow disk may cost the reader its life
        self.assertGreater(len(durations), 10)
        self.assertEqual(stalls['count'], len(durations))
        # the trace has microseconds, and its own cost lies between the two
        self.assertAlmostEqual(stalls['sum'], sum(durations), delta=trace_cost_s() * len(durations))


if __name__ == '__main__':
    harness.main()
