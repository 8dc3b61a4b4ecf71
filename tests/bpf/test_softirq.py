# SPDX-License-Identifier: Apache-2.0
"""
Softirqs: at least as many as the kernel ran the program for, and between what /proc/softirqs counts while they are
counted and what it counts around that.
"""
import collections
import sys
import unittest

import harness
import held
from harness import once, remembered
from hidden import run_and_find_hidden

DURATION, VECTOR = 'bpfpush.softirq.duration', 'bpfpush.softirq.vector'
DATAGRAMS = 20000

# Makes softirqs: each datagram is received in one. Prints how /proc/softirqs grew, for all CPUs together.
WORKLOAD = '''
import json, socket, sys

def counts():
    with open('/proc/softirqs') as file:
        lines = [line.split() for line in file][1:]
    return {words[0].rstrip(':').lower(): sum(int(word) for word in words[1:]) for words in lines}

def work():
    sender, receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(('127.0.0.1', 0))
    for i in range(int(sys.argv[1])):
        sender.sendto(b'x', receiver.getsockname())
        receiver.recv(1)
'''
INSIDE = WORKLOAD + held.INSIDE + '''
before, runs_before = counts(), held.runs_of(os.getppid())['softirq_exit']
work()
n_runs = held.runs_of(os.getppid())['softirq_exit'] - runs_before
print(json.dumps({'softirqs': {name: n - before[name] for name, n in counts().items()}, 'runs': n_runs}), flush=True)
'''


class SoftirqTest(unittest.TestCase):
    @remembered
    def count(self):
        """What was counted, and how many the kernel had meanwhile, around it."""
        around = {}
        exec(WORKLOAD, around)
        before = around['counts']()
        with held.counted_runs():
            seen, hidden = run_and_find_hidden(lambda: once(['softirq'], [sys.executable, '-c', INSIDE, str(DATAGRAMS)]),
                                               'irq/softirq_exit', r'action=(\w+)')
        hidden = collections.Counter(match[1].lower() for match in hidden)
        return seen, hidden, {name: n - before[name] for name, n in around['counts']().items()}

    def test_each_vector_is_counted(self):
        seen, hidden, most = self.count()
        inside, n_runs, n_counted = seen.expected['softirqs'], seen.expected['runs'], seen.total(DURATION)['count']
        self.assertGreaterEqual(inside['net_rx'], DATAGRAMS)
        self.assertEqual(set(seen.by(VECTOR)) - set(most), set())
        print('%d softirqs, %d runs, around them %d softirqs, %d of them hidden; %d counted'
              % (sum(inside.values()), n_runs, sum(most.values()), hidden.total(), n_counted))
        self.assertGreaterEqual(n_counted, n_runs)
        for name, n in inside.items():
            with self.subTest(name):
                total = seen.total(DURATION, **{VECTOR: name}) or {'count': 0, 'sum': 0}
                # The kernel counts those that it runs no program for, too.
                self.assertGreaterEqual(total['count'], n - hidden[name])
                self.assertLessEqual(total['count'], most[name])
                self.assertEqual(total['sum'] > 0, total['count'] > 0)

    def test_times_are_those_of_handlers(self):
        seen, _, _ = self.count()
        received = seen.total(DURATION, **{VECTOR: 'net_rx'})
        span_s = max(point['time_ns'] - point['start_time_ns'] for point in seen) / 1e9
        self.assertLess(received['sum'], span_s * 2)


if __name__ == '__main__':
    harness.main()
