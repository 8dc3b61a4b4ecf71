# SPDX-License-Identifier: Apache-2.0
"""The size of real servers: hundreds of units at once, units and processes that come and go."""
import os
import unittest

import harness
from harness import Cgroup, check_margin
from scale import CALL, CHURN_CALLS, COUNT, N_CALLS, OWNER, UNIT, Run, differences, lost, working

N_UNITS = 300
N_SHORT, N_PER_SECOND = 1000, 67
N_BATCH = 134  # in a second, during which there is a collection
N_LASTING = 5  # of workload-units.c
N_BEYOND = 100


class UnitsTest(unittest.TestCase):
    """All of them alive at the same time, and looked at once."""

    @classmethod
    def setUpClass(cls):
        with Cgroup('scale') as cgroup, Run(interval_s=2) as run, working('live', cgroup, N_UNITS) as truth:
            run.wait_collections(1)
        cls.run_, cls.truth = run, truth

    def test_every_pair_of_unit_and_call_is_exact(self):
        expected = self.truth.by_unit()
        self.assertEqual(len(expected), N_UNITS * N_CALLS)
        for of in ('sum', 'last'):
            got = self.run_.sums(COUNT, UNIT, CALL, of=of)
            self.check_wrong(differences(expected, got), len(expected), 'syscalls')

    def check_wrong(self, wrong, n, collector):
        """Each event that the kernel did not give to the collector makes at most one number too low; none is ever too high."""
        self.assertEqual([each for each in wrong if each[2] > each[1]], [])
        check_margin(self, 'numbers too low, such as %s' % wrong[:5], len(wrong), min(self.run_.missed(collector), n // 100))

    def check(self, expected, collector, name, **attributes):
        self.check_wrong(differences(expected, self.run_.sums(name, UNIT, **attributes)), len(expected), collector)

    def test_bytes_of_files_are_exact(self):
        for direction, figure in (('write', 'written'), ('read', 'read')):
            self.check(self.truth.other(figure), 'syscalls', 'bpfpush.file.io', **{'disk.io.direction': direction})

    def test_bytes_and_connections_are_exact(self):
        self.check(self.truth.other('sent'), 'network', 'process.network.io', **{'network.io.direction': 'transmit'})
        self.check(dict.fromkeys(self.truth.other('sent'), 1), 'network', 'bpfpush.tcp.connections', **{'bpfpush.tcp.role': 'client'})

    def test_nothing_lost_its_name(self):
        self.assertEqual(self.run_.overflows(), {})


class LimitTest(unittest.TestCase):
    """More units than there is room for."""

    def check(self, **options):
        """Every pair has its whole count or none, and what has none is in overflow. So all is counted between two
        collections: each makes room where units of others have ended."""
        with Cgroup('limit') as cgroup, Run(interval_s=3600, **options) as run, working('live', cgroup, N_BEYOND) as truth:
            run.stop()
        expected = truth.by_unit()
        got = run.sums(COUNT, UNIT, CALL)
        wrong = differences(expected, got)
        self.assertEqual([pair for pair in wrong if pair[2]], [])
        self.assertGreater(len(wrong), len(expected) // 4)
        return sum(count for _, count, _ in wrong), run.overflows()

    def test_what_the_budget_of_series_has_no_room_for_is_in_overflow(self):
        lost, overflows = self.check(agent='series_limit = 3000\ninclude_units = bpfpush-test-limit-%d-*' % os.getpid())
        self.assertGreaterEqual(overflows[COUNT, 'series'], lost)
        self.assertEqual({reason for _, reason in overflows}, {'series'})

    def test_what_the_tables_have_no_room_for_is_in_overflow(self):
        lost, overflows = self.check(agent='units = 10')
        self.assertGreaterEqual(overflows[COUNT, 'table'], lost)
        self.assertEqual({reason for _, reason in overflows}, {'table'})


class ChurnTest(unittest.TestCase):
    """Units of a moment, one after the other, and as many between two collections as the tables have room for."""

    @classmethod
    def setUpClass(cls):
        with Cgroup('churn') as cgroup, Run(interval_s=1) as run, \
                working('churn', cgroup, N_SHORT, N_BATCH, N_BATCH, after_batch=lambda: run.wait_collections(1)) as truth:
            run.wait_collections(1)
        cls.run_, cls.truth = run, truth

    def test_every_count_is_somewhere(self):
        for call in CHURN_CALLS:
            named, unknown, made = lost(call, self.truth, self.run_)
            self.assertLessEqual(named, made)
            self.assertGreaterEqual(named + unknown, made)

    def test_all_but_a_few_have_their_names(self):
        expected = self.truth.by_unit()
        wrong = differences(expected, self.run_.sums(COUNT, UNIT, CALL))
        check_margin(self, 'numbers too low, such as %s' % wrong[:5], len(wrong), len(expected) // 100)

    def test_nothing_lost_its_name_in_a_table(self):
        self.assertEqual(self.run_.overflows(), {})


class ProcessesTest(unittest.TestCase):
    """Processes of a moment in one unit, with per_process: only those that stay have series of their own."""

    @classmethod
    def setUpClass(cls):
        with Cgroup('spawn') as cgroup, \
                Run(interval_s=2, more='[collector syscalls]\nper_process = yes') as run, \
                working('spawn', cgroup, N_SHORT, N_PER_SECOND) as truth:
            run.wait_collections(1)
        cls.run_, cls.truth, cls.cgroup = run, truth, cgroup

    def test_every_count_is_in_the_unit(self):
        for call in CHURN_CALLS:
            got = self.run_.sums(COUNT, OWNER, **{CALL: call})
            self.assertEqual(got[self.cgroup.path,], sum(self.truth.calls[call]))

    def test_those_that_stay_have_their_names(self):
        got = self.run_.sums(COUNT, 'process.pid', **{CALL: CHURN_CALLS[0]})
        lasting = list(zip(self.truth.others['pid'], self.truth.calls[CHURN_CALLS[0]]))[N_SHORT:]
        self.assertEqual(len(lasting), N_LASTING)
        for pid, count in lasting:
            self.assertEqual(got[pid,], count)

    def test_those_that_come_and_go_have_few_series(self):
        series = self.run_.select(COUNT, **{OWNER: self.cgroup.path, CALL: CHURN_CALLS[0]})
        check_margin(self, 'series of those that come and go', len(series), N_SHORT // 4 - 1)


if __name__ == '__main__':
    harness.main()
