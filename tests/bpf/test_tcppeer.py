# SPDX-License-Identifier: Apache-2.0
"""The tcppeer collector: the same connections and bytes as network counts, by address and port."""
import sys
import unittest

import harness
from harness import Cgroup, once, remembered, workload
from hidden import run_and_count_others, run_unhidden

ADDRESSES = {'ipv4': '127.0.0.1', 'ipv6': '::1'}
CONNECTIONS, IO, RETRANSMITS = ('bpfpush.tcp.peer.' + name for name in ('connections', 'io', 'retransmits'))
REFUSED = """
import json, os, socket, sys
with open(sys.argv[1], 'w') as file:
    file.write('0')
for i in range(int(sys.argv[2])):
    try:
        socket.create_connection(('127.1.%d.%d' % (i // 200, i % 200 + 1), 1)) # nobody listens there
    except ConnectionRefusedError:
        pass
print(json.dumps({'pid': os.getpid()}), flush=True)
"""
# What is counted as a connection of one end.
CONNECTED = 'newstate=TCP_ESTABLISHED|oldstate=TCP_SYN_SENT newstate=TCP_CLOSE'


def of_peer(points, type_):
    return points.select(**{'network.peer.address': ADDRESSES[type_]})


def bytes_of(points, type_, direction):
    return of_peer(points, type_).total(IO, **{'network.io.direction': direction})


def connections(points, type_, role, error=None):
    return of_peer(points, type_).total(CONNECTIONS, **{'bpfpush.tcp.role': role, 'error.type': error})


class PeerTest(unittest.TestCase):
    @remembered
    def run_both(self, mode, collectors=('tcppeer',), params=None):
        def run():
            with Cgroup('server') as server, Cgroup('client') as client:
                seen = once(collectors, [workload('tcp'), mode, server.procs, client.procs], params)
                return seen.of(server), seen.of(client), seen.expected
        return run_unhidden(run, 'sock/inet_sock_set_state', 'tcp/tcp_retransmit_synack')

    def check_exchange(self, server, client, expected):
        for type_ in ADDRESSES:
            with self.subTest(type_):
                number = expected[type_]['connections']
                self.assertEqual(connections(client, type_, 'client'), number)
                self.assertEqual(connections(server, type_, 'server'), number)
                self.assertEqual(connections(client, type_, 'client', 'ECONNREFUSED'), expected[type_]['ECONNREFUSED'])
                self.assertEqual(bytes_of(client, type_, 'transmit'), expected[type_]['client_sent'])
                self.assertEqual(bytes_of(server, type_, 'receive'), expected[type_]['client_sent'])
                self.assertEqual(bytes_of(server, type_, 'transmit'), expected[type_]['server_sent'])
                self.assertEqual(bytes_of(client, type_, 'receive'), expected[type_]['server_sent'])

    def test_connections_and_bytes_are_counted_by_address(self):
        self.check_exchange(*self.run_both('exchange'))

    def test_the_port_is_the_service_s_on_both_sides(self):
        server, client, _ = self.run_both('exchange')
        ports = set(server.by('server.port'))
        self.assertEqual(len(ports), 3)  # one for each family
        self.assertLessEqual(ports, set(client.by('server.port', IO)))
        self.assertEqual(ports, set(client.by('server.port', CONNECTIONS, **{'error.type': None})))

    def test_next_to_the_network_collector_nothing_differs(self):
        server, client, expected = self.run_both('exchange', ('network', 'tcpstate', 'tcppeer'))
        self.check_exchange(server, client, expected)
        for points in (server, client):
            self.assertEqual(points.total('process.network.io', **{'network.transport': 'tcp'}), points.total(IO))
            self.assertEqual(points.total('bpfpush.tcp.connections'), points.total(CONNECTIONS))

    def test_lost_segments_are_retransmits_of_their_peer(self):
        _, client, expected = self.run_both('loss')
        self.assertGreaterEqual(expected['retransmits'], 9)
        self.assertEqual(sum(of_peer(client, type_).total(RETRANSMITS) for type_ in ADDRESSES), expected['retransmits'])

    def test_peers_belong_to_the_process_that_connected(self):
        server, client, expected = self.run_both('exchange', params={'tcppeer': {'per_process': 'yes'}})
        self.check_exchange(server, client.select(**{'process.pid': expected['pid']}), expected)

    def test_peers_without_room_are_counted_together(self):
        """Those of the whole machine are, so others' connections may come on top."""
        peers = 3000
        with Cgroup('peers') as cgroup:
            command = [sys.executable, '-c', REFUSED, cgroup.procs, peers]
            seen, others = run_and_count_others(lambda: once(['tcppeer'], command, {'agent': {'units': '8'}}),
                                                'sock/inet_sock_set_state', CONNECTED)
        refused = {'error.type': 'ECONNREFUSED'}
        mine = seen.of(cgroup).select(CONNECTIONS, **refused)
        beyond = seen.total(CONNECTIONS, **{'otel.metric.overflow': harness.ANY})
        self.assertEqual(len(mine), mine.total())
        self.assertGreater(len(mine), 32)
        self.assertGreater(beyond, 0)
        self.assertTrue(peers <= mine.total() + beyond <= peers + others, (mine.total(), beyond, others))


if __name__ == '__main__':
    harness.main()
