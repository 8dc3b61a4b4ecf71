# SPDX-License-Identifier: Apache-2.0
"""The tcpstate collector: every change of state of known connections, and what ss shows."""
import collections
import os
import subprocess
import tempfile
import unittest

import harness
from harness import OWNER, Cgroup, Points, enter_own_network, once, workload
from hidden import run_unhidden

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


def read(path):
    with open(path) as file:
        return file.read()


def ss_states(text, is_waiting):
    """The states of sockets, or of TIME_WAIT, where some are in FIN_WAIT_2; their timer tells them apart."""
    counts = {}
    for line in text.splitlines():
        name = NAMES[line.split()[0]]
        if ('timer:(timewait' in line) == is_waiting:
            name = 'time_wait' if is_waiting else name
            counts[name] = counts.get(name, 0) + 1
    return counts


def exchanged(expected):
    """The changes of state of the workload's "exchange": of its server, of its client."""
    all_ = sum(expected[type_]['connections'] for type_ in ('ipv4', 'ipv6'))
    refused = sum(expected[type_]['ECONNREFUSED'] for type_ in ('ipv4', 'ipv6'))
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
    return server, client


def accepted(changes):
    """Two CPUs may each make a socket of one handshake, of which the kernel keeps one; without those that it does not keep."""
    n_lost = changes.pop(('syn_received', 'closed'), 0)
    return {change: count - n_lost * (change == ('listen', 'syn_received')) for change, count in changes.items()}


class TransitionsTest(unittest.TestCase):
    def check_exchange(self, params=None, collectors=('tcpstate',)):
        def run():
            with Cgroup('server') as server, Cgroup('client') as client:
                seen = once(collectors, [workload('tcp'), 'exchange', server.procs, client.procs], params)
                return seen, (seen.of(server), seen.of(client))

        seen, sides = run_unhidden(run, 'sock/inet_sock_set_state')
        return sides, exchanged(seen.expected), seen.expected

    def test_every_change_of_state_is_counted_on_its_owner(self):
        seen, expected, _ = self.check_exchange()
        self.assertEqual(accepted(transitions(seen[0])), expected[0])
        self.assertEqual(transitions(seen[1]), expected[1])

    def test_changes_belong_to_the_process_that_connected(self):
        seen, expected, printed = self.check_exchange({'tcpstate': {'per_process': 'yes'}})
        self.assertEqual(transitions(seen[1].select(**{'process.pid': printed['pid']})), expected[1])
        self.assertEqual(seen[0].select('bpfpush.tcp.state.transitions', **{'process.pid': None}), [])

    def test_next_to_the_network_collector_nothing_differs(self):
        seen, expected, printed = self.check_exchange({'tcpstate': {'per_process': 'yes'}}, ['network', 'tcpstate'])
        self.assertEqual(transitions(seen[0].select(**{'process.pid': None})), {})
        self.assertEqual(transitions(seen[1].select(**{'process.pid': printed['pid']})), expected[1])
        self.assertEqual(seen[1].select('process.network.io', **{'process.pid': harness.ANY}), [])
        for type_ in ('ipv4', 'ipv6'):
            self.assertEqual(seen[1].total('process.network.io', **{
                'network.type': type_, 'network.io.direction': 'transmit'}), printed[type_]['client_sent'])


# What the workload says of its states, for three families.
SERVER = {'listen': 9, 'syn_received': 6, 'established': 15, 'close_wait': 3}
CLIENT = {'syn_sent': 6, 'established': 12, 'fin_wait_1': 3, 'fin_wait_2': 3}
# Starts the workload and waits until it has its connections.
START = '"$0" "$@" >/dev/null 2>&1 & while ! [ -e "$4" ]; do kill -0 $! || exit 1; sleep 0.02; done'
# In the agent's network namespace, which is new, and in another one; then what ss shows there.
BOTH = 'start() { ' + START + '; }; start states "$1" "$2" "$3"; start apart "$1" "$2" "$4"; ' \
    'ss -tanHo >"$3"; nsenter -t $! -n ss -tanHo >"$4"'


class CountTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Cgroup('server'))
        self.client = self.enterContext(Cgroup('client'))
        self.place = self.enterContext(tempfile.TemporaryDirectory())

    def command(self, mode):
        """It goes on in the test's cgroups, whose end is its own."""
        return ['sh', '-c', START, workload('tcp'), mode, self.server.procs, self.client.procs,
                os.path.join(self.place, 'done')]

    def counts(self, seen):
        return states(seen.of(self.server)), states(seen.of(self.client))

    def test_sockets_older_than_the_agent_are_counted_on_their_owner(self):
        subprocess.run(self.command('states'), check=True)
        self.assertEqual(self.counts(once(['tcpstate'], ['true'])), (SERVER, CLIENT))

    def test_new_sockets_are_counted_on_their_owner(self):
        self.assertEqual(self.counts(once(['tcpstate'], self.command('states'))), (SERVER, CLIENT))

    def test_sockets_are_counted_in_every_network_namespace(self):
        harness.require_map_iterators(self)
        seen = once(['tcpstate'], self.command('apart'))
        self.assertEqual(self.counts(seen), (SERVER, CLIENT))
        # Of the older ones those that a process holds: not those to be accepted, nor what was closed too early.
        seen = once(['tcpstate'], ['true'])
        self.assertEqual(self.counts(seen), (dict(SERVER, established=12), {
            state: count for state, count in CLIENT.items() if state != 'fin_wait_1'}))

    def test_what_has_ended_is_not_counted(self):
        seen = once(['tcpstate'], ['sh', '-c', START + '; kill $!; while kill -0 $! 2>/dev/null; do sleep 0.02; done']
                    + self.command('states')[3:])
        left = self.counts(seen)
        # The kernel goes on with what it has not finished, and with what waits for an answer.
        self.assertLessEqual(set(left[0]), {'last_ack', 'fin_wait_1', 'fin_wait_2', 'closing'})
        self.assertLessEqual(set(left[1]), {'last_ack', 'fin_wait_1', 'fin_wait_2', 'closing'})

    def test_a_socket_belongs_to_the_process_that_connected_or_listened(self):
        params = {'tcpstate': {'per_process': 'yes'}}
        new = once(['tcpstate'], self.command('states'), params)
        old = once(['tcpstate'], ['true'], params)
        pid = self.client.pids()
        for seen in (new, old):
            self.assertEqual(self.counts(seen), (SERVER, CLIENT))
            # Of the old ones nobody holds these, so nobody can be named.
            unnamed = [] if seen is new else ['established', 'fin_wait_1']
            self.assertEqual({point['attributes'][STATE] for point in seen.of(self.client).select(
                COUNT, **{'process.pid': None})}, set(unnamed[1:]))
            self.assertEqual({point['attributes'][STATE] for point in seen.of(self.server).select(
                COUNT, **{'process.pid': None})}, set(unnamed[:1]))
            self.assertEqual([pid_ for pid_ in seen.of(self.server).by('process.pid', COUNT) if pid_], pid)

    def test_the_count_is_what_ss_shows(self):
        harness.require_map_iterators(self)
        files = [os.path.join(self.place, name) for name in ('own', 'apart')]
        seen = once(['tcpstate'], ['sh', '-c', BOTH, workload('tcp'), self.server.procs, self.client.procs, *files],
                    preexec_fn=enter_own_network)
        own, apart = (read(file) for file in files)
        expected = collections.Counter(ss_states(own, True))
        expected.update(ss_states(own, False))
        expected.update(ss_states(apart, False))
        mine = seen.of(self.server) + seen.of(self.client) + seen.select(COUNT, **{OWNER: None, STATE: 'time_wait'})
        self.assertEqual(states(Points(mine)), dict(expected))
        self.assertEqual(expected['time_wait'], 6)
        self.assertEqual({point['attributes']['network.transport'] for point in seen.select(COUNT)}, {'tcp'})


if __name__ == '__main__':
    harness.main()
