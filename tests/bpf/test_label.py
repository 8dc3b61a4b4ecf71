# SPDX-License-Identifier: Apache-2.0
"""own/labels: keys that have names and keys that have none, for each type of label, and interfaces that come and go."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import Cgroup, once
from test_agent import Agent
from test_own import compile_object

HERE = os.path.dirname(os.path.realpath(__file__))
RUNS = 10
INDEX = 4242
# The key that has names, and the one that has none.
KNOWN = {'test.error': 'NOENT', 'test.reason': 'TGID', 'test.ether': 'ipv6', 'labels.is_ready': True,
         'labels.mac': '0200ab0001', 'test.v4': '192.0.2.1', 'test.v6': '192.0.2.2', 'labels.name': 'www.example'}
UNKNOWN = {'test.error': '-4000', 'test.reason': '99', 'test.ether': 'unknown', 'labels.is_ready': False,
           'labels.mac': '0200ab0001', 'test.v4': '192.0.2.1', 'test.v6': '2001:db8::1',
           'labels.name': b'\x3fno such name...'.hex()}
NUMBERS = {'labels.vendor': '0xfffffffe', 'labels.device': '0xfffffffe', 'labels.class': '0xfffffffe',
           'labels.subclass': '0xfffffffe', 'system.device': '4095:1048574'}
PCI_IDS = ('/usr/share/misc/pci.ids', '/usr/share/hwdata/pci.ids')


class LabelTest(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-label.'))
        shutil.copy(os.path.join(HERE, 'own', 'labels.conf'), self.directory)
        compile_object(os.path.join(HERE, 'own', 'labels.bpf.c'), os.path.join(self.directory, 'labels.bpf.o'))
        self.program = os.path.join(self.directory, 'labelled')
        shutil.copy('/bin/true', self.program)

    def count(self):
        with Cgroup('label') as cgroup:
            command = cgroup.command(['/bin/sh', '-c', f'for i in $(seq {RUNS}); do {self.program}; done; :'])
            seen = once(['labels'], command, params={'agent': {'collector_directory': self.directory}})
        return seen, cgroup.path

    def test_each_type_names_what_it_knows_and_shows_the_number_of_what_it_does_not(self):
        seen, path = self.count()
        points = seen.select('test.plain')
        # test.plain has ten keys, which only differ in a member without attribute.
        owner = {'process.linux.cgroup': path, 'labels.cgroup': path}
        self.assertEqual([dict(point['attributes'], total=point['total']) for point in
                          sorted(points, key=lambda point: point['attributes']['test.error'])],
                         [dict(UNKNOWN, total=RUNS // 2, **owner), dict(KNOWN, total=RUNS // 2, **owner)])

    def test_what_no_expression_matches_is_dropped(self):
        seen, _ = self.count()
        [point] = seen.select('test.texts')
        # A section of the map itself is stronger than that of all maps, which cuts off the E.
        self.assertEqual(point['attributes'], {'test.text': 'keep', 'test.error': 'EAGAIN'})
        self.assertEqual(point['total'], RUNS // 2)

    def test_a_stack_is_one_text(self):
        seen, _ = self.count()
        self.assertEqual(seen.total('test.stacks'), RUNS)
        with open('/proc/kallsyms', encoding='ascii') as file:
            functions = {line.split()[2] for line in file}
        for point in seen.select('test.stacks'):
            frames = point['attributes']['code.stacktrace'].split('\n')
            self.assertGreater(len(frames), 4)
            self.assertIn('bprm_execve', '\n'.join(frames))
            # The program itself is among them, and is not loaded any more; nor is a trampoline, which has no name once it
            # is gone. What a module had may be gone, too.
            kernel = {frame for frame in frames if not re.match('bpf_prog_|unknown$', frame)}
            self.assertFalse(kernel - functions)
            self.assertLessEqual(frames.count('unknown'), 1)

    def test_devices_have_names_or_numbers(self):
        seen, _ = self.count()
        self.assertEqual(seen.total('test.devices', **NUMBERS), RUNS // 2)
        [known] = [point for point in seen.select('test.devices') if 'system.device' not in point['attributes']]
        self.assertEqual(known['total'], RUNS // 2)
        attributes = {'labels.vendor': '0x8086', 'labels.device': '0x80860fff', 'labels.class': '0x02',
                      'labels.subclass': '0x0200'}
        if any(map(os.path.exists, PCI_IDS)):
            attributes.update({'labels.vendor': 'Intel Corporation', 'labels.class': 'Network controller',
                               'labels.subclass': 'Ethernet controller'})
        self.assertEqual(known['attributes'], attributes)

    def test_an_interface_that_comes_later_or_has_another_name_has_a_series_of_its_own(self):
        more = f'collector_directory = {self.directory}\n[collector labels]\ninterface = {INDEX}\n'
        with Agent(more=more, collectors='labels', before=['unshare', '--net']) as agent:
            def ip(*words):
                subprocess.run(['nsenter', '--net', f'--target={agent.process.pid}', 'ip', 'link', *words], check=True)

            def count(name, total):
                """Runs once, and waits for the series of that name to have that total."""
                subprocess.run([self.program], check=True)
                agent.wait(lambda all: any(point['attributes'] == {'network.interface.name': name} and
                                           point['total'] == total
                                           for points in all for point in points.select('test.interfaces')))

            agent.wait(lambda _: os.path.exists(agent.output) and os.path.getsize(agent.output))
            count(str(INDEX), 1)
            ip('add', 'name', 'first', 'index', str(INDEX), 'type', 'veth')
            count('first', 1)
            count('first', 2)
            ip('delete', 'first')
            ip('add', 'name', 'second', 'index', str(INDEX), 'type', 'veth')
            count('second', 1)
            total = sum(points[-1]['total'] for points in [[point for all in agent.collections()
                        for point in all.select('test.interfaces', **{'network.interface.name': name})]
                        for name in (str(INDEX), 'first', 'second')])
            self.assertEqual(total, 4)


if __name__ == '__main__':
    harness.main()
