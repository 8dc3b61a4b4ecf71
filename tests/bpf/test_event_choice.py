# SPDX-License-Identifier: Apache-2.0
"""Events of units that nobody asks for stay in the kernel: a flood of them takes nothing from those that are asked for."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import harness
import json_lines
import patience
from harness import OWNER, Cgroup
from manager import Manager

FEW, LIMIT = 200, 5000
# Opens a file again and again, and says when it has begun.
FLOOD = '''
import os
os.close(os.open('/dev/null', os.O_RDONLY))
print('begun', flush=True)
while True:
    os.close(os.open('/dev/null', os.O_RDONLY))
'''
# Opens files that are not there, a few at a time.
ASK = '''
import os, sys, time
time.sleep(float(sys.argv[3]))
for i in range(int(sys.argv[2])):
    try:
        os.open('%s/%d' % (sys.argv[1], i), os.O_RDONLY)
    except FileNotFoundError:
        pass
    time.sleep(0.002)
'''


class EventChoiceTest(unittest.TestCase):
    def flood(self):
        """A cgroup whose process opens files all the time."""
        cgroup = self.enterContext(Cgroup('flood'))
        process = subprocess.Popen(cgroup.command([sys.executable, '-c', FLOOD]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b'begun\n')
        return cgroup

    def test_a_command_alone_loses_nothing_to_a_flood_of_others(self):
        self.flood()
        done = subprocess.run([harness.agent(), 'events', 'open', '--config=/dev/null', '--format=json', '--set=open.rate_limit=%d' % LIMIT,
                               '--', sys.executable, '-c', ASK, '/not-there', str(FEW), '1'],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience.PATIENCE_S, check=True)
        paths = [json.loads(line)['attributes'].get('file.path', '') for line in done.stdout.splitlines()]
        self.assertEqual([path for path in paths if path.startswith('/not-there')], ['/not-there/%d' % i for i in range(FEW)])

    def test_a_unit_alone_loses_nothing_to_a_flood_of_others(self):
        self.flood()
        with Cgroup('choice') as cgroup:
            done = subprocess.run([harness.agent(), 'events', 'open', '--config=/dev/null', '--format=json', '--set=open.rate_limit=%d' % LIMIT,
                                   '--where=unit=' + cgroup.path, '--whole-machine', '--',
                                   *cgroup.command([sys.executable, '-c', ASK, '/not-there', str(FEW), '1'])],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience.PATIENCE_S, check=True)
        events = [json.loads(line)['attributes'] for line in done.stdout.splitlines()]
        self.assertEqual({event[OWNER] for event in events}, {cgroup.path})
        self.assertEqual([event['file.path'] for event in events if event['file.path'].startswith('/not-there')],
                         ['/not-there/%d' % i for i in range(FEW)])

    def test_what_was_not_wanted_may_be_wanted_after_a_reload(self):
        cgroups = [self.enterContext(Cgroup(name)) for name in ('first', 'second')]
        directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-'))
        config, events, log = (os.path.join(directory, name) for name in ('agent.conf', 'events', 'log'))

        def choose(cgroup):
            with open(config, 'w') as file:
                file.write('[agent]\ninterval = 1s\ncollectors = open\ninclude_units = %s\n[collector open]\nrate_limit = 0\n'
                           '[exporter events]\ntype = json\nsignals = events\npath = %s\n' % (cgroup.path, events))

        def seen(place):
            return [(event['attributes'][OWNER], event['attributes']['file.path']) for event in json_lines.points(json_lines.read(events))
                    if event['attributes'].get('file.path', '').startswith(place + '/')]

        def ask(place):
            for cgroup in cgroups:
                subprocess.run(cgroup.command([sys.executable, '-c', ASK, place, '10', '0']), stdin=subprocess.DEVNULL, timeout=patience.PATIENCE_S,
                               check=True)

        with Manager() as manager, open(log, 'w') as file:
            choose(cgroups[0])
            process = manager.start([harness.agent(), 'run', '--config=' + config], stderr=file)
            manager.wait_for('READY=1')
            for i, chosen in enumerate(cgroups):
                place = '/not-there-%d' % i
                patience.wait(lambda: ask(place) or len(seen(place)) >= 20, 'events of the chosen unit', 0.1)
                self.assertEqual({owner for owner, _ in seen(place)}, {chosen.path})
                if i:
                    break
                choose(cgroups[1])
                process.send_signal(signal.SIGHUP)
                manager.wait_for('READY=1')
            process.send_signal(signal.SIGTERM)
            process.wait(patience.PATIENCE_S)


if __name__ == '__main__':
    harness.main()
