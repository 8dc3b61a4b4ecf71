# SPDX-License-Identifier: Apache-2.0
"""The throttle collector: the numbers of cpu.stat, whenever a cgroup comes and goes."""
import os
import subprocess
import unittest

import harness
from harness import Cgroup, once

# What a cgroup does: it works until it was throttled this often, and leaves.
WORK = """
echo '1000 10000' >"$1/cpu.max" && echo 0 >"$1/cgroup.procs" || exit 1
until [ "$(sed -n 's/nr_throttled //p' "$1/cpu.stat")" -ge "$2" ]; do :; done
echo 0 >"$1/../cgroup.procs"
"""
# Nothing runs there now. The kernel goes on with its periods until it finds that, so the numbers come to rest.
REST = """
until [ "$last" = "$(cat "$1/cpu.stat")" ]; do last=$(cat "$1/cpu.stat"); sleep 0.3; done
"""
# Said before and after that, so that the test sees whether they were at rest.
SAY = 'cat "$1/cpu.stat" >&2\n'
ATTEMPTS = 20
NAMES = {'nr_periods': 'bpfpush.cgroup.cpu.periods', 'nr_throttled': 'bpfpush.cgroup.cpu.throttled_periods',
         'throttled_usec': 'bpfpush.cgroup.cpu.throttled_time'}


def stat(text):
    """{the metric's name: the number}, as in cpu.stat"""
    numbers = dict(line.split() for line in text.splitlines())
    return {name: int(numbers[key]) for key, name in NAMES.items()}


def numbers_of(cgroup):
    with open(cgroup.path_of('cpu.stat')) as file:
        return stat(file.read())


def said(seen):
    """What a command has said of cpu.stat, in order."""
    lines = [line for line in seen.stderr.splitlines() if line.split()[:1] and line.split()[0] in NAMES]
    return [stat('\n'.join(lines[i:i + len(NAMES)])) for i in range(0, len(lines), len(NAMES))]


def lacks():
    """What this machine lacks for cgroups with a cpu.max; None when it has all."""
    root = harness.cgroup_root()
    if not root:
        return 'cgroup2'
    with open(os.path.join(root, 'cgroup.controllers')) as file:
        return None if 'cpu' in file.read().split() else 'the cpu controller in cgroup2'


class ThrottleTest(unittest.TestCase):
    def setUp(self):
        if lacks():
            self.skipTest('needs ' + lacks())
        with open(os.path.join(harness.cgroup_root(), 'cgroup.subtree_control'), 'w') as file:
            file.write('+cpu')

    def check(self, seen, cgroup, expected):
        mine = seen.of(cgroup)
        for name, number in expected.items():
            total = mine.total(name)
            self.assertEqual(int(total * 1000000 + 0.001) if name.endswith('time') else total, number, name)

    def run_in(self, cgroup, times):
        return ['sh', '-c', SAY + WORK + REST + SAY, 'sh', cgroup.directory, str(times)]

    def count(self, cgroup):
        """What was counted, and the numbers at rest before and after that."""
        for _ in range(ATTEMPTS):
            before = numbers_of(cgroup)
            seen = once(['throttle'], self.run_in(cgroup, before[NAMES['nr_throttled']] + 10))
            after = numbers_of(cgroup)
            if said(seen) == [before, after]:
                return seen, before, after
        raise AssertionError('the numbers do not come to rest')

    def test_growth_is_that_of_cpu_stat(self):
        with Cgroup('throttled') as cgroup:
            subprocess.run(self.run_in(cgroup, 5), check=True)
            seen, before, after = self.count(cgroup)
        grown = {name: after[name] - before[name] for name in after}
        self.assertGreaterEqual(grown[NAMES['nr_throttled']], 10)
        name = NAMES['throttled_usec']
        self.assertAlmostEqual(seen.of(cgroup).total(name) * 1e6, grown.pop(name), delta=2)  # each was rounded
        self.check(seen, cgroup, grown)

    def test_a_cgroup_that_is_gone_is_counted_to_its_end(self):
        cgroup = Cgroup('brief')
        seen = once(['throttle'], ['sh', '-c', 'mkdir "$1" || exit 1\n' + WORK + REST + 'cat "$1/cpu.stat" >&2; rmdir "$1"', 'sh',
                                   cgroup.directory, '7'])
        [expected] = said(seen)
        self.assertGreaterEqual(expected[NAMES['nr_throttled']], 7)
        self.check(seen, cgroup, expected)

    def test_a_cgroup_without_a_limit_makes_no_series(self):
        with Cgroup('free') as cgroup:
            seen = once(['throttle'], cgroup.command(['true']))
        self.assertEqual(seen.of(cgroup), [])


if __name__ == '__main__':
    harness.main()
