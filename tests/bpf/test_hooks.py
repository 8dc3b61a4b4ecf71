# SPDX-License-Identifier: Apache-2.0
"""Hooks that a descriptor names: own/hooks, whose sections hold no targets."""
import ctypes
import os
import shlex
import subprocess
import tempfile
import unittest

import harness
from harness import once, workload

HERE = os.path.dirname(os.path.realpath(__file__))
N = 500
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000  # sched.h, sys/mount.h
METRIC = """[collector]
description = test
[metric runs]
name = test.runs
unit = {run}
description = test
"""


def mount_tracefs():
    """For this process and its children alone."""
    libc = ctypes.CDLL(None)
    libc.unshare(CLONE_NEWNS)
    libc.mount(b'none', b'/', None, MS_REC | MS_PRIVATE, None)
    libc.mount(b'tracefs', b'/sys/kernel/tracing', b'tracefs', 0, None)


class Hooks(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-hooks.'))
        subprocess.run([*shlex.split(os.environ['BPF_COMPILE']), '-c', os.path.join(HERE, 'own', 'hooks.bpf.c'),
                        '-o', os.path.join(self.directory, 'hooks.bpf.o')], check=True)

    def once(self, programs, n=N, **options):
        """programs: {name: its keys}; all others are off. Returns what each hook has counted, and what was done."""
        names = ['call', 'function_return', 'mark', 'classic', 'raw', 'btf', 'fault', 'switched', 'tick']
        text = METRIC
        for name in names:
            text += '[program %s]\n%s' % (name, programs.get(name, 'when = off\n'))
        with open(os.path.join(self.directory, 'hooks.conf'), 'w', encoding='utf-8') as file:
            file.write(text)
        seen = once(['hooks'], [workload('noted'), str(n)], params={'agent': {'collector_directory': self.directory}}, **options)
        self.assertEqual(seen.stderr, '')
        return {hook: int(total) for hook, total in seen.by('hooks.hook').items()}, seen.expected


class TargetTest(Hooks):
    def test_a_target_of_a_program_in_a_file(self):
        path = workload('noted')
        counted, done = self.once({'call': 'target = %s:noted_function\n' % path,
                                   'function_return': 'target = noted_function\nbinary = %s\n' % path,
                                   'mark': 'target = workload:noted\nbinary = %s\n' % path})
        self.assertEqual(counted, {'call': N, 'return': N, 'mark': N})
        self.assertEqual(done['calls'], N)

    def test_a_library_by_its_short_name(self):
        counted, _ = self.once({'call': 'target = libc:nanosleep\n', 'function_return': 'target = nanosleep\nbinary = libc\n'})
        self.assertEqual(counted, {'call': N, 'return': N})

    def test_targets_of_tracepoints(self):
        counted, done = self.once({'classic': 'target = syscalls/sys_enter_getrusage\n', 'raw': 'target = task_rename\n',
                                   'btf': 'target = task_rename\n'}, preexec_fn=mount_tracefs)
        # getrusage is called twice as "noted", and the task is renamed once while it has that name.
        self.assertEqual(counted, {'classic': 2, 'raw': 1, 'btf': 1})


class EventTest(Hooks):
    def test_each_fault_and_each_switch_is_counted(self):
        counted, done = self.once({'fault': 'event = page-faults\n', 'switched': ''})
        self.assertEqual(counted, {'fault': done['faults'], 'switch': done['switches']})
        self.assertGreaterEqual(done['faults'], N)
        self.assertGreaterEqual(done['switches'], N)

    def test_a_period_is_kept(self):
        counted, done = self.once({'fault': 'event = page-faults\nperiod = 10\n'})
        # Faults are counted for each CPU, and what is left over from others comes first.
        self.assertAlmostEqual(counted['fault'], done['faults'] / 10, delta=1 + os.cpu_count())


if __name__ == '__main__':
    harness.main()
