# SPDX-License-Identifier: Apache-2.0
"""The usage collector: the numbers of memory.current and pids.current, each cgroup's own, and the times of *.pressure."""
import os
import subprocess
import sys
import unittest

import harness
from harness import ANY, OWNER, Cgroup, once

MEMORY, TASKS, PRESSURE = 'bpfpush.cgroup.memory.usage', 'bpfpush.cgroup.tasks', 'bpfpush.cgroup.pressure.time'
RESOURCES = ('cpu', 'memory', 'io')
FILES = {MEMORY: 'memory.current', TASKS: 'pids.current'}
HELD_BYTES = 24 << 20
HOLD = 'import signal\nheld = b"x" * %d\nprint(flush=True)\nsignal.pause()' % HELD_BYTES
SLEEP = 'i=1; while [ $i -lt "$1" ]; do sleep 9999 & i=$((i + 1)); done; echo; exec sleep 9999'
ATTEMPTS = 20
# Two processes in the second cgroup want one CPU until tasks of the first one have waited for so long. Then nothing runs
# there, and the files are read until they stay as they are: the kernel brings its numbers up to date.
STALL = '''
import json, os, re, sys, time
def read():
    times = {}
    for resource in ("cpu", "memory", "io"):
        with open("%s/%s.pressure" % (sys.argv[1], resource)) as file:
            times[resource] = int(re.search(r"some .*total=([0-9]+)", file.read()).group(1))
    return times
def burn():
    with open(sys.argv[2] + "/cgroup.procs", "w") as file:
        file.write("0")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    while True:
        pass
children = [os.fork() or burn() for _ in range(2)]
while read()["cpu"] < int(sys.argv[3]):
    time.sleep(0.01)
for child in children:
    os.kill(child, 9)
for child in children:
    os.waitpid(child, 0)
before = None
while before != read():
    before = read()
    time.sleep(0.1)
print(json.dumps(before))
'''
STALL_US = 300000


def lacks():
    """What this machine lacks for cgroups with these files; None when it has all."""
    root = harness.cgroup_root()
    if not root:
        return 'cgroup2'
    with open(os.path.join(root, 'cgroup.controllers')) as file:
        return None if {'memory', 'pids'} <= set(file.read().split()) else 'the memory and pids controllers in cgroup2'


def has_pressure():
    return os.path.exists(os.path.join(harness.cgroup_root(), 'cpu.pressure'))


class Inner(Cgroup):
    def __init__(self, parent, name):
        self.path, self.directory = ('%s/%s' % (place, name) for place in (parent.path, parent.directory))


def allow(directory):
    """Switches the controllers on for the cgroups below."""
    with open(os.path.join(directory, 'cgroup.subtree_control'), 'w') as file:
        file.write('+memory +pids')


def numbers_of(cgroup):
    numbers = {}
    for name, file in FILES.items():
        with open(cgroup.path_of(file)) as text:
            numbers[name] = int(text.read())
    return numbers


class UsageTest(unittest.TestCase):
    def setUp(self):
        if lacks():
            self.skipTest('needs ' + lacks())
        allow(harness.cgroup_root())
        self.top = self.enterContext(Cgroup('usage'))

    def make(self, name, parent=None):
        return self.enterContext(Inner(parent or self.top, name))

    def start(self, cgroup, command):
        process = cgroup.start(command, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()

    def sleep(self, cgroup, n):
        self.start(cgroup, ['sh', '-c', SLEEP, 'sh', str(n)])

    def count(self, *cgroups):
        """What was counted, and what the files said before and after that, which must be the same."""
        for _ in range(ATTEMPTS):
            before = [numbers_of(cgroup) for cgroup in cgroups]
            seen = once(['usage'], ['true'])
            if before == [numbers_of(cgroup) for cgroup in cgroups]:
                return seen, before
        raise AssertionError('the numbers do not come to rest')

    def check(self, seen, attributes, *numbers):
        """Of the kernel's numbers, the first less the others."""
        for name in FILES:
            expected = numbers[0][name] - sum(each[name] for each in numbers[1:])
            self.assertEqual(seen.total(name, **attributes), expected, (name, attributes))

    def test_numbers_are_those_of_the_kernel(self):
        allow(self.top.directory)
        holder, sleepers = self.make('holder'), self.make('sleepers')
        self.start(holder, [sys.executable, '-c', HOLD])
        self.sleep(sleepers, 7)
        seen, (top, held, slept) = self.count(self.top, holder, sleepers)
        self.assertGreaterEqual(held[MEMORY], HELD_BYTES)
        self.assertEqual((held[TASKS], slept[TASKS]), (1, 7))
        self.check(seen.of(holder), {}, held)
        self.check(seen.of(sleepers), {}, slept)
        self.check(seen.of(self.top), {}, top, held, slept)

    def test_cgroups_of_a_unit_add_up_without_other_units_below(self):
        manager = 'user@%d.service' % os.getpid()
        allow(self.top.directory)
        user = self.make(manager)
        allow(user.directory)
        init, slice_ = self.make('init.scope', user), self.make('app.slice', user)
        allow(slice_.directory)
        app = self.make('app.service', slice_)
        self.sleep(init, 3)
        self.sleep(app, 4)
        seen, (whole, part) = self.count(user, app)
        self.assertEqual((whole[TASKS], part[TASKS]), (7, 4))
        self.check(seen, {'systemd.unit.name': manager}, whole, part)
        self.check(seen, {'systemd.unit.name': manager + '/app.service'}, part)

    def test_a_cgroup_without_controllers_counts_in_the_one_above(self):
        within = self.make('within')
        self.sleep(within, 5)
        seen, (top,) = self.count(self.top)
        self.assertEqual(top[TASKS], 5)
        self.check(seen.of(self.top), {}, top)
        for name in (MEMORY, TASKS):  # pressure needs no controller
            self.assertEqual(seen.of(within).select(name), [])

    def test_nothing_is_counted_twice(self):
        """Of the cgroups of this test: those of others come and go meanwhile."""
        allow(self.top.directory)
        service = 'two-%d.service' % os.getpid()
        self.sleep(self.make('one'), 2)
        self.sleep(self.make(service), 3)
        seen, (top,) = self.count(self.top)
        mine = [point['value'] for point in seen.select(TASKS) if point['attributes'].get('systemd.unit.name') == service
                or point['attributes'].get(OWNER, '').startswith(self.top.path)]
        self.assertEqual((sum(mine), top[TASKS]), (5, 5))
        self.assertEqual(seen.select(TASKS, **{'otel.metric.overflow': ANY}), [])


class PressureTest(unittest.TestCase):
    def test_times_are_those_of_the_topmost_cgroup(self):
        if not has_pressure():
            self.skipTest('needs a kernel that measures pressure (PSI)')
        name = 'stall%d.service' % os.getpid()
        top = self.enterContext(Cgroup('stalled'))
        unit = self.enterContext(Inner(top, name))
        inner = self.enterContext(Inner(unit, 'inner'))
        seen = once(['usage'], [sys.executable, '-c', STALL, unit.directory, inner.directory, STALL_US])
        times = {resource: seen.total(PRESSURE, **{'systemd.unit.name': name, 'bpfpush.pressure.resource': resource})
                 for resource in RESOURCES}
        self.assertGreaterEqual(seen.expected['cpu'], STALL_US)
        self.assertEqual({resource: round(time * 1e9) // 1000 for resource, time in times.items()}, seen.expected)


if __name__ == '__main__':
    harness.main()
