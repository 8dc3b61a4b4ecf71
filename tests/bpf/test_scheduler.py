# SPDX-License-Identifier: Apache-2.0
"""Scheduler: equal to what /proc says of dead children, to the switch and to the nanosecond."""
import unittest

import harness
import patience
from harness import Cgroup, once, remembered, state_of, workload
from hidden import run_and_count_switches

SWITCHES = 'process.context_switches'
TYPE = 'process.context_switch.type'
WAIT = 'bpfpush.scheduler.run_queue.duration'
CPU = 'bpfpush.scheduler.cpu.time'
MIGRATIONS = 'bpfpush.scheduler.migrations'

# A sum of nanoseconds is printed as seconds; a double holds it to less than that.
NS = 1e-9


class SchedulerTest(unittest.TestCase):
    @remembered
    def run_workload(self, mode, n, params=None):
        def run():
            return once(['scheduler'], [workload('sched'), cgroup.directory, mode, n],
                        {'agent': {'brief_processes': '1000'}, 'scheduler': params or {}})

        with Cgroup('scheduler') as cgroup:
            seen, n_hidden = run_and_count_switches(run)
            seen.expected['hidden'] = n_hidden
            return seen.of(cgroup), seen.expected

    def check(self, mine, expected):
        self.assertEqual(mine.total(SWITCHES, **{TYPE: 'voluntary'}), expected['voluntary'])
        self.assertEqual(mine.total(SWITCHES, **{TYPE: 'involuntary'}), expected['involuntary'])
        self.assertEqual(mine.total(MIGRATIONS), expected['migrations'])
        self.assertAlmostEqual(mine.total(CPU), expected['cpu_ns'] * NS, delta=NS)
        waits = mine.total(WAIT)
        self.assertAlmostEqual(waits['sum'], expected['run_delay_ns'] * NS, delta=NS)
        # A wait that ends at a hidden switch is added to the task's next one: none of the sum is lost, one of the count is.
        self.assertLessEqual(waits['count'], expected['arrivals'])
        self.assertGreaterEqual(waits['count'], expected['arrivals'] - expected['hidden'])

    def test_children_that_exit_at_once_are_counted(self):
        mine, expected = self.run_workload('short', 200)
        self.assertGreaterEqual(expected['voluntary'], 200)
        self.check(mine, expected)

    def test_what_wait4_says_lacks_at_most_the_last_switch_and_the_time_of_death(self):
        mine, expected = self.run_workload('short', 200)
        self.assertLessEqual(expected['rusage_voluntary'], expected['voluntary'])
        self.assertGreaterEqual(expected['rusage_voluntary'], expected['voluntary'] - 200)
        self.assertLessEqual(expected['rusage_cpu_us'] * 1e-6, mine.total(CPU) + NS)
        self.assertGreaterEqual(expected['rusage_cpu_us'] * 1e-6, mine.total(CPU) - 200 * 100e-6)

    def test_a_sleeper_switches_once_a_sleep(self):
        mine, expected = self.run_workload('sleep', 500)
        self.assertGreater(expected['voluntary'], 450)  # a preemption may come instead of a sleep
        self.check(mine, expected)

    def test_competitors_for_one_cpu_wait(self):
        mine, expected = self.run_workload('contend', 4)
        self.assertGreater(expected['involuntary'], 4)
        self.assertGreater(expected['run_delay_ns'], 300e6)
        self.check(mine, expected)

    def test_moves_are_migrations(self):
        mine, expected = self.run_workload('pingpong', 300)
        self.assertGreaterEqual(expected['migrations'], 299)
        self.check(mine, expected)

    def test_a_wait_on_two_run_queues_is_one_wait(self):
        mine, expected = self.run_workload('crowd', 12)
        self.assertGreater(expected['migrations'], 0)
        self.check(mine, expected)

    def test_a_process_has_its_own_numbers_on_request(self):
        mine, expected = self.run_workload('contend', 3, {'per_process': 'yes'})
        self.check(mine, expected)
        by_process = mine.by('process.pid', CPU)
        self.assertEqual(len(by_process), 3)
        self.assertEqual(set(mine.by('process.pid', WAIT)), set(by_process))
        self.assertEqual({point['attributes']['process.executable.name'] for point in mine},
                         {'workload-sched'})

    def test_what_was_before_is_not_counted(self):
        with Cgroup('scheduler') as cgroup:
            old = cgroup.start(['sh', '-c', 'i=0; while [ $i -lt 5000 ]; do i=$((i + 1)); done; exec sleep 9999'])
            patience.wait(lambda: state_of(old.pid) == 'S', 'it sleeps')
            seen = once(['scheduler'], ['true']).of(cgroup)
            old.kill()
            old.wait()
            self.assertEqual(seen.total(CPU), 0)
            self.assertEqual(seen.total(SWITCHES), 0)


if __name__ == '__main__':
    harness.main()
