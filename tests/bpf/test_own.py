# SPDX-License-Identifier: Apache-2.0
"""A user's own pairs, dropped into a directory with nothing rebuilt: the one that CONTRIBUTING.md shows, to the
letter, and own/timers, which has a kernel function, an enum, a histogram, a signed gauge and a setting."""
import os
import re
import shlex
import subprocess
import tempfile
import unittest

import harness
from harness import Cgroup, once

HERE = os.path.dirname(os.path.realpath(__file__))
CONTRIBUTING = os.path.join(HERE, '..', '..', 'CONTRIBUTING.md')
EXECS = 7


def compile_object(source, to):
    subprocess.run([*shlex.split(os.environ['BPF_COMPILE']), '-c', source, '-o', to], check=True)


class OwnTest(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-own.'))

    def file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def install_example(self):
        with open(CONTRIBUTING, encoding='utf-8') as file:
            text = file.read()
        source = re.search(r'```c\n(.*?)```', text, re.S).group(1)
        descriptor = re.search(r'```ini\n(.*?)```', text, re.S).group(1)
        self.file('exec.conf', descriptor)
        compile_object(self.file('exec.bpf.c', source), os.path.join(self.directory, 'exec.bpf.o'))

    def install_timers(self):
        with open(os.path.join(HERE, 'own', 'timers.conf'), encoding='utf-8') as file:
            self.file('timers.conf', file.read())
        compile_object(os.path.join(HERE, 'own', 'timers.bpf.c'), os.path.join(self.directory, 'timers.bpf.o'))

    def params(self, **settings):
        return dict(settings, agent={'collector_directory': self.directory})

    def test_the_example_of_the_manual_counts_every_exec(self):
        self.install_example()
        script = self.file('script', '#!/bin/sh\ntrue\n')
        os.chmod(script, 0o755)
        with Cgroup('own') as cgroup:
            lines = ''.join('%s; /bin/true; ' % script for _ in range(EXECS))
            seen = once(['exec'], cgroup.command(['/bin/sh', '-c', lines + 'true']), params=self.params())
            mine = seen.of(cgroup)
        self.assertEqual(mine.total('process.execs', **{'process.exec.kind': 'script'}), EXECS)
        # /bin/true each time, and the shell itself
        self.assertEqual(mine.total('process.execs', **{'process.exec.kind': 'binary'}), EXECS + 1)
        self.assertNotIn('exec.unused', str(list(seen)))

    def test_timers_have_names_kinds_delays_and_a_level(self):
        self.install_timers()
        seen = once(['timers'], ['/bin/sleep', '1'], params=self.params())
        starts = seen.select('bpfpush.timer.starts')
        delays = seen.select('bpfpush.timer.delay')
        self.assertGreater(starts.total(), 0)
        self.assertEqual(starts.total(), delays.total()['count'])
        names = {point['attributes']['bpfpush.timer.function'] for point in starts}
        self.assertTrue(all(re.fullmatch(r'[A-Za-z_][\w.]*', name) for name in names), names)
        kinds = {point['attributes']['bpfpush.timer.kind'] for point in starts}
        self.assertLessEqual(kinds, {'plain', 'deferrable', 'pinned'})
        levels = seen.select('bpfpush.timer.pending')
        self.assertTrue(levels)
        # What was started and is neither done nor cancelled: never below 0, never more than was started.
        for point in levels:
            self.assertGreaterEqual(point['value'], 0, point)
            self.assertLessEqual(point['value'], starts.total(), point)

    def test_a_setting_of_its_own_takes_programs_out(self):
        self.install_timers()
        seen = once(['timers'], ['/bin/sleep', '0.3'], params=self.params(timers={'pending': 'no'}))
        self.assertGreater(seen.total('bpfpush.timer.starts'), 0)
        self.assertFalse(seen.select('bpfpush.timer.pending'))


if __name__ == '__main__':
    harness.main()
