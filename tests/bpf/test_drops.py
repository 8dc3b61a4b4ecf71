# SPDX-License-Identifier: Apache-2.0
"""
Dropped packets, equal to the counters of a network namespace of the test's own (nstat's). The whole machine is counted:
what others drop may come on top.
"""
import os
import sys
import unittest

import harness
from harness import ANY, check_counted, once
from hidden import run_and_count_others

DROPPED, REASON, TYPE, FUNCTION = 'bpfpush.network.packet.dropped', 'bpfpush.network.drop.reason', 'network.type', 'code.function.name'

# In a network namespace of its own: what to do, how often, and to which address. Prints how counters grew.
WORKLOAD = '''
import ctypes, fcntl, json, os, socket, struct, sys
what, n, address = sys.argv[1], int(sys.argv[2]), sys.argv[3]
assert not ctypes.CDLL(None).unshare(0x40000000)
family = socket.AF_INET6 if ':' in address else socket.AF_INET
plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(plain, 0x8914, struct.pack('16sH14x', b'lo', 1))  # SIOCSIFFLAGS: up

def counters():
    seen = {}
    for line in open('/proc/net/snmp6'):
        seen[line.split()[0]] = int(line.split()[1])
    lines = open('/proc/net/snmp').read().splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        kind = names.split(':')[0]
        seen.update({kind + name: int(value) for name, value in zip(names.split()[1:], values.split()[1:])})
    return seen

before = counters()
sender, receiver = socket.socket(family, socket.SOCK_DGRAM), socket.socket(family, socket.SOCK_DGRAM)
if what == 'full':
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
if what != 'none':
    receiver.bind((address, 9))
for i in range(n):
    sender.sendto(b'x' * 500, (address, 9))
    if what == 'read':
        receiver.recv(500)
after = counters()
grown = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
print(json.dumps(dict(grown, pid=os.getpid())), flush=True)
'''


class DropsTest(unittest.TestCase):
    def count(self, *words, **params):
        """What was counted, how the counters grew, and how many packets others dropped."""
        seen, others = run_and_count_others(lambda: once(['drops'], [sys.executable, '-c', WORKLOAD, *words], {'drops': params}),
                                            'skb/kfree_skb', '')
        return seen, seen.expected, others

    def check_reason(self, words, counter, reason, network_type):
        seen, grown, others = self.count(*words)
        self.assertGreater(grown[counter], 0)
        check_counted(self, seen.total(DROPPED, **{REASON: reason, TYPE: network_type}), grown[counter], seen, 'drops', others=others)

    def test_datagrams_to_no_socket(self):
        self.check_reason(['none', '500', '127.0.0.1'], 'UdpNoPorts', 'NO_SOCKET', 'ipv4')

    @unittest.skipUnless(os.path.exists('/proc/net/if_inet6'), 'needs IPv6')
    def test_datagrams_to_no_socket_over_ipv6(self):
        self.check_reason(['none', '300', '::1'], 'Udp6NoPorts', 'NO_SOCKET', 'ipv6')

    def test_datagrams_to_a_full_socket(self):
        self.check_reason(['full', '400', '127.0.0.1'], 'UdpRcvbufErrors', 'SOCKET_RCVBUFF', 'ipv4')

    def test_datagrams_that_arrive_are_not_dropped(self):
        seen, grown, others = self.count('read', '350', '127.0.0.1')
        self.assertEqual(grown['UdpInDatagrams'], 350)
        self.assertLess(seen.total(DROPPED), 350 + others)

    def test_the_function_that_dropped(self):
        seen, grown, others = self.count('none', '200', '127.0.0.1', function='yes')
        counts = [n for n in seen.by(FUNCTION, DROPPED).values() if n <= grown['UdpNoPorts'] + others]
        check_counted(self, max(counts, default=0), grown['UdpNoPorts'], seen, 'drops', others=others)
        self.assertFalse(self.count('none', '200', '127.0.0.1')[0].select(**{FUNCTION: ANY}))


if __name__ == '__main__':
    harness.main()
