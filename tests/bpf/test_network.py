# SPDX-License-Identifier: Apache-2.0
"""The network collector: bytes, datagrams, connections and retransmits on the right owner."""
import os
import subprocess
import tempfile
import unittest

import harness
import skips
from harness import Cgroup, once, remembered, workload
from hidden import run_unhidden
from scale import UNIT, Run, differences, working
from test_agent import Agent

TYPES = ('ipv4', 'ipv6')
FAILURES = ('ECONNREFUSED', 'EADDRNOTAVAIL', 'ECANCELED')


def io(points, transport, type_, direction):
    return points.total('process.network.io', **{'network.transport': transport, 'network.type': type_,
                                                 'network.io.direction': direction})


def connections(points, type_, role, error=None):
    return points.total('bpfpush.tcp.connections', **{'network.type': type_, 'bpfpush.tcp.role': role,
                                                      'error.type': error})


def ended(points):
    durations = points.select('bpfpush.tcp.connection.duration')
    return durations.total()['count'] if durations else 0


class TcpTest(unittest.TestCase):
    @remembered
    def run_both(self, mode, per_process=False):
        """What the server's cgroup and the client's got, and what the workload says."""
        params = {'network': {'per_process': 'yes'}} if per_process else None

        def run():
            with Cgroup('server') as server, Cgroup('client') as client:
                seen = once(['network'], [workload('tcp'), mode, server.procs, client.procs], params)
                return seen.of(server), seen.of(client), seen.expected
        return run_unhidden(run, 'sock/inet_sock_set_state', 'tcp/tcp_retransmit_synack')

    def test_each_byte_is_counted_once_on_each_side(self):
        server, client, expected = self.run_both('exchange')
        for type_ in TYPES:
            with self.subTest(type_):
                self.assertGreater(expected[type_]['client_sent'], 500000)
                self.assertEqual(io(client, 'tcp', type_, 'transmit'), expected[type_]['client_sent'])
                self.assertEqual(io(server, 'tcp', type_, 'receive'), expected[type_]['client_sent'])
                self.assertEqual(io(server, 'tcp', type_, 'transmit'), expected[type_]['server_sent'])
                self.assertEqual(io(client, 'tcp', type_, 'receive'), expected[type_]['server_sent'])
        self.assertEqual(client.select('bpfpush.udp.datagrams'), [])

    def test_connections_are_counted_by_role_and_error(self):
        server, client, expected = self.run_both('exchange')
        for type_ in TYPES:
            with self.subTest(type_):
                number = expected[type_]['connections']
                self.assertEqual(connections(client, type_, 'client'), number)
                self.assertEqual(connections(server, type_, 'server'), number)
                self.assertEqual(connections(client, type_, 'server') + connections(server, type_, 'client'), 0)
                self.assertEqual(connections(client, type_, 'client', 'ECONNREFUSED'), expected[type_]['ECONNREFUSED'])
        number = sum(expected[type_]['connections'] for type_ in TYPES)
        for points, role in ((server, 'server'), (client, 'client')):
            for name in ('bpfpush.tcp.connection.duration', 'bpfpush.tcp.rtt'):
                times = points.total(name, **{'bpfpush.tcp.role': role})
                self.assertEqual(times['count'], number, name)
                self.assertGreater(times['sum'], 0)
                self.assertLess(times['sum'], 2 * points.length_s())  # the next one may begin before one has ended
            self.assertEqual(len(points.select('bpfpush.tcp.rtt')), 1)

    def test_connections_fail_for_a_named_reason(self):
        _, client, expected = self.run_both('odd')
        for type_ in TYPES:
            for error in FAILURES:
                with self.subTest(type_=type_, error=error):
                    self.assertEqual(connections(client, type_, 'client', error), expected[type_][error])
            self.assertEqual(connections(client, type_, 'client'), expected[type_]['connections'])
            self.assertEqual(connections(client, type_, 'server'), expected[type_]['connections'])

    def test_lost_segments_are_retransmits_and_no_bytes(self):
        _, client, expected = self.run_both('loss')
        # Three times data, and the SYN or the SYN/ACK or both: whichever end's timer fires first.
        self.assertGreaterEqual(expected['retransmits'], 6)
        self.assertEqual(client.total('bpfpush.tcp.retransmits'), expected['retransmits'])
        for type_ in TYPES:
            with self.subTest(type_):
                both = expected[type_]['client_sent'] + expected[type_]['server_sent']
                self.assertEqual(io(client, 'tcp', type_, 'transmit'), both)
                self.assertEqual(io(client, 'tcp', type_, 'receive'), both)
                self.assertEqual(connections(client, type_, 'client'), expected[type_]['connections'])

    def test_the_process_is_the_one_that_connected_or_listened(self):
        server, client, expected = self.run_both('exchange', per_process=True)
        mine = client.select(**{'process.pid': expected['pid']})
        self.assertEqual(len(mine), len(client))
        self.assertEqual({point['attributes']['process.executable.name'] for point in mine}, {'workload-tcp'})
        pids = {point['attributes'].get('process.pid') for point in server}
        self.assertEqual(len(pids), 3)  # a server for each family
        self.assertNotIn(expected['pid'], pids)
        for type_ in TYPES:
            self.assertEqual(io(mine, 'tcp', type_, 'transmit'), expected[type_]['client_sent'])
            self.assertEqual(io(server, 'tcp', type_, 'transmit'), expected[type_]['server_sent'])

    def test_processes_are_told_apart_for_one_of_two_collectors(self):
        params = {'network': {'per_process': 'yes'}}
        with Cgroup('server') as server, Cgroup('client') as client:
            seen = once(['network', 'tcpstate'], [workload('tcp'), 'exchange', server.procs, client.procs], params)
            points, pid, expected = seen.of(client), seen.expected['pid'], seen.expected
        for type_ in TYPES:
            self.assertEqual(io(points.select(**{'process.pid': pid}), 'tcp', type_, 'transmit'),
                             expected[type_]['client_sent'])
        self.assertEqual(points.select('process.network.io', **{'process.pid': None}), [])
        self.assertEqual(points.select('bpfpush.tcp.state.transitions', **{'process.pid': harness.ANY}), [])
        self.assertEqual(points.total('bpfpush.tcp.state.transitions', **{'bpfpush.tcp.state.to': 'established'}),
                         sum(expected[type_]['connections'] for type_ in TYPES))

    def test_what_was_before_is_not_counted(self):
        with Cgroup('server') as server, Cgroup('client') as client, tempfile.TemporaryDirectory() as place:
            done = os.path.join(place, 'done')
            held = client.start([workload('tcp'), 'hold', server.procs, client.procs, done], stdout=-1, text=True)
            try:
                self.assertEqual(held.stdout.readline(), 'ready\n')
                seen = once(['network'], ['sh', '-c', 'kill -USR1 %d; until [ -e %s ]; do sleep 0.02; done'
                                          % (held.pid, done)])
                expected = harness.json.loads(held.stdout.readline())
            finally:
                held.terminate()
                held.communicate()
            for type_ in TYPES:
                with self.subTest(type_):
                    self.assertEqual(io(seen.of(client), 'tcp', type_, 'transmit'), expected[type_]['client_sent'])
                    self.assertEqual(io(seen.of(client), 'tcp', type_, 'receive'), expected[type_]['server_sent'])
                    self.assertEqual(io(seen.of(server), 'tcp', type_, 'transmit'), expected[type_]['server_sent'])
            self.assertEqual(seen.of(client).select('bpfpush.tcp.connections'), [])
            # Who connected is known of old connections too.
            for points, role in ((seen.of(server), 'server'), (seen.of(client), 'client')):
                self.assertEqual(points.total('bpfpush.tcp.rtt', **{'bpfpush.tcp.role': role})['count'], 3)


    def test_connections_that_close_while_they_are_read_are_counted_once(self):
        """Hundreds of sockets are closed on both CPUs, again and again, and somebody reads all of them all the time."""
        harness.require_map_iterators(self)
        with Cgroup('server') as server, Cgroup('client') as client, Agent(collectors='network tcpstate') as agent:
            agent.wait(lambda collections: collections)
            done = subprocess.run([workload('crowd'), server.procs, client.procs, str(agent.process.pid)],
                                  check=True, stdout=subprocess.PIPE, text=True)
            expected = harness.json.loads(done.stdout)
            # The other end of the last connections may close later. The next collection has no other walks in it.
            agent.wait(lambda collections: ended(collections[-1].of(client)) == ended(collections[-1].of(server))
                       == expected['connections'])
            seen = agent.wait_for_more(1)[-1]
            client, server = seen.of(client), seen.of(server)
        self.assertEqual(connections(client, 'ipv4', 'client'), expected['connections'])
        self.assertEqual(connections(server, 'ipv4', 'server'), expected['connections'])
        self.assertEqual(io(client, 'tcp', 'ipv4', 'transmit'), expected['bytes'])
        self.assertEqual(io(server, 'tcp', 'ipv4', 'receive'), expected['bytes'])
        for points in (client, server):
            self.assertEqual(points.total('system.network.connection.count'), 0)
            self.assertEqual(points.total('bpfpush.tcp.state.transitions', **{'bpfpush.tcp.state.to': 'established'}),
                             expected['connections'])

    def test_no_byte_is_lost_if_the_last_changes_of_state_are_missed(self):
        with Cgroup('missed') as cgroup, tempfile.TemporaryDirectory() as place:
            skips.install_socket(place, ('FIN_WAIT_2', 'CLOSED'), ['socket_end'])
            with Run(2, 'collector_directory = ' + place, 'network') as run, working('live', cgroup, 50) as truth:
                run.wait_collections(1)
        sent = run.sums('process.network.io', UNIT, **{'network.io.direction': 'transmit'})
        self.assertEqual(differences(truth.other('sent'), sent), [])
        self.assertEqual(run.select('bpfpush.tcp.connection.duration'), [])  # they are missed indeed


class UdpTest(unittest.TestCase):
    def test_each_datagram_is_counted_once_on_each_side(self):
        with Cgroup('server') as server, Cgroup('client') as client:
            seen = once(['network'], [workload('udp'), server.procs, client.procs])
            for side, points in (('server', seen.of(server)), ('client', seen.of(client))):
                for type_ in TYPES:
                    for direction in ('receive', 'transmit'):
                        with self.subTest(side=side, type_=type_, direction=direction):
                            expected = seen.expected['%s_%s' % (side, type_)]
                            self.assertEqual(io(points, 'udp', type_, direction), expected[direction])
                            self.assertEqual(points.total('bpfpush.udp.datagrams',
                                                          **{'network.type': type_, 'network.io.direction': direction}),
                                             expected[direction + '_datagrams'])
                self.assertEqual(points.select('bpfpush.tcp.connections'), [])

    def test_the_process_is_the_one_that_called(self):
        with Cgroup('server') as server, Cgroup('client') as client:
            seen = once(['network'], [workload('udp'), server.procs, client.procs], {'network': {'per_process': 'yes'}})
            mine = seen.of(client).select(**{'process.pid': seen.expected['pid']})
            self.assertEqual(len(mine), len(seen.of(client)))
            for type_ in TYPES:
                self.assertEqual(io(mine, 'udp', type_, 'transmit'), seen.expected['client_' + type_]['transmit'])


if __name__ == '__main__':
    harness.main()
