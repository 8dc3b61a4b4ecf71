# SPDX-License-Identifier: Apache-2.0
"""What a descriptor says of how its maps are read: own/reading counts system calls that do not exist, whose numbers say
what to count."""
import contextlib
import json
import os
import subprocess
import sys
import time
import unittest

import harness
from harness import once
from test_own import Pair

PATIENCE_S = 60
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
    @contextlib.contextmanager
    def running(self, *names, settings=''):
        """An agent that collects each second into a file."""
        self.output = os.path.join(self.directory, 'points')
        config = self.file('agent.cfg', f'[agent]\ninterval = 1s\ncollectors = {" ".join(names)}\n{settings}\n'
                           f'collector_directory = {self.directory}\n[exporter x]\ntype = json\npath = {self.output}\n')
        with open(os.path.join(self.directory, 'log'), 'w+') as log:
            agent = subprocess.Popen([harness.agent(), 'run', '--config=' + config], stderr=log)
            try:
                self.wait_for(lambda points: points)
                yield agent
            finally:
                agent.terminate()
                agent.wait()
                log.seek(0)
                self.log = log.read()

    def points(self):
        """-> all lines so far, whole ones"""
        try:
            with open(self.output, encoding='utf-8') as file:
                return harness.Points(json.loads(line) for line in file if line.endswith('\n'))
        except FileNotFoundError:
            return harness.Points()

    def wait_for(self, condition):
        """Until the points fulfil it. -> what it returns"""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = condition(self.points())
            if found or time.monotonic() > deadline:
                self.assertTrue(found, 'in vain')
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
        seen = self.count((self.first, ENUM, 0, 1))
        # The iterator runs when all is attached, before the baseline and before the only reading.
        self.assertEqual(seen.total('test.copied.start'), 5)
        self.assertEqual(seen.total('test.copied.zero'), 1000010)


if __name__ == '__main__':
    harness.main()
