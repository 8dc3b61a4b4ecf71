# SPDX-License-Identifier: Apache-2.0
"""The dns collector: every lookup of a known number of lookups, and how they failed."""
import sys
import unittest

import harness
from harness import Cgroup, once

DURATION = 'dns.lookup.duration'
# None of these asks a server. Each prints nothing, and fails as it should.
LOOKUPS = """
import ctypes, socket
libc = ctypes.CDLL(None)
def look(name, flags, n):
    for _ in range(n):
        try:
            socket.getaddrinfo(name, None, flags=flags)
        except socket.gaierror:
            pass
look('127.0.0.1', socket.AI_NUMERICHOST, 70)
look('no.number', socket.AI_NUMERICHOST, 50)
look('127.0.0.1', 1 << 30, 30)
for _ in range(20):
    libc.gethostbyname(b'127.0.0.1')
for _ in range(10):
    libc.gethostbyname2(b'127.0.0.1', socket.AF_INET)
for _ in range(5):
    libc.gethostbyname2(b'1.2.3.4.5', socket.AF_INET)
"""


class DnsTest(unittest.TestCase):
    def look(self, params=None):
        with Cgroup('dns') as cgroup:
            return once(['dns'], cgroup.command([sys.executable, '-c', LOOKUPS]), params).of(cgroup)

    def test_every_lookup_is_counted_with_its_error(self):
        seen = self.look()
        counts = {error: seen.total(DURATION, **{'error.type': error})['count'] for error in seen.by('error.type', DURATION)}
        self.assertEqual(counts, {None: 100, 'EAI_NONAME': 50, 'EAI_BADFLAGS': 30, 'failed': 5})
        total = seen.total(DURATION)
        self.assertEqual(sum(total['buckets'].values()), 185)
        self.assertTrue(0 < total['sum'] < seen.length_s(), (total['sum'], seen.length_s()))

    def test_lookups_belong_to_their_process(self):
        seen = self.look({'dns': {'per_process': 'yes'}})
        self.assertEqual(seen.total(DURATION)['count'], 185)
        self.assertEqual(len(seen.by('process.pid', DURATION)), 1)


if __name__ == '__main__':
    harness.main()
