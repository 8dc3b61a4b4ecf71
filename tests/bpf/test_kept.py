# SPDX-License-Identifier: Apache-2.0
"""What the service manager keeps: the next agent goes on with it, or with nothing of it."""
import contextlib
import json
import mmap
import os
import platform
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock as mock

import harness
import json_lines
from harness import PATIENCE_S, Cgroup, Points, workload
from manager import Manager

COUNT = 'bpfpush.syscalls'
NO_RIGHTS = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all', '--bounding-set=-all']


class KeptTest(unittest.TestCase):
    """The objects are task and cgroup."""

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-'))
        os.chmod(self.directory, 0o755)
        self.output = os.path.join(self.directory, 'points.json')
        with open(self.output, 'w'):
            os.chmod(self.output, 0o666)
        self.manager = self.enterContext(Manager())
        os.chmod(self.manager.directory.name, 0o755)
        os.chmod(self.manager.path, 0o666)

    def end(self, number=signal.SIGKILL):
        for process in self.manager.processes:
            process.send_signal(number)
            process.wait(PATIENCE_S)

    def start(self, settings='', command=(), collector='syscalls'):
        """An agent that is ready, instead of the one before, which is killed; and what it has said until then."""
        self.end()
        config = os.path.join(self.directory, 'agent.conf')
        with open(config, 'w') as file:
            file.write('[agent]\ninterval = 1s\ncollectors = %s\n%s\n[exporter file]\ntype = json\npath = %s\n'
                       % (collector, settings, self.output))
        with open(os.path.join(self.directory, 'log'), 'w+') as log:
            self.process = self.manager.start(
                list(command) + [harness.agent(), 'run', '--config=' + config], stderr=log)
            self.manager.wait_for('READY=1')
            log.seek(0)
            return log.read()

    def ids(self, name=''):
        """Of what is kept of that object, or of all."""
        return self.manager.ids(r'^%s.*\.[0-9a-f]{16}\.' % re.escape(name))

    def link_ids_of_agent(self):
        """Of all links that its descriptors name."""
        found = set()
        for fd in os.listdir('/proc/%d/fd' % self.process.pid):
            with contextlib.suppress(FileNotFoundError), open('/proc/%d/fdinfo/%s' % (self.process.pid, fd)) as file:
                found.update(map(int, re.findall(r'^link_id:\s*(\d+)$', file.read(), re.M)))
        return found

    def test_the_next_agent_goes_on_with_the_same_maps_programs_and_links(self):
        self.start()
        before = self.ids()
        self.assertEqual({name.split('.')[0] for name in before}, {'task', 'cgroup'})
        for kind in ('m', 'p', 'l'):
            self.assertTrue([i for name, i in before.items() if re.match(r'task\.[0-9a-f]{16}\.%s\.' % kind, name)], kind)
        log = self.start()
        self.assertIn('2 of 2 objects have gone on counting', log)
        self.assertEqual(self.ids(), before)
        self.assertEqual(self.link_ids_of_agent(), set(self.manager.ids(r'\.l\.').values()))
        with Cgroup('kept') as cgroup:
            done = subprocess.run([workload('syscall'), cgroup.procs], stdout=subprocess.PIPE, check=True)
            expected = json.loads(done.stdout)['getsid']
            for _ in range(PATIENCE_S * 10):
                total = self.last_points().of(cgroup).total(
                    COUNT, **{'bpfpush.syscall.name': 'getsid', 'error.type': None})
                if total == expected:
                    break
                time.sleep(0.1)
            self.assertEqual(total, expected)

    def last_points(self):
        points = json_lines.points(json_lines.read(self.output), n_killed=len(self.manager.processes))
        return Points(point for point in points if point['time_ns'] == points[-1]['time_ns'])

    def test_other_settings_begin_again_and_leave_nothing_behind(self):
        self.start()
        before = self.ids()
        for settings, same in (('units = 7', set()), ('units = 7\n[collector syscalls]\nduration = getsid', {'cgroup'})):
            log = self.start(settings)
            now = self.ids()
            ends = [name for name in now if name.endswith('.o')]
            self.assertEqual(sorted(name.split('.')[0] for name in ends), ['cgroup', 'task'])
            self.assertEqual({name.split('.')[0] for name in now if name in before}, same)
            self.assertEqual(len({name.split('.')[1] for name in now}), 2)
            self.assertEqual(log.count('sizes have changed, so it is loaded again'), 2 - len(same), log)
            self.assertEqual(self.link_ids_of_agent(), set(self.manager.ids(r'\.l\.').values()))
            before = now

    def wait_for_totals(self, cgroup, attribute, expected):
        """{metric: total of the cgroup}, of series that have the attribute"""
        for _ in range(PATIENCE_S * 10):
            points = self.last_points().of(cgroup)
            totals = {name: points.total(name, **attribute) for name in expected}
            if totals == expected:
                break
            time.sleep(0.1)
        self.assertEqual(totals, expected)

    def test_a_probe_goes_on_and_begins_again_if_it_is_another_one(self):
        same, other = 'bpfpush.probe.same', 'bpfpush.probe.other'
        probe = '[probe %%s]\nhook = uprobe:%s:probed_call\nby = unit, %%s\n' % workload('probed')
        before, after = (probe % ('same', 'comm') + probe % ('other', by) for by in ('arg0:u8', 'arg1:text'))

        def run():
            subprocess.run([workload('probed'), cgroup.procs, '100'], stdout=subprocess.DEVNULL, check=True)

        with Cgroup('kept') as cgroup:
            self.start(before, collector='cgroup')
            run()
            self.wait_for_totals(cgroup, {}, {same: 100, other: 100})
            self.assertIn('3 of 3 objects have gone on counting', self.start(before, collector='cgroup'))
            run()
            self.wait_for_totals(cgroup, {}, {same: 200, other: 200})
            self.assertIn('2 of 3 objects have gone on counting', self.start(after, collector='cgroup'))
            run()
            self.wait_for_totals(cgroup, {}, {same: 300})
            self.wait_for_totals(cgroup, {'other.arg1': harness.ANY}, {other: 100})
            self.wait_for_totals(cgroup, {'other.arg1': 'first'}, {other: 34})
        self.assertEqual(len({name.split('.')[1] for name in self.ids()}), 3)

    def test_an_object_of_which_something_is_missing_or_wrong_begins_again_as_a_whole(self):
        self.start()

        def lose_link(names):
            self.manager._drop(next(name for name in names if '.l.' in name))

        def lose_end(names):
            self.manager._drop(next(name for name in names if name.endswith('.o')))

        def swap_maps(names):
            store = self.manager.store
            left, right = (next(name for name in names if name.endswith(end)) for end in ('.m.calls', '.m.calls_keys'))
            store[left], store[right] = store[right], store[left]

        for damage in (lose_link, lose_end, swap_maps):
            with self.subTest(damage.__name__):
                task, cgroup = self.ids('task'), self.ids('cgroup')
                with self.manager.changed:
                    damage(list(task))
                log = self.start()
                self.assertRegex(log, r'task\.bpf\.o: what was kept of it is not whole .* so counting begins again')
                self.assertIn('1 of 2 objects have gone on counting', log)
                now = self.ids('task')
                self.assertEqual(set(now), set(task))
                self.assertFalse({i for i in now.values() if i} & {i for i in task.values() if i})
                self.assertEqual(self.ids('cgroup'), cgroup)

    def test_an_agent_that_is_killed_while_it_stores_leaves_nothing_behind(self):
        n = 20

        def kill_early(lines, fds, keep=self.manager._keep):
            """Nothing comes after its end, although it may have been faster."""
            nonlocal n
            if n:
                keep(lines, fds)
                n -= 'FDSTORE=1' in lines
            else:
                self.manager.processes[-1].kill()
                for fd in fds:
                    os.close(fd)

        with mock.patch.object(self.manager, '_keep', kill_early):
            with contextlib.suppress(AssertionError):
                self.start()
            self.end()
            self.manager.drain()
        self.assertFalse([name for name in self.manager.store if name.endswith('.o') and name.startswith('task')])
        before = self.ids()
        self.manager.n_read = len(self.manager.messages)
        self.assertIn('task.bpf.o: what was kept of it', self.start())
        now = self.ids('task')
        self.assertEqual([name for name in now if name.endswith('.o')], [name for name, i in now.items() if not i])
        self.assertFalse({i for i in now.values() if i} & {i for i in before.values() if i})
        self.assertEqual(self.link_ids_of_agent(), set(self.manager.ids(r'\.l\.').values()))

    def test_it_needs_no_capability_if_nothing_has_to_be_loaded(self):
        if tuple(map(int, re.findall(r'\d+', platform.release())[:2])) < (5, 19):
            self.skipTest('before 5.19 the kernel lets nobody without CAP_BPF read a map')
        self.start()
        before = self.ids()
        self.start(command=NO_RIGHTS)
        with open('/proc/%d/status' % self.process.pid) as file:
            self.assertIn('\nCapPrm:\t0000000000000000\n', file.read())
        self.assertEqual(self.ids(), before)

    def test_hooks_stay_on_after_an_orderly_end(self):
        own = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'own', 'sessions')
        subprocess.run([*shlex.split(os.environ['BPF_COMPILE']), '-c', own + '.bpf.c',
                        '-o', os.path.join(self.directory, 'sessions.bpf.o')], check=True)
        shutil.copy(own + '.conf', self.directory)
        settings = 'collector_directory = %s\n[collector sessions]\nprocess = %d' % (self.directory, os.getpid())
        self.start(settings, collector='sessions')
        (fd,) = [fd for name, fd in self.manager.store.items() if name.endswith('.m.calls')]
        with mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ) as calls:
            for i in range(1, 3):
                self.end(signal.SIGTERM)
                for _ in range(10):
                    os.getsid(0)
                self.assertEqual(struct.unpack_from('=Q', calls), (10 * i,))
                self.start(settings, collector='sessions')

    def test_histograms_whose_key_says_the_bucket_go_on(self):
        own = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'own', 'bounds')
        subprocess.run([*shlex.split(os.environ['BPF_COMPILE']), '-c', own + '.bpf.c',
                        '-o', os.path.join(self.directory, 'bounds.bpf.o')], check=True)
        shutil.copy(own + '.conf', self.directory)
        calls = 'import ctypes\nc = ctypes.CDLL(None)\nfor v in %r: c.syscall(*map(ctypes.c_long, (124, v, 0x62706675)))\n'
        rounds = ((3, 60, 61), (61, 1000))
        for number, values in enumerate(rounds):
            self.start('collector_directory = ' + self.directory, collector='bounds')
            subprocess.run([sys.executable, '-c', calls % (values,)], check=True)
            seen = sum(rounds[:number + 1], ())
            wanted = {'count': len(seen), 'bounds': [0.000049, 0.000099, 0.000149],
                      'counts': [sum(low <= value < low + 50 for value in seen) for low in (0, 50, 100)]}
            wanted['counts'].append(len(seen) - sum(wanted['counts']))
            for _ in range(PATIENCE_S * 10):
                totals = [point['total'] for point in self.last_points().select('test.key.linear')]
                if totals == [wanted]:
                    break
                time.sleep(0.1)
            self.assertEqual(totals, [wanted])
            odd = self.last_points().total('test.key.powers', **{'bounds.parity': 1})
            self.assertEqual((odd['count'], odd['sum']), (len(seen) - sum(value % 2 == 0 for value in seen),
                                                          sum(value for value in seen if value % 2)))

    def test_what_nobody_knows_is_forgotten(self):
        fd = os.memfd_create('unknown')
        self.manager.store['unknown.0'] = fd
        self.start()
        self.assertNotIn('unknown.0', self.manager.store)


if __name__ == '__main__':
    harness.main()
