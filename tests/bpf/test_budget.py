# SPDX-License-Identifier: Apache-2.0
"""What has no room in the budget of series: nothing is lost, nothing is named wrongly, and it is not for ever."""
import os
import re
import time
import unittest

import harness
from harness import PATIENCE_S, Cgroup
from scale import COUNT, UNIT, Run, differences, working

CALL = 'bpfpush.syscall.name'
LIMIT, N_UNITS = 800, 40  # less than what the units need
LIMITED = {'interval_s': 1, 'collectors': 'syscalls', 'agent': 'series_limit = %d' % LIMIT}
# What else runs here takes no part of the budget.
ALONE = dict(LIMITED, agent=LIMITED['agent'] + '\ninclude_units = bpfpush-test-budget-%d-*' % os.getpid())


def wait_message(run, text):
    deadline = time.monotonic() + PATIENCE_S
    while text not in run.messages():
        if time.monotonic() > deadline:
            raise AssertionError('the agent never said "%s" but:\n%s' % (text, run.messages()))
        time.sleep(0.1)


class BudgetTest(unittest.TestCase):
    def test_beyond_the_limit_calls_are_counted_together_until_there_is_room(self):
        with Cgroup('budget') as cgroup, Run(**ALONE) as run:
            with working('live', cgroup, N_UNITS) as truth:
                run.wait_collections(2)
                expected, before, overflows = truth.by_unit(), run.sums(COUNT, UNIT, CALL), run.overflows()
            named = {key for key in expected if before[key]}
            self.assertEqual([(key, before[key], expected[key]) for key in named if before[key] != expected[key]], [])
            self.assertTrue(0 < len(named) < LIMIT, len(named))
            self.assertEqual(overflows.keys(), {(COUNT, 'series')})
            self.assertGreaterEqual(overflows[COUNT, 'series'], sum(expected[key] for key in expected.keys() - named))
            self.assertIn('series_limit is reached: numbers of %s (syscalls) are counted together' % COUNT, run.messages())
            wanted = max(map(int, re.findall(r'set series_limit = (\d+) in \[agent\]', run.messages())))
            self.assertGreaterEqual(wanted, len(expected))
            wait_message(run, 'there is room again for %s (syscalls)' % COUNT)
            before = run.sums(COUNT, UNIT, CALL)
            with working('live', cgroup, 1) as truth:
                run.wait_collections(2)
                grown = run.sums(COUNT, UNIT, CALL) - before
            self.assertEqual(differences(truth.by_unit(), grown), [])

    def test_the_budget_is_exported(self):
        with Run(**LIMITED) as run:
            run.wait_collections(1)
            last = {name: run.sums('bpfpush.' + name, of='last')[()] for name in
                    ('series.count', 'series.limit', 'memory.usage', 'memory.limit')}
        self.assertEqual(last['series.limit'], LIMIT)
        self.assertGreater(last['series.count'], 0)
        self.assertLessEqual(last['series.count'], LIMIT)
        self.assertGreater(last['memory.usage'], 100 * last['series.count'])


if __name__ == '__main__':
    harness.main()
