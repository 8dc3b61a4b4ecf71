# SPDX-License-Identifier: Apache-2.0
"""Where the kernel skips a program, another one, a walk or a later run makes up for it, and no number is too low."""
import os
import tempfile
import unittest

import harness
import skips
from harness import Cgroup, once, workload
from hidden import run_and_count_switches, run_unhidden
from test_memory import FAULTS, TYPE
from test_tcpstate import exchanged, transitions

PREEMPTIBLE = dict(os.environ, BPFPUSH_PRETEND_PREEMPTIBLE='1')
TASK = ['memory', 'scheduler']
IO = 'process.network.io'
CONNECTIONS = 'bpfpush.tcp.connections'
TYPES = ('ipv4', 'ipv6')


class SkippedTest(unittest.TestCase):
    def setUp(self):
        self.place = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-'))

    def params(self):
        return {'agent': {'collector_directory': self.place}}


class TaskTest(SkippedTest):
    def check_faults(self, names, n=100):
        with Cgroup('skipped') as cgroup:
            seen = once(names, [workload('memory'), cgroup.directory, 'short', n], self.params(), env=PREEMPTIBLE)
            mine = seen.of(cgroup)
        self.assertGreaterEqual(seen.expected['minor'], 20 * n)
        self.assertEqual(mine.total(FAULTS, **{TYPE: 'minor'}), seen.expected['minor'])
        self.assertEqual(mine.total(FAULTS, **{TYPE: 'major'}), seen.expected['major'])

    def check_switches(self, mode, n):
        with Cgroup('skipped') as cgroup:
            seen, n_hidden = run_and_count_switches(
                lambda: once(TASK, [workload('sched'), cgroup.directory, mode, n], self.params(), env=PREEMPTIBLE))
            mine = seen.of(cgroup)
        for type_ in ('voluntary', 'involuntary'):
            self.assertEqual(mine.total('process.context_switches', **{'process.context_switch.type': type_}), seen.expected[type_])
        waits = mine.total('bpfpush.scheduler.run_queue.duration')
        delay_s = seen.expected['run_delay_ns'] * 1e-9
        self.assertLessEqual(waits['sum'], delay_s + 1e-9)
        # The last wait of a task is lost if it ended at a hidden switch.
        if waits['count'] == seen.expected['arrivals']:
            self.assertAlmostEqual(waits['sum'], delay_s, delta=1e-9)
        self.assertLessEqual(waits['count'], seen.expected['arrivals'])
        self.assertGreaterEqual(waits['count'], seen.expected['arrivals'] - n_hidden)

    def test_the_birth_of_tasks(self):
        skips.install_task(self.place, TASK, ['task_newtask'])
        self.check_faults(TASK)
        self.check_switches('short', 100)
        self.check_switches('contend', 3)

    def test_the_birth_and_the_end_of_tasks(self):
        skips.install_task(self.place, TASK, ['task_newtask', 'sched_process_exit'])
        self.check_faults(TASK)
        self.check_switches('short', 100)
        self.check_switches('contend', 3)

    def test_the_end_of_tasks_for_one_collector_alone(self):
        skips.install_task(self.place, ['memory'], ['sched_process_exit'])
        self.check_faults(['memory'])

    def test_nothing(self):
        skips.install_task(self.place, ['memory'], ['nothing'])
        self.check_faults(['memory'])


class SocketTest(SkippedTest):
    def check(self, *states, without=('state_change_again',)):
        skips.install_socket(self.place, states, without)
        def run():
            with Cgroup('server') as server, Cgroup('client') as client:
                seen = once(['network', 'tcpstate'], [workload('tcp'), 'exchange', server.procs, client.procs], self.params(),
                            env=PREEMPTIBLE)
                return seen, {'server': seen.of(server), 'client': seen.of(client)}

        seen, sides = run_unhidden(run, 'sock/inet_sock_set_state')
        for (name, mine), changes in zip(sides.items(), exchanged(seen.expected)):
            with self.subTest(states, side=name):
                self.assertEqual(transitions(mine), changes)
        for type_ in TYPES:
            expected = seen.expected[type_]
            for name, mine in sides.items():
                with self.subTest(states, side=name, type=type_):
                    tcp = mine.select(**{'network.type': type_})
                    self.assertEqual(tcp.total(IO, **{'network.io.direction': 'transmit'}), expected[name + '_sent'])
                    self.assertEqual(tcp.total(CONNECTIONS, **{'error.type': None}), expected['connections'])

    def test_its_beginning(self):
        self.check('SYN_SENT', 'SYN_RECEIVED')
        self.check('SYN_SENT', 'SYN_RECEIVED', 'LISTEN', 'ESTABLISHED')

    def test_the_middle(self):
        self.check('ESTABLISHED', 'FIN_WAIT_1', 'CLOSE_WAIT')

    def test_its_end(self):
        self.check('FIN_WAIT_2', 'LAST_ACK')

    def test_one_of_two_programs(self):
        self.check(without=['state_change'])
        self.check(without=['nothing'])

    def test_all_of_its_life(self):
        """Only bytes are exact: the kernel forgets those of a connection that the program itself reset."""
        skips.install_socket(self.place, (), ['state_change', 'state_change_again'])
        with Cgroup('server') as server, Cgroup('client') as client:
            seen = once(['network'], [workload('tcp'), 'exchange', server.procs, client.procs], self.params(), env=PREEMPTIBLE)
            mine = seen.of(server)
        for type_ in TYPES:
            self.assertEqual(mine.total(IO, **{'network.type': type_, 'network.io.direction': 'transmit'}),
                             seen.expected[type_]['server_sent'])


if __name__ == '__main__':
    harness.main()
