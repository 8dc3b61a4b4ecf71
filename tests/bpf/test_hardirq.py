# SPDX-License-Identifier: Apache-2.0
"""
Interrupts of devices: at least as many as the kernel ran the program for, and between what /proc/interrupts counts
while they are counted and what it counts around that.
"""
import collections
import sys
import tempfile
import unittest

import harness
import held
from harness import once, remembered
from hidden import run_and_find_hidden

DURATION, NUMBER, NAME = 'bpfpush.hardirq.duration', 'bpfpush.hardirq.number', 'bpfpush.hardirq.name'

# Makes interrupts of a disk. Prints how /proc/interrupts grew.
WORKLOAD = '''
import json, mmap, os, sys, time

def counts():
    """{number: count} of numbered interrupts, for all CPUs together."""
    with open('/proc/interrupts') as file:
        lines = [line.split() for line in file]
    return {words[0][:-1]: sum(int(word) for word in words[1:1 + len(lines[0])]) for words in lines[1:] if words[0][:-1].isdigit()}

def grown(before):
    return {number: n - before.get(number, 0) for number, n in counts().items() if n != before.get(number, 0)}
'''
INSIDE = WORKLOAD + held.INSIDE + '''
before, runs_before = counts(), held.runs_of(os.getppid())['irq_handler_exi']
file = os.open(sys.argv[1], os.O_RDWR)
for i in range(300):
    os.pwritev(file, [mmap.mmap(-1, 4096)], i * 4096)
    os.fsync(file)
n_runs = held.runs_of(os.getppid())['irq_handler_exi'] - runs_before
print(json.dumps({'interrupts': grown(before), 'runs': n_runs}), flush=True)
time.sleep(0.1)  # the kernel counts an interrupt before its handler runs
'''


class HardirqTest(unittest.TestCase):
    @remembered
    def count(self):
        """What was counted, how many the kernel ran no program for, and how many it had meanwhile, around it."""
        around = {}
        exec(WORKLOAD, around)
        with tempfile.NamedTemporaryFile(dir='/var/tmp') as file:
            before = around['counts']()
            with held.counted_runs():
                seen, hidden = run_and_find_hidden(lambda: once(['hardirq'], [sys.executable, '-c', INSIDE, file.name]),
                                                   'irq/irq_handler_exit', r'irq=(\d+)')
        return seen, collections.Counter(match[1] for match in hidden), around['grown'](before)

    def test_each_interrupt_is_counted(self):
        seen, hidden, most = self.count()
        inside, n_runs, n_counted = seen.expected['interrupts'], seen.expected['runs'], seen.total(DURATION)
        if not inside:
            self.skipTest('needs a device that makes numbered interrupts')
        self.assertLessEqual({str(number) for number in seen.by(NUMBER)}, set(most))
        n_counted = n_counted['count'] if n_counted else 0
        print('%d interrupts, %d runs, around them %d interrupts, %d of them hidden; %d counted'
              % (sum(inside.values()), n_runs, sum(most.values()), hidden.total(), n_counted))
        self.assertGreaterEqual(n_counted, n_runs)
        for number, n in inside.items():
            with self.subTest(number):
                least = n - hidden[number]  # the kernel counts those that it runs no program for, too
                points = seen.select(DURATION, **{NUMBER: int(number)})
                self.assertTrue(points or least <= 0)
                for total in (point['total'] for point in points):  # each handler runs each time
                    self.assertGreaterEqual(total['count'], least)
                    self.assertLessEqual(total['count'], most[number])
                    self.assertGreater(total['sum'], 0)

    def test_an_interrupt_has_the_name_of_its_handler(self):
        seen, _, _ = self.count()
        for point in seen.select(DURATION):
            with open('/sys/kernel/irq/%d/actions' % point['attributes'][NUMBER]) as actions:
                self.assertIn(point['attributes'][NAME], actions.read().strip().split(','))


if __name__ == '__main__':
    harness.main()
