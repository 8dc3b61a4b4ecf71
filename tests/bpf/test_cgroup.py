# SPDX-License-Identifier: Apache-2.0
"""Cgroups: one that lived for a millisecond has a name all the same."""
import os
import subprocess
import tempfile
import unittest

import harness
import held
from harness import Cgroup, OWNER, once

CREATED = 'bpfpush.cgroup.created'
CPU = 'bpfpush.scheduler.cpu.time'

# Makes N cgroups in a directory, runs a child in each, and removes it as soon as the child is dead.
SHORT_LIVED = '''
import os, sys, time
directory, n = sys.argv[1], int(sys.argv[2])
for i in range(n):
    path = "%s/short-%d" % (directory, i)
    os.mkdir(path)
    pid = os.fork()
    if not pid:
        with open(path + "/cgroup.procs", "w") as file:
            file.write("0")
        sum(range(20000))
        os._exit(0)
    os.waitpid(pid, 0)
    while os.path.exists(path):
        try:
            os.rmdir(path)
        except OSError:
            time.sleep(0.0001)
'''

# Who made it, below a cgroup of the test's own: {pid} makes names that no other test has, {a} and {b} are ids.
LAYOUTS = (
    ('docker/{a1}/docker/{b}', 'container.id', '{a1}'),
    ('system.slice/docker-{a1}.scope/init.scope', 'container.id', '{a1}'),
    ('machine.slice/machine-libpod_pod_{b}.slice/libpod-{a2}.scope/container', 'container.id', '{a2}'),
    ('libpod_parent/{b}/libpod-{a3}', 'container.id', '{a3}'),
    ('kubepods/burstable/pod{pid}/{a4}', 'container.id', '{a4}'),
    ('system.slice/containerd.service/kubepods-pod{pid}.slice:cri-containerd:{a5}', 'container.id', '{a5}'),
    ('machine.slice/libpod-conmon-{a2}.scope', 'systemd.unit.name', 'libpod-conmon-*.scope'),
    ('system.slice/shop{pid}.service/libpod-payload-{b}', 'systemd.unit.name', 'shop{pid}.service'),
    ('system.slice/shop{pid}.service/runtime', 'systemd.unit.name', 'shop{pid}.service'),
    ('system.slice/run{pid}.service/{a1}', 'systemd.unit.name', 'run{pid}.service'),
    ('user@{pid}.service/app.slice/a.service/{a1}', 'systemd.unit.name', 'user@{pid}.service/a.service'),
    ('user@{pid}.service/lxc.payload.c1/run{pid}.service', 'systemd.unit.name', 'user@{pid}.service'),
    ('machine.slice/machine-{pid}.scope/payload/docker/{a1}', 'systemd.unit.name', 'machine-{pid}.scope'),
    ('lxc.payload.c1/system.slice/run{pid}.service', OWNER, '{path}/lxc.payload.c1'),
    ('lxc.payload.c1/docker/{a1}', OWNER, '{path}/lxc.payload.c1'),
    ('lxc/101/ns/init.scope', OWNER, '{path}/lxc/101'),
    ('lxc.monitor.c1', OWNER, '{path}/lxc.monitor.c1'),
    ('docker/{a1}-{b}', OWNER, '{path}/docker/{a1}-{b}'),
    # The path is longer than the kernel's text, and there are more levels than a walk has directories open.
    ('user@{pid}.service/app.slice/deep.service' + '/deeper-and-deeper-down' * 70, 'systemd.unit.name', 'user@{pid}.service/deep.service'),
    ('lxc.payload.c2' + '/d' * 100, OWNER, '{path}/lxc.payload.c2'),
)

# Goes into each cgroup in turn, and makes as many in it as its number in the list says.
VISIT = """
import os, sys
for i, path in enumerate(sys.argv[1:], 1):
    os.makedirs(path, exist_ok=True)
    pid = os.fork()
    if not pid:
        with open(path + "/cgroup.procs", "w") as file:
            file.write("0")
        for k in range(i):
            os.mkdir("%s/made-%d" % (path, k))
        os._exit(0)
    assert not os.waitpid(pid, 0)[1]
"""


def remove_below(cgroup):
    subprocess.run(['find', cgroup.directory, '-mindepth', '1', '-depth', '-type', 'd', '-delete'], check=True)


class CgroupTest(unittest.TestCase):
    def test_what_a_short_lived_cgroup_used_has_its_path(self):
        with Cgroup('cgroup') as cgroup:
            seen = once(['cgroup', 'scheduler'], ['python3', '-c', SHORT_LIVED, cgroup.directory, '20'])
            paths = {'%s/short-%d' % (cgroup.path, i) for i in range(20)}
            used = {point['attributes'].get(OWNER): point['total'] for point in seen.select(CPU)}
            self.assertLessEqual(paths, set(used))
            self.assertGreater(min(used[path] for path in paths), 0)

    def test_each_new_cgroup_is_counted_for_who_made_it(self):
        with Cgroup('cgroup') as cgroup:
            seen = once(['cgroup'], cgroup.command(['python3', '-c', SHORT_LIVED, cgroup.directory, '7']))
            self.assertEqual(seen.of(cgroup).total(CREATED), 7)

    def deep_unit(self, names):
        """What deep.service used, below cgroups of these names."""
        with Cgroup('cgroup') as cgroup:
            made, path = [], cgroup.directory
            for name in names + ['deep.service']:
                path = os.path.join(path, name)
                made.append(path)
            script = 'mkdir -p "$1"; /bin/sh -c "echo 0 >\'$1\'/cgroup.procs; /bin/true; /bin/true"'
            try:
                seen = once(['cgroup', 'scheduler'], ['/bin/sh', '-c', script, 'sh', path])
            finally:
                for directory in reversed(made):
                    os.rmdir(directory)
            self.assertFalse([point for point in seen.select(CPU) if names[0] in point['attributes'].get(OWNER, '')])
            return seen.select(CPU, **{'systemd.unit.name': 'deep.service'}).total()

    def test_a_unit_deep_down_has_its_name(self):
        self.assertGreater(self.deep_unit(['a' * 120, 'b' * 120, 'c' * 60]), 0)

    def test_a_unit_too_deep_down_for_the_kernels_text_has_its_name(self):
        self.assertGreater(self.deep_unit([letter * 250 for letter in 'abcde']), 0)

    def test_a_short_lived_cgroup_keeps_its_name_after_a_thousand_others(self):
        """More text than the ring has room for. Once half of it is in use, the agent reads it."""
        script = held.INSIDE + """
import time
names = held.Ring(os.getppid(), "cgroup_names")
for i in range(1500):
    path = "%s/%s-%d" % (sys.argv[1], "long" * 50, i)
    os.mkdir(path)
    os.rmdir(path)
    while names.unread_bytes() > 192 << 10:
        time.sleep(0.001)
""" + SHORT_LIVED
        with Cgroup('cgroup') as cgroup:
            seen = once(['cgroup', 'scheduler'], cgroup.command(['python3', '-c', script, cgroup.directory, '20']))
            paths = {'%s/short-%d' % (cgroup.path, i) for i in range(20)}
            self.assertLessEqual(paths, {point['attributes'].get(OWNER) for point in seen.select(CPU)})
            self.assertEqual(seen.of(cgroup).total(CREATED), 1520)

    def test_what_nobody_knows_is_one_series(self):
        with Cgroup('cgroup') as cgroup:
            seen = once(['scheduler'], ['python3', '-c', SHORT_LIVED, cgroup.directory, '20'],
                        {'cgroup': {'enabled': 'no'}})
            unknown = seen.select(CPU, **{OWNER: 'unknown'})
            self.assertEqual(len(unknown), 1)
            self.assertGreater(unknown[0]['total'], 0)
            self.assertFalse([point for point in seen if point['attributes'].get(OWNER, '').startswith('id:')])

    def test_units_are_folded_and_chosen(self):
        script = """
for name in ["session-%d.scope" % i for i in range(5)] + ["secret.service", "other.service"]:
    path = "%s/%s" % (sys.argv[1], name)
    os.mkdir(path)
    os.mkdir(path + "/below")
    with open(path + "/below/cgroup.procs", "w") as file:
        file.write("0")
    for i in range(3):
        os.mkdir("%s/made-%d" % (path, i))
"""
        with Cgroup('choice') as cgroup:
            try:
                seen = once(['cgroup'], ['python3', '-c', 'import os, sys' + script, cgroup.directory],
                            {'agent': {'exclude_units': 'secret.*'}})
            finally:
                remove_below(cgroup)
            units = seen.select(CREATED).by('systemd.unit.name')
            self.assertEqual(units['session-*.scope'], 5 * 3 + 4 * 2 + 2)
            self.assertEqual(units['other.service'], 3)
            self.assertNotIn('secret.service', units)
            self.assertFalse([name for name in units if name and name.startswith('session-') and '*' not in name])

    def check_layouts(self, makes_before):
        """Each owner has exactly what was done in its cgroups."""
        names = {'pid': os.getpid(), 'b': '%064x' % os.getpid()}
        names.update({'a%d' % i: '%x' % i + names['b'][1:] for i in range(1, 6)})
        with Cgroup('layouts') as cgroup:
            names['path'] = cgroup.path
            paths = [os.path.join(cgroup.directory, path.format(**names)) for path, _, _ in LAYOUTS]
            expected = {}
            for i, (_, attribute, name) in enumerate(LAYOUTS, 1):
                owner = (attribute, name.format(**names))
                expected[owner] = expected.get(owner, 0) + i
            try:
                for path in paths if makes_before else []:
                    os.makedirs(path, exist_ok=True)
                seen = once(['cgroup'], ['python3', '-c', VISIT, *paths])
            finally:
                remove_below(cgroup)
        made = {owner: seen.total(CREATED, **dict([owner])) for owner in expected}
        self.assertEqual(made, expected)

    def test_owners_of_cgroups_that_are_there_are_named_by_their_layout(self):
        self.check_layouts(makes_before=True)

    def test_owners_of_cgroups_that_come_later_are_named_by_their_layout(self):
        self.check_layouts(makes_before=False)

    def test_attributes_that_are_left_out_add_up(self):
        with Cgroup('drop') as cgroup:
            seen = once(['syscalls'], [harness.workload('syscall'), cgroup.procs],
                        {'metric bpfpush.syscalls': {'drop_attributes': 'error.type'}})
            points = seen.of(cgroup).select('bpfpush.syscalls', **{'bpfpush.syscall.name': 'getsid'})
            self.assertEqual([set(point['attributes']) for point in points], [{OWNER, 'bpfpush.syscall.name'}])
            self.assertGreater(seen.expected['getsid_ESRCH'], 0)
            self.assertEqual(points.total(), seen.expected['getsid'] + seen.expected['getsid_ESRCH'])

    def test_a_metric_that_is_disabled_is_left_out(self):
        for enabled in ('yes', 'no'):
            with Cgroup('disabled') as cgroup:
                seen = once(['syscalls'], [harness.workload('syscall'), cgroup.procs], {'metric bpfpush.syscalls': {'enabled': enabled}})
                self.assertEqual(bool(seen.of(cgroup).select('bpfpush.syscalls')), enabled == 'yes')

    def test_brief_processes_are_summed_in_their_unit(self):
        """
        200 of them, of which the last five make ten cgroups each and the others one. One that goes on is not brief, and
        those of a unit that is not wanted take nobody's place.
        """
        script = """
reader, writer = os.pipe()
if not os.fork():
    for i in range(3):
        os.mkdir("%s/lasting-%d" % (sys.argv[1], i))
    os.write(writer, b"x")
    os.closerange(0, 3)
    time.sleep(1000)
os.read(reader, 1)
for i in range(200):
    pid = os.fork()
    if not pid:
        for j in range(10 if i >= 195 else 1):
            os.mkdir("%s/%d-%d" % (sys.argv[1], i, j))
        os._exit(0)
    os.waitpid(pid, 0)
for i in range(20):
    pid = os.fork()
    if not pid:
        with open(sys.argv[2], "w") as file:
            file.write("0")
        for j in range(11):
            os.mkdir("%s/noise-%d-%d" % (sys.argv[1], i, j))
        os._exit(0)
    os.waitpid(pid, 0)
"""
        with Cgroup('brief') as cgroup, Cgroup('noise') as noise:
            try:
                seen = once(['cgroup'], cgroup.command(['python3', '-c', 'import os, sys, time' + script, cgroup.directory,
                                                         noise.procs]),
                            {'cgroup': {'per_process': 'yes'},
                             'agent': {'brief_processes': '7', 'exclude_units': noise.path,
                                       # what else runs here takes nobody's place either
                                       'include_units': '%s %s' % (cgroup.path, noise.path)}})
            finally:
                remove_below(cgroup)
            made = seen.of(cgroup).select(CREATED)
            self.assertEqual(made.total(), 248)
            self.assertEqual(seen.of(noise), [])
            named = sorted(point['total'] for point in made if 'process.pid' in point['attributes'])
            self.assertEqual(named, [1, 1, 3] + [10] * 5)
            self.assertEqual([point['total'] for point in made if 'process.pid' not in point['attributes']], [193])

    def test_other_hierarchies_are_left_out(self):
        with Cgroup('cgroup') as cgroup, tempfile.TemporaryDirectory() as cgroup1:
            subprocess.run(['mount', '-t', 'cgroup', '-o', 'none,name=bpfpush-test', 'cgroup', cgroup1], check=True)
            try:
                seen = once(['cgroup'], cgroup.command(['sh', '-c', 'mkdir %s/a && rmdir %s/a' % (cgroup1, cgroup1)]))
            finally:
                subprocess.run(['umount', cgroup1], check=True)
            self.assertEqual(seen.of(cgroup).total(CREATED), 0)


if __name__ == '__main__':
    harness.main()
