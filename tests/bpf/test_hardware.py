# SPDX-License-Identifier: Apache-2.0
"""The hardware collector, with page faults instead of events that only a processor has."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
import patience
from harness import Cgroup, once, workload
from skips import BPF

FAULTS = 20000
# {the program: its period here}, and what it counts
PERIODS = {'cycles': 1, 'instructions': 10, 'cache_references': 100, 'cache_misses': 1, 'branch_misses': 1000}
METRICS = {name: 'bpfpush.cpu.' + name.replace('cache_', 'cache.').replace('branch_', 'branch.') for name in PERIODS}


class HardwareTest(unittest.TestCase):
    def count(self, params=None):
        place = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-'))
        with open(os.path.join(BPF, 'hardware.conf'), encoding='utf-8') as file:
            text = file.read()
        for name, period in PERIODS.items():
            text, n = re.subn(r'(?m)^\[program %s\]\nevent = .*\nperiod = .*\n' % name,
                              '[program %s]\nevent = minor-faults\nperiod = %d\n' % (name, period), text)
            self.assertEqual(n, 1, name)
        with open(os.path.join(place, 'hardware.conf'), 'w', encoding='utf-8') as file:
            file.write(text)
        shutil.copy(os.path.join(os.path.dirname(harness.agent()), 'bpf', 'hardware.bpf.o'), place)
        with Cgroup('hardware') as cgroup:
            seen = once(['--collector-directory=' + place, 'hardware'],
                        [workload('memory'), cgroup.directory, 'minor', FAULTS], params)
            return seen, seen.of(cgroup), seen.expected

    def test_each_event_counts_as_often_as_its_period(self):
        everybody, seen, expected = self.count()
        self.assertGreaterEqual(expected['minor'], FAULTS)
        for name, period in PERIODS.items():
            if period == 1:
                self.assertEqual(seen.total(METRICS[name]), expected['minor'])
            self.assertEqual(seen.total(METRICS[name]) % period, 0, name)
            # Whose event ends a period is chance, but nothing is lost of all that happen on a CPU.
            self.assertAlmostEqual(everybody.total(METRICS[name]), everybody.total(METRICS['cycles']),
                                   delta=2 * period * os.cpu_count())

    def test_events_belong_to_their_process(self):
        _, seen, expected = self.count({'hardware': {'per_process': 'yes'}})
        self.assertEqual(seen.by('process.pid', METRICS['cycles']), {expected['pid']: expected['minor']})

    def test_check_knows_what_this_machine_cannot_count(self):
        objects = '--collector-directory=' + os.path.join(os.path.dirname(harness.agent()), 'bpf')
        for name in 'hardware', 'filesystem', 'pagecache':
            with tempfile.NamedTemporaryFile('w', suffix='.conf') as config:
                print(f'[agent]\ncollectors = {name}', file=config, flush=True)
                check = subprocess.run([harness.agent(), 'check', '--config=' + config.name, objects],
                                       check=True, capture_output=True, text=True, timeout=patience.PATIENCE_S)
            counts = subprocess.run([harness.agent(), 'once', '--interval=100ms', '--count=1', objects, name],
                                    check=False, capture_output=True, text=True, timeout=patience.PATIENCE_S)
            lacks = re.search(r'collector (\S+) (cannot run|is partial)', counts.stderr)
            self.assertEqual('not all of it will count here' in check.stdout, bool(lacks), check.stderr + counts.stderr)


if __name__ == '__main__':
    harness.main()
