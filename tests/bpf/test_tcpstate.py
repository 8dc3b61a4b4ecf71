# SPDX-License-Identifier: Apache-2.0
"""The tcpstate collector: every change of state of known connections, and what ss shows."""
import os
import subprocess
import tempfile
import time
import unittest

import harness
from harness import Cgroup, once, workload

COUNT = 'system.network.connection.count'
STATE = 'network.connection.state'
# As ss names them.
NAMES = {
    'ESTAB': 'established', 'SYN-SENT': 'syn_sent', 'SYN-RECV': 'syn_received', 'FIN-WAIT-1': 'fin_wait_1',
    'FIN-WAIT-2': 'fin_wait_2', 'TIME-WAIT': 'time_wait', 'UNCONN': 'closed', 'CLOSE-WAIT': 'close_wait',
    'LAST-ACK': 'last_ack', 'LISTEN': 'listen', 'CLOSING': 'closing',
}


def transitions(points):
    return {(point['attributes']['bpfpush.tcp.state.from'], point['attributes']['bpfpush.tcp.state.to']):
            point['total'] for point in points.select('bpfpush.tcp.state.transitions')}


def states(points):
    counts = {state: int(points.total(COUNT, **{STATE: state})) for state in NAMES.values()}
    return {state: count for state, count in counts.items() if count}


def ss_states(text):
    counts = {}
    for line in text.splitlines():
        name = NAMES[line.split()[0]]
        counts[name] = counts.get(name, 0) + 1
    return counts


class TransitionsTest(unittest.TestCase):
    def check_exchange(self, params=None):
        with Cgroup('server') as server, Cgroup('client') as client:
            seen = once(['tcpstate'], [workload('tcp'), 'exchange', server.procs, client.procs], params)
            sides = seen.of(server), seen.of(client)
        all_ = sum(seen.expected[type_]['connections'] for type_ in ('ipv4', 'ipv6'))
        refused = sum(seen.expected[type_]['ECONNREFUSED'] for type_ in ('ipv4', 'ipv6'))
        part = all_ // 5  # client first, server first, half closed, reset, left unread
        closed_first, closed_second = 2 * part, part
        client = {
            ('closed', 'syn_sent'): all_ + refused,
            ('syn_sent', 'established'): all_,
            ('syn_sent', 'closed'): refused,
            ('established', 'fin_wait_1'): closed_first,
            ('fin_wait_1', 'fin_wait_2'): closed_first,
            ('fin_wait_2', 'closed'): closed_first,
            ('established', 'close_wait'): closed_second,
            ('close_wait', 'last_ack'): closed_second,
            ('last_ack', 'closed'): closed_second,
            ('established', 'closed'): 2 * part,
        }
        server = {
            ('closed', 'listen'): 3,
            ('listen', 'closed'): 3,
            ('listen', 'syn_received'): all_,
            ('syn_received', 'established'): all_,
            ('established', 'fin_wait_1'): closed_second,
            ('fin_wait_1', 'fin_wait_2'): closed_second,
            ('fin_wait_2', 'closed'): closed_second,
            ('established', 'close_wait'): closed_first,
            ('close_wait', 'last_ack'): closed_first,
            ('last_ack', 'closed'): closed_first,
            ('established', 'closed'): 2 * part,
        }
        return sides, (server, client), seen.expected

    def test_every_change_of_state_is_counted_on_its_owner(self):
        seen, expected, _ = self.check_exchange()
        self.assertEqual(transitions(seen[0]), expected[0])
        self.assertEqual(transitions(seen[1]), expected[1])

    def test_changes_belong_to_the_process_that_connected(self):
        seen, expected, printed = self.check_exchange({'tcpstate': {'per_process': 'yes'}})
        self.assertEqual(transitions(seen[1].select(**{'process.pid': printed['pid']})), expected[1])
        self.assertEqual(seen[0].select('bpfpush.tcp.state.transitions', **{'process.pid': None}), [])


class CountTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Cgroup('server'))
        self.client = self.enterContext(Cgroup('client'))
        self.place = self.enterContext(tempfile.TemporaryDirectory())
        done = os.path.join(self.place, 'done')
        self.process = subprocess.Popen([workload('tcp'), 'states', self.server.procs, self.client.procs, done])
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.terminate)
        for _ in range(500):
            if os.path.exists(done):
                return
            time.sleep(0.01)
        self.fail('the workload did not get its connections into their states')

    def test_sockets_are_counted_on_their_owner(self):
        seen = once(['tcpstate'], ['true'])
        self.assertEqual(states(seen.of(self.server)), {'listen': 6, 'syn_received': 6, 'established': 9, 'close_wait': 3})
        self.assertEqual(states(seen.of(self.client)), {'syn_sent': 6, 'established': 9, 'fin_wait_2': 3})

    def test_the_count_can_be_left_out(self):
        seen = once(['tcpstate'], ['true'], {'tcpstate': {'count_connections': 'no'}})
        self.assertEqual(seen.select(COUNT), [])

    def test_the_count_is_what_ss_shows(self):
        """Other programs open connections, and TIME_WAIT ends, between ss and the collection: hence again."""
        file = os.path.join(self.place, 'ss')
        for _ in range(5):
            seen = once(['tcpstate'], ['sh', '-c', 'ss -tanH > ' + file])
            with open(file) as text:
                expected = ss_states(text.read())
            if states(seen) == expected:
                break
        self.assertEqual(states(seen), expected)
        self.assertGreaterEqual(expected['time_wait'], 6)
        self.assertEqual({point['attributes']['network.transport'] for point in seen.select(COUNT)}, {'tcp'})


if __name__ == '__main__':
    harness.main()
