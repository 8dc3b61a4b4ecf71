# SPDX-License-Identifier: Apache-2.0
"""Probes that report events, and conditions: the calls of a workload that makes known ones, each and in order."""
import json
import os
import shutil
import subprocess
import sys
import unittest

import harness
from harness import OWNER, PATIENCE_S, Cgroup, agent, once, workload

N = 400
PATH = workload('probed')
CALL = f'{PATH}:probed_call'
NAMES = ('first', 'second', 'third')
ENOENT = 2
# Types lines into a bash on a terminal.
TYPIST = '''
import contextlib, os, pty, sys
child, terminal = pty.fork()
if not child:
    os.execv(sys.argv[1], ['bash', '--norc', '--noprofile', '-i'])
for line in sys.argv[2:] + ['exit']:
    os.write(terminal, line.encode() + b'\\n')
with contextlib.suppress(OSError):
    while os.read(terminal, 4096):
        pass
os.waitpid(child, 0)
'''


def result(number):
    return number if number % 4 else -ENOENT


class EventTest(unittest.TestCase):
    def events(self, probe, name='probed_call'):
        """The attributes of those of the workload, without its cgroup."""
        with Cgroup('probes') as cgroup:
            done = subprocess.run([agent(), 'events', '--config=/dev/null', '--format=json', '--whole-machine',
                                   '--where=unit=' + cgroup.path, '--probe', probe, f'--set={name}.rate_limit=0', '--',
                                   'sh', '-c', 'exec "$@" >/dev/null', 'sh', PATH, cgroup.procs, str(N)],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            events = [json.loads(line) for line in done.stdout.splitlines()]
            for event in events:
                self.assertEqual((event['collector'], event['event'], event['severity']), (name, 'bpfpush.probe.' + name, 'INFO'))
                self.assertEqual(event['attributes'].pop(OWNER), cgroup.path)
            return [{key.removeprefix(name + '.'): value for key, value in event['attributes'].items()} for event in events]

    def test_each_call_is_there_with_its_arguments_and_result(self):
        events = self.events(f'event uretprobe:{CALL} show arg0:s32, arg1:text, ret by unit')
        self.assertTrue(all(0 < event.pop('duration') < PATIENCE_S for event in events))
        self.assertEqual(events, [{'arg0': i, 'arg1': NAMES[i % 3], 'ret': result(i)} for i in range(N)])

    def test_at_the_call_there_is_no_duration(self):
        self.assertEqual(self.events(f'event uprobe:{CALL} show arg0:s32 by unit, comm'),
                         [{'arg0': i, 'thread.name': 'probed'} for i in range(N)])

    def test_only_what_fulfils_the_condition(self):
        for condition, is_wanted in (('ret < 0', lambda i: result(i) < 0), ('errno = ENOENT', lambda i: result(i) < 0),
                                     ('errno != 0', lambda i: result(i) < 0), ('errno=EPERM', lambda i: False),
                                     ('arg0:s32 >= 100', lambda i: i >= 100), ('arg0:s32 <= 7', lambda i: i <= 7),
                                     ('ret = 0x11', lambda i: result(i) == 17), ('ret != -2', lambda i: result(i) != -2),
                                     ('ret>390', lambda i: result(i) > 390), ('latency >= 1h', lambda i: False),
                                     ('latency < 1h', lambda i: True)):
            with self.subTest(condition):
                events = self.events(f'event uretprobe:{CALL} show arg0:s32 by unit only {condition}')
                self.assertEqual([event['arg0'] for event in events], [i for i in range(N) if is_wanted(i)])

    def test_the_upper_half_of_an_int_is_anything(self):
        probe = f'event uretprobe:{PATH}:probed_error show arg0:s32, ret:s32 by unit only ret:s32 < 0'
        self.assertEqual([(event['arg0'], event['ret']) for event in self.events(probe, 'probed_error')],
                         [(i, -ENOENT) for i in range(N) if result(i) < 0])

    def test_counts_have_conditions_too(self):
        probes = {'few': {'hook': 'uretprobe:' + CALL, 'by': 'unit', 'only': 'errno = ENOENT'},
                  'large': {'hook': 'uretprobe:' + CALL, 'by': 'unit', 'measure': 'sum ret', 'only': 'ret > 100'},
                  'times': {'hook': 'uprobe:' + CALL, 'by': 'unit', 'measure': 'latency', 'only': 'latency > 1h'},
                  'named': {'hook': 'uprobe:' + CALL, 'by': 'unit, arg1:text', 'only': 'arg0:s32 < 9'}}
        with Cgroup('probes') as cgroup:
            seen = once([*probes], [PATH, cgroup.procs, N], params={'probe ' + name: keys for name, keys in probes.items()})
            mine = seen.of(cgroup)
        self.assertEqual(mine.total('bpfpush.probe.few'), sum(result(i) < 0 for i in range(N)))
        self.assertEqual(mine.total('bpfpush.probe.large'), sum(i for i in map(result, range(N)) if i > 100))
        self.assertFalse(mine.total('bpfpush.probe.times.duration'))
        self.assertEqual(mine.by('named.arg1', 'bpfpush.probe.named'), {name: 3 for name in NAMES})

    @unittest.skipUnless(shutil.which('bash') and os.path.exists('/dev/ptmx'), 'needs bash and a terminal')
    def test_lines_that_are_typed_into_bash(self):
        bash = os.path.realpath(shutil.which('bash'))
        lines = ['true one two', 'true \u00e4 "quoted"', 'true ' + 'x' * 300]
        done = subprocess.run([agent(), 'events', '--config=/dev/null', '--format=json', '--set=readline.rate_limit=0', '--probe',
                               f'event uretprobe:{bash}:readline show ret:text by comm', '--', sys.executable, '-c', TYPIST, bash, *lines],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if 'has no symbol' in done.stderr:
            self.skipTest('needs a bash with the symbol readline')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        events = [json.loads(line)['attributes'] for line in done.stdout.splitlines()]
        self.assertEqual([event['readline.ret'] for event in events], lines[:2] + [lines[2][:255], 'exit'])
        self.assertEqual({event['thread.name'] for event in events}, {'bash'})


if __name__ == '__main__':
    harness.main()
