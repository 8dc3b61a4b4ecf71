# SPDX-License-Identifier: Apache-2.0
"""Events that the kernel does not deliver: own/skipped has a program that misses one event for every four that it
counts. Every place that shows numbers shows the loss beside them."""
import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import harness
import held
import patience
from harness import PATIENCE_S, once
from test_agent import Agent
from test_own import HERE, compile_object

NOWHERE = 1 + os.getpid() % 2000  # below the first page that a process can have
CALL = 987000 + NOWHERE
CALLS = 1000
MISSED = CALLS // 4
SHARE = MISSED / (CALLS + MISSED)
EVENTS = 'events = faults\n'
WARNING = 'numbers are too low, because the kernel skipped events: '
WORKLOAD = [sys.executable, '-c', 'import ctypes\nc = ctypes.CDLL(None)\nfor _ in range(%d): c.syscall(%d)' % (CALLS, CALL)]


def make_faults(agent):
    """So that one collection has all of them."""
    libc = ctypes.CDLL(None)
    agent.process.send_signal(signal.SIGSTOP)
    patience.wait(lambda: harness.state_of(agent.process.pid) == 'T', 'it is stopped')
    for _ in range(CALLS):
        libc.syscall(CALL)
    agent.process.send_signal(signal.SIGCONT)


class MissedTest(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-missed.'))
        self.params = {'agent': {'collector_directory': self.directory}}
        compile_object(os.path.join(HERE, 'own', 'skipped.bpf.c'), os.path.join(self.directory, 'skipped.bpf.o'),
                       '-DCALL=%d' % CALL, '-DNOWHERE=%d' % NOWHERE, '-DNOWHERE_ELSE=%d' % (NOWHERE + 2000))
        self.describe()

    def describe(self, without=''):
        with open(os.path.join(HERE, 'own', 'skipped.conf'), encoding='utf-8') as file:
            text = file.read()
        self.assertIn(without, text)
        with open(os.path.join(self.directory, 'skipped.conf'), 'w', encoding='utf-8') as file:
            file.write(text.replace(without, ''))

    def run_command(self, *words):
        whole = ['--whole-machine'] if words[0] == 'once' else []
        done = subprocess.run([harness.agent(), words[0], '--collector-directory=' + self.directory, *words[1:], *whole, 'skipped',
                               '--', *WORKLOAD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def run_uncounted(self, run, is_uncounted):
        """What run() returns if the kernel counts no runs. Others may ask for that for a moment, as `bpfpush list` does."""
        with held.statistics_locked() as file:
            if file.read().strip() != '0':
                self.skipTest('the kernel counts runs: kernel.bpf_stats_enabled')
            results = []

            def run_again():
                results[:] = [run()]
                return is_uncounted(results[0])
            patience.wait(run_again, lambda: 'a run that the kernel does not count; the last one: %s' % results[0])
            return results[0]

    def test_once_has_points_for_it(self):
        seen = once(['skipped'], WORKLOAD, params=self.params)
        self.assertEqual(seen.total('test.faults'), CALLS)
        mine = {'bpfpush.collector.name': 'skipped', 'bpfpush.program.name': 'page_fault'}
        [missed] = seen.select('bpfpush.bpf.program.event.missed')
        self.assertEqual((missed['total'], missed['attributes']), (MISSED, mine))
        [ratio] = seen.select('bpfpush.bpf.program.event.missed_ratio')
        self.assertEqual((ratio['value'], ratio['attributes']), (SHARE, mine))
        self.assertIn(WARNING + 'skipped by about 20 % (page_fault)\n', seen.stderr)

    def test_once_says_it_beside_the_numbers(self):
        done = self.run_command('once')
        self.assertIn('\ntest.faults (fault), 20 % missed\n', done.stdout)
        self.assertRegex(done.stdout, r'\n  skipped +page_fault +%d ' % MISSED)
        self.describe(without=EVENTS)
        text = self.run_uncounted(lambda: self.run_command('once').stdout, lambda text: 'missed_ratio' not in text)
        self.assertIn('\ntest.faults (fault), %d events missed\n' % MISSED, text)

    def test_without_a_loss_nothing_is_said(self):
        seen = once(['skipped'], ['/bin/true'], params=self.params)
        self.assertEqual([point['name'] for point in seen if point['collector'] == 'self'], [])
        self.assertEqual(seen.stderr, '')

    def test_where_the_runs_are_not_known_the_number_of_missed_events_is_said(self):
        self.describe(without=EVENTS)
        seen = self.run_uncounted(lambda: once(['skipped'], WORKLOAD, params=self.params),
                                  lambda seen: not seen.select('bpfpush.bpf.program.event.missed_ratio'))
        self.assertEqual(seen.total('bpfpush.bpf.program.event.missed'), MISSED)
        self.assertEqual(seen.select('bpfpush.bpf.program.event.missed_ratio'), [])
        self.assertIn(WARNING + 'skipped by up to %d events (page_fault)\n' % MISSED, seen.stderr)

    def test_list_has_it_of_each_program(self):
        self.assertRegex(self.run_command('list').stdout, r'\n  page_fault .* %d \(20 %%\)\n' % MISSED)
        # Here the kernel counts runs, which include what others fault.
        self.describe(without=EVENTS)
        programs = {each['name']: each for each in json.loads(self.run_command('list', '--json').stdout)['programs']}
        program = programs['page_fault']
        self.assertEqual(program['missed'], MISSED)
        self.assertGreaterEqual(program['runs'], CALLS)
        self.assertAlmostEqual(program['missed_ratio'], MISSED / (program['runs'] + MISSED), delta=1e-8)
        self.assertEqual(programs['call']['missed_ratio'], 0)

    def test_a_running_agent_says_it_once_and_when_it_is_over(self):
        path = os.path.join(self.directory, 'notify')
        manager = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        manager.bind(path)
        manager.settimeout(PATIENCE_S)

        def wait_for_status(pattern):
            while not re.search(pattern, manager.recv(4096).decode()):
                pass

        agent = self.enterContext(Agent({'NOTIFY_SOCKET': path}, collectors='skipped',
                                        more='collector_directory = %s\n' % self.directory))
        wait_for_status('; file: delivered [0-9]+ s ago$')
        for times in (1, 2):
            make_faults(agent)
            wait_for_status(r'; numbers are too low: skipped by about 20 % \(page_fault\); file: delivered [0-9]+ s ago$')
            wait_for_status('; file: delivered [0-9]+ s ago$')
            agent.wait(lambda _, times=times: agent.messages().count('the kernel no longer skips events\n') == times)
            self.assertEqual(agent.messages().count(WARNING), times)
        points = [point for points in agent.wait_for_more(1) + agent.collections() for point in points]
        missed = [point['total'] for point in points if point['name'] == 'bpfpush.bpf.program.event.missed'
                  and point['attributes']['bpfpush.program.name'] == 'page_fault']
        self.assertEqual((min(missed), max(missed)), (0, 2 * MISSED))
        ratios = [point['value'] for point in points if point['name'] == 'bpfpush.bpf.program.event.missed_ratio'
                  and point['attributes']['bpfpush.program.name'] == 'page_fault']
        self.assertEqual(set(ratios), {0, SHARE})


if __name__ == '__main__':
    lacks = None if os.uname().machine == 'x86_64' else 'page_fault_kernel: a tracepoint of x86-64'
    if lacks:
        print('skipped: needs %s' % lacks)
        sys.exit(harness.SKIP_STATUS)
    harness.main()
