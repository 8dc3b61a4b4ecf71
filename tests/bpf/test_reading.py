# SPDX-License-Identifier: Apache-2.0
"""What a descriptor says of how its maps are read: own/reading counts system calls that do not exist, whose numbers say
what to count."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import harness
import held
import json_lines
from harness import PATIENCE_S, Cgroup, once, workload
from manager import Manager
from test_own import Pair

CALL = 0x100000
SPLIT, SET, ENUM = range(3)
CPU = 'cpu.logical_number'
CALLS = """import ctypes, os, sys
for word in sys.argv[1:]:
    cpu, number, times = map(int, word.split(','))
    os.sched_setaffinity(0, {cpu})
    for _ in range(times):
        ctypes.CDLL(None).syscall(number)
"""


def calls(*items):
    """The command that makes calls: (cpu, kind, value, times)"""
    return [sys.executable, '-c', CALLS] + ['%d,%d,%d' % (cpu, CALL | kind << 8 | value, times)
                                            for cpu, kind, value, times in items]


class RunningPair(Pair):
    agent = None
    n_killed = 0
    so_far = None, 0, None

    @contextlib.contextmanager
    def running(self, *names, settings='', prefix=()):
        """An agent that collects each second into a file."""
        self.output = os.path.join(self.directory, 'points')
        config = self.file('agent.cfg', f'[agent]\ninterval = 1s\ncollectors = {" ".join(names)}\n{settings}\n'
                           f'collector_directory = {self.directory}\n[exporter x]\ntype = json\npath = {self.output}\n')
        with open(os.path.join(self.directory, 'log'), 'w+') as log:
            self.agent = subprocess.Popen([*prefix, harness.agent(), 'run', '--config=' + config], stderr=log)
            try:
                self.wait_for(lambda points: points)
                yield self.agent
            finally:
                self.agent.terminate()
                self.agent.wait()
                log.seek(0)
                self.log = log.read()

    def points(self):
        """-> all whole lines so far; those that were read before are not read again"""
        if self.so_far[0] != self.output:
            self.so_far = self.output, 0, harness.Points()
        path, place, points = self.so_far
        lines, place = json_lines.read_on(path, place)
        points.extend(json_lines.points(lines, self.n_killed))
        self.so_far = path, place, points
        return harness.Points(points)

    def wait_for(self, condition):
        """Until the points fulfil it. -> what it returns"""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            has_ended = self.agent and self.agent.poll() is not None
            found = condition(self.points())
            if found or has_ended or time.monotonic() > deadline:
                self.assertTrue(found, 'in vain; the agent has ended' if has_ended else 'in vain')
                return found
            time.sleep(0.05)

    def wait_for_value(self, name, value):
        self.wait_for(lambda points: [point for point in points.select(name)[-1:] if point['value'] == value])


class ReadingTest(RunningPair):
    def setUp(self):
        super().setUp()
        self.install_own('reading')
        self.first, self.last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))

    def count(self, *items):
        return once(['reading'], calls(*items), params=self.params())

    def test_each_cpu_has_its_series(self):
        seen = self.count((self.first, SPLIT, 7, 300), (self.last, SPLIT, 7, 40), (self.last, SPLIT, 9, 5))
        points = {(point['attributes']['test.value'], point['attributes'][CPU]): point['total'] for point in seen.select('test.calls')}
        expected = {}
        for cpu, value, times in ((self.first, 7, 300), (self.last, 7, 40), (self.last, 9, 5)):
            expected[value, cpu] = expected.get((value, cpu), 0) + times
        self.assertEqual(points, expected)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, 'needs two CPUs')
    def test_a_cpu_that_is_offline_has_no_series_and_counts_on(self):
        """The agent believes a file that says which CPUs are online."""
        online = '/sys/devices/system/cpu/online'
        with open(online, encoding='ascii') as file:
            all_of_them = file.read()
        listed = self.file('online', all_of_them)
        prefix = ['unshare', '--mount', '/bin/sh', '-c', f'mount --bind {listed} {online} && exec "$@"', 'sh']

        def has_series(points, *cpus):
            last = [point for point in points if point['time_ns'] == points[-1]['time_ns']]
            return points[-1]['name'].startswith('bpfpush.') and {point['attributes'][CPU] for point in last if point['name'] == 'test.totals'} == set(cpus)

        with self.running('reading', prefix=prefix):
            for times in (300, 40):
                subprocess.run(calls((self.first, SPLIT, 7, 2), (self.last, SPLIT, 7, times)), check=True)
                self.wait_for(lambda points: has_series(points, self.first, self.last))
                self.file('online', f'{self.first}\n')
                self.wait_for(lambda points: has_series(points, self.first))
                self.file('online', all_of_them)
            points = self.points().select('test.totals', **{CPU: self.last})
        self.assertEqual(sum(point['delta'] for point in points), 340)

    def test_an_array_of_one_has_only_its_cpus(self):
        seen = self.count((self.first, SPLIT, 1, 20), (self.last, SPLIT, 2, 3))
        totals = seen.select('test.totals')
        self.assertEqual({tuple(point['attributes']) for point in totals}, {(CPU,)})
        self.assertEqual(totals.total(**{CPU: self.last}), 3 if self.first != self.last else 23)
        self.assertEqual(totals.total(), 23)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, 'needs two CPUs')
    def test_gauges_of_cpus_are_joined(self):
        with self.running('reading'):
            for cpu, value, joined in ((self.first, 50, (50, 50, 50)), (self.last, 10, (60, 50, 10)), (self.first, 20, (30, 20, 20)),
                                       (self.last, 0, (20, 20, 0))):
                subprocess.run(calls((cpu, SET, value, 1)), check=True)
                for name, expected in zip(('sum', 'max', 'last'), joined):
                    self.wait_for_value('test.level.' + name, expected)
            # It stays what it was while nothing changes.
            count = len(self.points().select('test.level.last'))
            later = self.wait_for(lambda points: points.select('test.level.last')[count:][1:])
            self.assertEqual({point['value'] for point in later}, {0})

    def test_of_several_cpus_that_have_changed_the_largest_counts(self):
        seen = self.count((self.first, SET, 90, 1), (self.last, SET, 30, 1))
        self.assertEqual(seen.total('test.level.last'), 90 if self.first != self.last else 30)

    def test_constants_that_do_not_count_are_zero(self):
        self.assertEqual(self.count((self.first, ENUM, 1, 4)).by('test.color', 'test.colors'), {'red': 0, 'green': 4, 'blue': 0})

    def test_since_zero_counts_what_was_there(self):
        harness.require_map_iterators(self)
        seen = self.count((self.first, ENUM, 0, 1))
        # The iterator runs when all is attached, before the baseline and before the only reading.
        self.assertEqual(seen.total('test.copied.start'), 5)
        self.assertEqual(seen.total('test.copied.zero'), 1000010)


# Key 0 is called again and again; key K once every 2 + K/8 seconds, so that some come back just as they are removed.
PERIODIC = """import ctypes, heapq, time, sys
call, begin, due, counts = ctypes.CDLL(None).syscall, time.monotonic(), [(0, key) for key in range(1, 81)], [0] * 81
while due[0][0] < 25:
    at, key = heapq.heappop(due)
    while time.monotonic() < begin + at:
        call(%d)
        counts[0] += 1
        time.sleep(0.001)
    call(%d + key)
    counts[key] += 1
    heapq.heappush(due, (at + 2 + key / 4, key))
print(*counts)
"""


class ExpireTest(RunningPair):
    CALL = 0x200000
    MAPS = ('hash', 'lru', 'percpu', 'flat', 'columns')

    def setUp(self):
        super().setUp()
        self.install_own('expire')

    def call(self, key, times):
        subprocess.run([sys.executable, '-c', CALLS, '%d,%d,%d' % (min(os.sched_getaffinity(0)), self.CALL + key, times)], check=True)

    def counted(self, name, points):
        """-> {key: what all its series have counted}"""
        deltas = {}
        for point in points.select('test.' + name):
            key = point['attributes']['test.key']
            deltas[key] = deltas.get(key, 0) + point['delta']
        return deltas

    def test_a_key_that_does_not_grow_ends_and_counts_on(self):
        with self.running('expire'):
            for times, total in ((300, 300), (40, 340)):
                self.call(7, times)
                self.wait_for(lambda points: all(self.counted(name, points).get(7) == total for name in self.MAPS))
                # Three collections later nothing remembers the series, except of the map whose keys do not expire.
                self.wait_for(lambda points: all(
                    len({point['time_ns'] for point in points.select('test.kept', **{'test.key': 7})
                         if point['time_ns'] > points.select('test.' + name, **{'test.key': 7})[-1]['time_ns']}) > 2 for name in self.MAPS))
            [begun] = {point['total'] for point in self.points().select('test.hash', **{'test.key': 7})[-1:]}
        self.assertEqual(begun, 40)

    def test_keys_that_come_and_go_are_counted_exactly(self):
        with self.running('expire'):
            done = subprocess.run([sys.executable, '-c', PERIODIC % (self.CALL, self.CALL)], check=True, stdout=subprocess.PIPE)
            expected = dict(enumerate(map(int, done.stdout.split())))
            self.wait_for(lambda points: self.counted('kept', points) == expected)
            for name in self.MAPS:
                self.assertEqual(self.counted(name, self.points()), expected, name)
        for name in self.MAPS:
            usage = [point['value'] for point in self.points().select('bpfpush.bpf.map.entry.count', **{'bpfpush.map.name': name})]
            # A key that has gone is one less; those that are called every second never go.
            self.assertGreater(sum(max(0, before - after) for before, after in zip(usage, usage[1:])), 20, name)


class RecordTest(RunningPair):
    CALL = 0x300000
    TOLD, SHORT, SILENT = range(3)

    def setUp(self):
        super().setUp()
        self.install_own('records')

    def calls(self, *items):
        cpus = sorted(os.sched_getaffinity(0))
        return [sys.executable, '-c', CALLS] + ['%d,%d,%d' % (cpus[value % len(cpus)], self.CALL | kind << 8 | value, times)
                                                for kind, value, times in items]

    def test_records_are_counted_by_their_members(self):
        seen = once(['records'], self.calls((self.TOLD, 1, 300), (self.SILENT, 2, 40), (self.TOLD, 1, 7)), params=self.params())
        for name in ('test.ring', 'test.perf'):
            points = seen.select(name)
            self.assertEqual({(point['attributes']['test.value'], point['attributes']['records.kind']): point['total'] for point in points},
                             {(1, 'told'): 307, (2, 'silent'): 40}, name)
            self.assertEqual({frozenset(point['attributes'].items()) - {('test.value', 1), ('test.value', 2), ('records.kind', 'told'),
                                                                         ('records.kind', 'silent')} for point in points},
                             {frozenset({('records.part', 1), ('records.text', 'text')}), frozenset({('records.part', 0), ('records.text', 'text')})})

    def test_records_that_are_too_short_are_counted_together(self):
        seen = once(['records'], self.calls((self.TOLD, 1, 5), (self.SHORT, 1, 3)), params=self.params())
        self.assertEqual(seen.total('test.ring', **{'records.kind': 'told'}), 5)
        self.assertEqual(seen.total('test.ring', **{'otel.metric.overflow': True}), 3)
        self.assertIn('records of ring (records) are counted together', seen.stderr)

    def test_more_than_a_ring_holds_is_counted_as_it_comes(self):
        times = 60000  # 56 bytes each; the ring has room for 1 MiB
        with self.running('records'):
            subprocess.run(self.calls((self.TOLD, 9, times)), check=True)
            self.wait_for(lambda points: sum(point['delta'] for point in points.select('test.ring')) == times)
            # What the kernel had no room for in the perf event array is counted too. It says so with the next record of that CPU.
            subprocess.run(self.calls((self.TOLD, 9, 1)), check=True)
            self.wait_for(lambda points: sum(point['delta'] for point in points.select('test.perf')) == times + 1)

    def test_what_is_lost_is_counted(self):
        """The agent is stopped meanwhile, and the buffer of a CPU has room for 64 KiB."""
        times = 5000
        with self.running('records') as agent:
            os.kill(agent.pid, signal.SIGSTOP)
            subprocess.run(self.calls((self.TOLD, 4, times)), check=True)
            os.kill(agent.pid, signal.SIGCONT)
            self.wait_for(lambda points: points.select('test.perf', **{'test.value': 4}))
            # The kernel tells of them with the next record of that CPU.
            subprocess.run(self.calls((self.TOLD, 6, 1)), check=True)
            self.wait_for(lambda points: sum(point['delta'] for point in points.select('test.perf')) == times + 1)
            lost = self.points().select('test.perf', **{'otel.metric.overflow': True})[-1]['total']
            # Its key expires.
            self.wait_for(lambda points: len({point['time_ns'] for point in points
                                              if point['time_ns'] > points.select('test.perf', **{'test.value': 4})[-1]['time_ns']}) > 1)
        self.assertTrue(2000 < lost < times - 500, lost)
        self.assertIn('records of perf (records) are counted together', self.log)

    def test_records_wait_for_the_next_process(self):
        with open(os.path.join(self.directory, 'records.conf'), encoding='utf-8') as file:
            text = file.read()
        # What tells of a perf event array ends with the process, so an object with one is loaded again.
        self.file('records.conf', ''.join(part for part in re.split(r'(?=^\[)', text, flags=re.M) if 'perf' not in part.split('\n')[0]))
        self.output = os.path.join(self.directory, 'points')
        config = self.file('agent.cfg', f'[agent]\ninterval = 1s\ncollectors = records\ncollector_directory = {self.directory}\n'
                           f'[exporter x]\ntype = json\npath = {self.output}\n')
        expected = 0
        with Manager() as manager:
            for times in (100, 20):
                agent = manager.start([harness.agent(), 'run', '--config=' + config], stderr=subprocess.DEVNULL)
                manager.wait_for('READY=1')
                subprocess.run(self.calls((self.TOLD, 1, times)), check=True)
                expected += times
                self.wait_for(lambda points: points.select('test.ring')[-1:] and points.select('test.ring')[-1]['total'] == expected)
                collected = self.points()[-1]['time_ns']
                self.wait_for(lambda points: points[-1]['time_ns'] > collected)
                agent.kill()
                agent.wait()
                self.n_killed += 1
                subprocess.run(self.calls((self.TOLD, 1, 30)), check=True)
                expected += 30


class ChosenTest(RunningPair):
    CALL = 0x400000
    # Makes a cgroup, waits until the agent has taken what its ring says of it, and makes calls there.
    CALLS_ONCE_KNOWN = held.INSIDE + f"""import ctypes, time
ring = held.Ring(os.getppid(), 'cgroup_names')
os.mkdir(sys.argv[1])
while ring.unread_bytes():
    time.sleep(0.001)
with open(sys.argv[1] + '/cgroup.procs', 'w') as procs:
    procs.write('0')
for _ in range(100):
    ctypes.CDLL(None).syscall({CALL})
with open(os.path.dirname(sys.argv[1]) + '/cgroup.procs', 'w') as procs:
    procs.write('0')
"""
    CALLED = "import ctypes\nfor _ in range(%d): ctypes.CDLL(None).syscall(%d)"
    ROOM = 3  # of the hash map

    def setUp(self):
        super().setUp()
        self.install_own('chosen')

    def call(self, cgroup, times):
        cgroup.run([sys.executable, '-c', self.CALLED % (times, self.CALL)], check=True)

    def counted(self, cgroup, name):
        return sum(point['delta'] for point in self.points().of(cgroup).select('test.' + name))

    def test_cgroups_that_are_there_are_chosen_before_the_start(self):
        with Cgroup('chosen-first') as first, Cgroup('chosen-other') as other, Cgroup('left') as left:
            command = ['/bin/sh', '-c', '; '.join('%s %s %s -c "%s"' % (workload('enter'), cgroup.procs, sys.executable,
                                                                       self.CALLED % (9, self.CALL)) for cgroup in (first, other, left))]
            seen = once(['chosen'], command, params=self.params())
            for cgroup, expected in ((first, (9, 9, 9)), (other, (9, 0, 9)), (left, (9, 0, 0))):
                mine = seen.of(cgroup)
                self.assertEqual(tuple(mine.total('test.' + name) for name in ('all', 'by_id', 'in_cgroup')), expected)

    def wait_until_chosen(self, cgroup, name='by_id'):
        """Calls until the agent has put the cgroup into that map."""
        def is_chosen(_):
            self.call(cgroup, 1)
            return self.counted(cgroup, name)
        self.wait_for(is_chosen)

    def test_cgroups_that_come_later_are_chosen_at_once(self):
        """The ring is read at the only collection, unless it wakes the agent before."""
        name = f'/bpfpush-test-chosen-later-{os.getpid()}'
        place = harness.cgroup_root() + name
        self.addCleanup(os.rmdir, place)
        seen = once(['chosen'], [sys.executable, '-c', self.CALLS_ONCE_KNOWN, place], params=self.params()).select(**{harness.OWNER: name})
        self.assertEqual([seen.total('test.' + name) for name in ('all', 'by_id', 'in_cgroup')], [100, 100, 100])

    def test_a_full_map_is_said_once_and_cgroups_that_go_make_room(self):
        with self.running('chosen'), contextlib.ExitStack() as stack:
            cgroups = [stack.enter_context(Cgroup('chosen-later-%d' % i)) for i in range(self.ROOM)]
            for cgroup in cgroups:
                self.wait_until_chosen(cgroup)
            with Cgroup('chosen-later-over') as over:
                self.wait_until_chosen(over, 'in_cgroup')
                self.assertEqual(self.counted(over, 'by_id'), 0)
            stack.pop_all().close()
            with Cgroup('chosen-later-again') as again:
                self.wait_until_chosen(again)
        self.assertEqual(self.log.count('map by_id of collector chosen is full'), 1)


if __name__ == '__main__':
    harness.main()
