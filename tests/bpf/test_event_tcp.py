# SPDX-License-Identifier: Apache-2.0
"""Events of TCP: connections, attempts to connect, what is accepted and what is sent again, as the workload's list."""
import json
import tempfile
import unittest

import harness
from harness import OWNER, Cgroup
from hidden import run_unhidden
from shown import show

# What the workloads share. The first arguments: the cgroup, the file for what was done, and whether the network
# namespace is a new one.
COMMON = '''
import ctypes, errno, fcntl, json, os, socket, struct, subprocess, sys, termios, threading, time

FAMILIES = {'4': (socket.AF_INET, '127.0.0.1'), '6': (socket.AF_INET6, '::1'),
            'mapped': (socket.AF_INET6, '::ffff:127.0.0.1')}
procs, path, is_apart, *arguments = sys.argv[1:]
ports = set()
done = []
began = time.clock_gettime(time.CLOCK_BOOTTIME)
with open(procs, 'w') as file:
    file.write('0')
if is_apart == 'yes':
    assert not ctypes.CDLL(None).unshare(0x40000000)  # CLONE_NEWNET
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
with open('/proc/self/comm') as file:
    name = file.read().strip()

def new_socket(family):
    sock = socket.socket(FAMILIES[family][0])
    if family != '4':
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    return sock

def bound(family, backlog=None):
    sock = new_socket(family)
    sock.bind((FAMILIES[family][1], 0))
    if backlog is not None:
        sock.listen(backlog)
        ports.add(sock.getsockname()[1])
    return sock

def ends(local, peer):
    """As the attributes have them."""
    return {'network.type': 'ipv6' if ':' in local[0].replace('::ffff:', '') else 'ipv4',
            'network.local.address': local[0].replace('::ffff:', ''), 'network.local.port': local[1],
            'network.peer.address': peer[0].replace('::ffff:', ''), 'network.peer.port': peer[1]}

def me():
    return {'process.pid': os.getpid(), 'thread.name': name}

def receive(sock, size):
    while size:
        size -= len(sock.recv(size))

def states():
    """Of the sockets of this workload, without those that are half-open or in TIME_WAIT."""
    for file in '/proc/self/net/tcp', '/proc/self/net/tcp6':
        with open(file) as lines:
            for line in list(lines)[1:]:
                _, local, peer, state = line.split()[:4]
                if ports & {int(end.rpartition(':')[2], 16) for end in (local, peer)} and state not in ('03', '06'):
                    yield state

def finish(count=lambda: None):
    """Waits until the kernel has closed all. What it prints would be between the events' lines, and within one."""
    while any(True for _ in states()):
        time.sleep(0.001)
    with open(path, 'w') as file:
        json.dump({'done': done, 'length_s': time.clock_gettime(time.CLOCK_BOOTTIME) - began, 'counted': count()}, file)

def in_threads(run):
    threads = [threading.Thread(target=run, args=[family]) for family in FAMILIES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

DROP = struct.pack('HBBI', 0x06, 0, 0, 0)  # BPF_RET | BPF_K: of each packet, 0 bytes

def drop(sock):
    """What comes to this socket is lost."""
    room = ctypes.create_string_buffer(DROP)
    sock.setsockopt(socket.SOL_SOCKET, 26, struct.pack('HxxxxxxP', 1, ctypes.addressof(room)))  # SO_ATTACH_FILTER

def drops(sock):
    return struct.unpack('9I', sock.getsockopt(socket.SOL_SOCKET, 55, 36))[8]  # SO_MEMINFO

def take(sock):
    sock.setsockopt(socket.SOL_SOCKET, 27, 0)  # SO_DETACH_FILTER
'''
# N connections of each family, to a child of another cgroup, which accepts them.
EXCHANGE = COMMON + '''
n, elsewhere = int(arguments[0]), arguments[1]
ENDINGS = 'client server half reset other'.split()

def serve(listener, i):
    sock, peer = listener.accept()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one = dict(ends(sock.getsockname(), peer), **me(), role='server', sent=i * 37 % 5000, received=1 + i * 91 % 7000)
    receive(sock, one['received'])
    if ENDINGS[i % 5] == 'half':
        assert sock.recv(1) == b''
    sock.sendall(bytes(one['sent']))
    if ENDINGS[i % 5] in ('client', 'other'):
        assert sock.recv(1) == b''
    if ENDINGS[i % 5] == 'reset':
        try:
            sock.recv(1)
        except ConnectionResetError:
            one.update({'error.type': 'ECONNRESET', 'is_unseen': True})  # by who closes
    sock.close()
    return one

def request(family, address, i):
    sock = new_socket(family)
    sock.connect(address[:2])
    established = time.clock_gettime(time.CLOCK_BOOTTIME)
    one = dict(ends(sock.getsockname(), address), **me(), role='client', sent=1 + i * 91 % 7000, received=i * 37 % 5000)
    time.sleep(0.005 if i % 50 == 0 else 0)
    one['at_least'] = time.clock_gettime(time.CLOCK_BOOTTIME) - established
    sock.sendall(bytes(one['sent']))
    if ENDINGS[i % 5] == 'half':
        sock.shutdown(socket.SHUT_WR)
    receive(sock, one['received'])
    if ENDINGS[i % 5] in ('server', 'half'):
        assert sock.recv(1) == b''
    if ENDINGS[i % 5] == 'reset':
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        one['error.type'] = 'ECONNABORTED'
    if ENDINGS[i % 5] == 'other':
        child = os.fork()  # it closes what this process has opened
        if not child:
            time.sleep(0.001)
            os._exit(0)
        sock.close()
        os.waitpid(child, 0)
    sock.close()
    return one

for family in FAMILIES:
    listener = bound(family, 16)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with open(elsewhere, 'w') as file:
            file.write('0')
        served = json.dumps([serve(listener, i) for i in range(n)])
        with os.fdopen(writer, 'w') as file:
            file.write(served)
        os._exit(0)
    os.close(writer)
    address = listener.getsockname()
    listener.close()
    done += [request(family, address, i) for i in range(n)]
    with os.fdopen(reader) as file:
        done += json.load(file)
    os.waitpid(child, 0)
finish()
'''
# Connections that end in other ways: by a time-out, with unread bytes, and before they are accepted.
ENDS = COMMON + '''
def add(role, local, peer, **others):
    done.append(dict(ends(local, peer), **me(), **others, role=role))

def pair(listener, family):
    client = new_socket(family)
    client.connect(listener.getsockname()[:2])
    return client, listener.accept()[0]

def end(family):
    listener = bound(family, 16)
    client, server = pair(listener, family)
    local, peer = client.getsockname(), client.getpeername()
    drop(server)
    client.setsockopt(socket.IPPROTO_TCP, 18, 300)  # TCP_USER_TIMEOUT, in ms
    client.sendall(bytes(1000))
    try:
        client.recv(1)
    except TimeoutError:
        add('client', local, peer, sent=1000, received=0, **{'error.type': 'ETIMEDOUT'})
    take(server)
    server.close()  # its FIN is answered by a reset
    add('server', peer, local, sent=0, received=0, **{'error.type': 'ECONNRESET'})

    client, server = pair(listener, family)
    local, peer = client.getsockname(), client.getpeername()
    server.sendall(bytes(1000))
    assert len(client.recv(1000, socket.MSG_PEEK | socket.MSG_WAITALL)) == 1000
    client.close()
    add('client', local, peer, sent=0, received=1000, **{'error.type': 'ECONNABORTED'})
    try:
        server.recv(1)
    except ConnectionResetError:
        add('server', peer, local, sent=1000, received=0, is_unseen=True, **{'error.type': 'ECONNRESET'})
    server.close()

    client = new_socket(family)
    client.connect(listener.getsockname()[:2])
    local, peer = client.getsockname(), client.getpeername()
    client.sendall(bytes(100))
    while any(fcntl.ioctl(client, termios.TIOCOUTQ, bytes(4))):  # as long as the kernel of the other end has not all
        time.sleep(0.001)
    listener.close()
    add('server', peer, local, sent=0, received=100, **{'error.type': 'ECONNABORTED'})
    try:
        client.recv(1)
    except ConnectionResetError:
        add('client', local, peer, sent=100, received=0, **{'error.type': 'ECONNRESET'})

in_threads(end)
finish()
'''
# Attempts to connect: they succeed, are refused, find no port, are given up, and time out.
CONNECT = COMMON + '''
def attempt(sock, family, peer, error, n_local=None, wait=lambda sock: None):
    local = sock.getsockname()
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    result = sock.connect_ex(peer[:2])
    wait(sock)
    if error == 'ECANCELED':
        sock.close()
        result = errno.ECANCELED
    at_most = time.clock_gettime(time.CLOCK_BOOTTIME) - before
    assert errno.errorcode.get(result) == error, result
    done.append(dict(ends(local, peer), **me(), **({'error.type': error} if error else {}), at_most=at_most))
    return sock

def attempts(family):
    listener = bound(family, 64)
    target, closed = listener.getsockname(), bound(family).getsockname()
    connected = [attempt(bound(family), family, target, None) for i in range(20)]
    for i in range(20):
        attempt(bound(family), family, closed, 'ECONNREFUSED').close()
    first = new_socket(family)
    first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    first.bind((FAMILIES[family][1], 0))
    attempt(first, family, target, None)
    for i in range(5):
        sock = new_socket(family)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(first.getsockname()[:2])
        attempt(sock, family, target, 'EADDRNOTAVAIL').close()
    for i in range(5):
        sock = bound(family)
        drop(sock)
        sock.setblocking(False)
        attempt(sock, family, target, 'ECANCELED')
    sock = bound(family)
    drop(sock)
    sock.setsockopt(socket.IPPROTO_TCP, 18, 500)  # TCP_USER_TIMEOUT, in ms
    attempt(sock, family, target, 'ETIMEDOUT').close()
    for sock in [*connected, first, listener]:
        sock.close()
in_threads(attempts)
finish()
'''
# The SYN/ACK, then the first of many segments are lost, and sent again. It says what the kernel counted.
LOSE = COMMON + '''
def snmp():
    with open('/proc/self/net/snmp') as file:
        names, values = [line.split() for line in file if line.startswith('Tcp:')]
    return int(values[names.index('RetransSegs')])

def total_retrans(sock):
    return struct.unpack_from('I', sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 100)[0]

def lose(family):
    listener = bound(family, 16)
    target, client = listener.getsockname(), bound(family)
    client.setblocking(False)
    drop(client)
    assert client.connect_ex(target[:2]) == errno.EINPROGRESS
    while not drops(client):
        time.sleep(0.001)
    take(client)
    client.setblocking(True)
    client.settimeout(60)
    while client.connect_ex(target[:2]) not in (0, errno.EISCONN):
        time.sleep(0.001)
    server, _ = listener.accept()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    client.sendall(bytes(1000))
    receive(server, 1000)
    drop(server)
    client.sendall(bytes(100000))
    while not drops(server):
        time.sleep(0.001)
    take(server)
    receive(server, 100000)
    server.sendall(b'x')
    receive(client, 1)  # so the client has an answer to each of its segments
    one = ends(client.getsockname(), target)
    client.shutdown(socket.SHUT_WR)
    assert server.recv(1) == b''
    server.close()
    assert client.recv(1) == b''
    done.append(dict(one, client=total_retrans(client)))
    client.close()
    listener.close()
in_threads(lose)
finish(snmp)
'''
LONG_S = 0.5
NAMES = {'role': 'bpfpush.tcp.role', 'sent': 'bpfpush.tcp.bytes_sent', 'received': 'bpfpush.tcp.bytes_received'}


def as_text(event):
    return json.dumps(event, sort_keys=True)


def as_set(events):
    return sorted(map(as_text, events))


def ports_of(attributes):
    return attributes['network.local.port'], attributes['network.peer.port']


class TcpTest(unittest.TestCase):
    def run_once(self, collector, is_apart, options, *words):
        """-> (events, what the workload did, stderr)"""
        with Cgroup('tcp') as cgroup, Cgroup('elsewhere') as other, tempfile.NamedTemporaryFile('r') as file:
            words = [word.replace('ELSEWHERE', other.procs) for word in words]
            options = ['--format=json', f'--set={collector}.rate_limit=0', *options]
            output, errors = show(collector, cgroup, options, words[0], cgroup.procs, file.name, is_apart, *words[1:])
            events = [json.loads(line) for line in output.splitlines()]
            truth = json.load(file)
        for event in events:
            self.assertEqual((event['collector'], event['attributes'].pop(OWNER)), (collector, cgroup.path))
        return events, truth, errors

    def run_workload(self, collector, is_apart, options, *words):
        return run_unhidden(lambda: self.run_once(collector, is_apart, options, *words), 'sock/inet_sock_set_state',
                            'tcp/tcp_retransmit_synack', 'tcp/tcp_retransmit_skb')


class ConnectionTest(TcpTest):
    def check(self, n, is_apart, *words):
        events, truth, errors = self.run_workload('connection', is_apart, [], *words)
        is_refused = 'the kernel refused connection_accept' in errors and 'lets nobody attach to functions' in errors
        self.assertTrue(is_refused or not errors, errors)
        seen, expected, at_least = [], [], {}
        for one in truth['done']:
            length_s = one.pop('at_least', 0)
            # There, a process that did not connect is known if it closes.
            if one.pop('is_unseen', False) and is_refused:
                del one['process.pid'], one['thread.name']
            expected.append({NAMES.get(key, key): value for key, value in one.items()})
            # Ports alone are not enough: the kernel uses those of a connection that was reset again.
            at_least.setdefault(as_text(expected[-1]), []).append(length_s)
        for event in events:
            attributes = event['attributes']
            duration = attributes.pop('bpfpush.tcp.connection.duration')
            attributes.pop('bpfpush.tcp.retransmits')
            self.assertEqual(event['event'], 'network.connection')
            self.assertTrue(min(at_least.get(as_text(attributes), [0])) <= duration <= truth['length_s'], event)
            seen.append(attributes)
        self.assertEqual(len(expected), n)
        self.assertEqual(as_set(seen), as_set(expected))

    def test_each_end_of_each_connection_is_there(self):
        self.check(2100, 'no', EXCHANGE, '350', 'ELSEWHERE')

    def test_in_another_network_namespace(self):
        self.check(300, 'yes', EXCHANGE, '50', 'ELSEWHERE')

    def test_those_that_end_in_other_ways(self):
        self.check(18, 'yes', ENDS)

    def test_retransmits_are_those_of_the_kernel(self):
        events, truth, _ = self.run_workload('connection', 'yes', [], LOSE)
        for one in truth['done']:
            client = one.pop('client')
            mine = [event['attributes'] for event in events if one.items() <= event['attributes'].items()]
            self.assertEqual([event['bpfpush.tcp.retransmits'] for event in mine], [client])


class ConnectTest(TcpTest):
    def check(self, is_apart, options, is_shown):
        """is_shown: of an attempt, and whether it may have taken long; None: that is not known"""
        events, truth, errors = self.run_workload('connect', is_apart, options, CONNECT)
        self.assertEqual(errors, '')
        at_most, expected, unknown = {}, [], []
        for one in truth['done']:
            at_most.setdefault(ports_of(one), []).append(one.pop('at_most'))
            answer = is_shown(one, at_most[ports_of(one)][-1] >= LONG_S)
            if answer is None:
                unknown.append(one)
            elif answer:
                expected.append(one)
        for event in events:
            attributes = event['attributes']
            self.assertEqual(event['event'], 'network.connect')
            duration = attributes.pop('bpfpush.tcp.connect.duration')
            self.assertTrue(0 < duration <= max(at_most[ports_of(attributes)]), event)
        self.assertEqual(len(truth['done']), 3 * 52)
        self.assertEqual(as_set(event['attributes'] for event in events if event['attributes'] not in unknown),
                         as_set(expected))

    def test_each_attempt_is_there_with_its_error(self):
        self.check('no', [], lambda one, _: True)

    def test_only_those_that_failed_in_another_network_namespace(self):
        self.check('yes', ['--set=connect.only_failed=yes'], lambda one, _: 'error.type' in one)

    def test_only_those_that_took_long(self):
        self.check('no', ['--set=connect.min_duration=%dms' % (LONG_S * 1e3)],
                   lambda one, is_long: one.get('error.type') == 'ETIMEDOUT' or (None if is_long else False))


class AcceptTest(TcpTest):
    def test_each_accepted_connection_is_there(self):
        try:
            events, truth, errors = self.run_workload('accept', 'yes', [], EXCHANGE, '350', 'ELSEWHERE')
        except harness.subprocess.CalledProcessError as error:
            if b'the kernel refused all programs' in error.stderr:
                self.skipTest('needs a kernel that allows fexit or kprobes')
            raise
        self.assertEqual((errors, {event['event'] for event in events}), ('', {'network.accept'}))
        expected = [{key: value for key, value in one.items() if key.startswith(('network.', 'process.', 'thread.'))}
                    for one in truth['done'] if one['role'] == 'server']
        self.assertEqual(len(expected), 1050)
        self.assertEqual(as_set(event['attributes'] for event in events), as_set(expected))


class RetransmitTest(TcpTest):
    def test_each_segment_is_there_that_the_kernel_counted(self):
        events, truth, errors = self.run_workload('retransmit', 'yes', [], LOSE)
        events = [event['attributes'] for event in events]
        self.assertEqual((errors, sum(event['bpfpush.tcp.segments'] for event in events)), ('', truth['counted']))
        for one in truth['done']:
            client = one.pop('client')
            mine = [event for event in events if one.items() <= event.items()]
            self.assertEqual(sum(event['bpfpush.tcp.segments'] for event in mine), client)
            self.assertLessEqual({'syn_sent', 'established'}, {event['network.connection.state'] for event in mine})
            self.assertGreater(client, 2)
        self.assertIn('syn_received', {event['network.connection.state'] for event in events})  # of the listener


if __name__ == '__main__':
    harness.main()
