# SPDX-License-Identifier: Apache-2.0
"""Cgroups: one that lived for a millisecond has a name all the same."""
import os
import unittest

import harness
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


def table_place(words, slots):
    """Where a key is looked for first in a flat table: table_hash() of bpf/include/table.h."""
    value = 0x9e3779b97f4a7c15
    for word in words:
        value = (value ^ word) * 0x9fb21c651e98df25 % 2**64
        value ^= value >> 29
    return (value >> 32) % slots


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

    def test_a_key_whose_first_place_is_the_overflows_has_a_series_of_its_own(self):
        slots = 16
        for i in range(1000):
            with Cgroup('cgroup-%d' % i) as cgroup:
                if table_place([os.stat(cgroup.directory).st_ino, 0], slots):
                    continue
                seen = once(['cgroup'], cgroup.command(['python3', '-c', SHORT_LIVED, cgroup.directory, '20']),
                            {'cgroup': {'created_slots': slots}})
                self.assertEqual(seen.select(CREATED, **{'otel.metric.overflow': True}), [])
                self.assertEqual(seen.of(cgroup).total(CREATED), 20)
                return
        self.fail('no cgroup of 1000 had its first place there')

    def test_a_unit_deep_down_has_its_name(self):
        """The kernel side keeps 255 bytes of a path; this unit's name comes after them."""
        with Cgroup('cgroup') as cgroup:
            path = cgroup.directory
            made = []
            for name in ('a' * 120, 'b' * 120, 'c' * 60, 'deep.service'):
                path = os.path.join(path, name)
                made.append(path)
            script = 'mkdir -p "$1"; /bin/sh -c "echo 0 >\'$1\'/cgroup.procs; /bin/true; /bin/true"'
            try:
                seen = once(['cgroup', 'scheduler'], ['/bin/sh', '-c', script, 'sh', path])
            finally:
                for directory in reversed(made):
                    os.rmdir(directory)
            self.assertGreater(seen.select(CPU, **{'systemd.unit.name': 'deep.service'}).total(), 0)
            self.assertFalse([point for point in seen.select(CPU) if 'a' * 120 in point['attributes'].get(OWNER, '')])

    @unittest.skipUnless(os.path.isdir('/sys/fs/cgroup/cpu'), 'needs a hierarchy of cgroup1')
    def test_other_hierarchies_are_left_out(self):
        with Cgroup('cgroup') as cgroup:
            name = '/sys/fs/cgroup/cpu/bpfpush-test-%d' % os.getpid()
            seen = once(['cgroup'], cgroup.command(['sh', '-c', 'mkdir %s && rmdir %s' % (name, name)]))
            self.assertEqual(seen.of(cgroup).total(CREATED), 0)


if __name__ == '__main__':
    harness.main()
