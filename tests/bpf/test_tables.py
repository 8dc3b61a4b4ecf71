#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sizes of tables on machines that are not this one: the agent believes that it has other CPUs."""
import json
import os
import re
import subprocess
import tempfile
import unittest

import harness
from harness import PATIENCE_S, Cgroup, agent, config_text, once, workload

ALL = ('syscalls', 'fileio', 'scheduler', 'memory', 'network', 'tcpstate')
COUNT = 'bpfpush.syscalls'
MIB = 1 << 20


def pretending(cpus):
    return dict(os.environ, BPFPUSH_PRETEND_CPUS=cpus)


def listed(cpus, params=None):
    """What `bpfpush list` says, as objects, and what it logs."""
    with tempfile.NamedTemporaryFile('w', prefix='bpfpush-test-', suffix='.conf') as config:
        config.write(config_text(dict({'agent': {'memory_limit': '1GiB'}}, **params or {})))
        config.flush()
        done = subprocess.run([agent(), 'list', '--json', '--for=1ms', '--config=' + config.name], text=True, timeout=PATIENCE_S,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, env=pretending(cpus))
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def map_bytes(collectors):
    """What the kernel accounts for all maps."""
    return sum(map_['memory_bytes'] for collector in collectors for map_ in collector.get('maps', []))


class TablesTest(unittest.TestCase):
    def test_five_hundred_units_have_room_on_128_cpus(self):
        bytes_ = map_bytes(listed('128')[0])
        self.assertGreater(bytes_, 32 * MIB)  # else nobody pretended
        self.assertLess(bytes_, 96 * MIB)

    def test_cpus_that_are_not_there_cost_little(self):
        few, many = map_bytes(listed('2')[0]), map_bytes(listed('2/128')[0])
        self.assertLess(few, 8 * MIB)
        self.assertLess(many, 8 * MIB)

    def test_a_collector_that_is_off_takes_next_to_nothing_in_a_shared_object(self):
        collectors, _ = listed('2')
        sizes = {map_['name']: map_['memory_bytes'] for collector in collectors for map_ in collector.get('maps', [])}
        self.assertLess(sizes['peers'] + sizes['peer_failures'], 8192)

    def test_what_the_agent_reckons_is_what_the_kernel_accounts(self):
        for cpus in '2', '128':
            collectors, log = listed(cpus, {'agent': {'memory_limit': '1GiB', 'log_level': 'debug'}})
            tables = sum(map_['memory_bytes'] for collector in collectors for map_ in collector.get('maps', [])
                         if map_['type'] == 'table')
            reckoned = int(re.search(r"the kernel's tables take (\d+) KiB", log)[1]) << 10
            self.assertAlmostEqual(reckoned / tables, 1, delta=0.03)

    def test_tables_take_at_most_half_of_the_memory(self):
        collectors, log = listed('128', {'agent': {'memory_limit': '24MiB', 'log_level': 'debug'}})
        self.assertLess(map_bytes(collectors), 12 * MIB)
        self.assertRegex(log, r'have room for \d+ units instead of 500.*half of memory_limit = 24MiB.*'
                              r'set memory_limit = \d+MiB in \[agent\]')

    def test_as_many_units_have_room_as_fit_however_many_are_asked_for(self):
        rooms = {re.search(r'room for (\d+) units', listed('128', {'agent': {'memory_limit': '192MiB', 'units': units, 'log_level': 'debug'}})[1])[1]
                 for units in ('2000', '5000', '100000')}
        room, = rooms
        self.assertGreaterEqual(int(room), 500)
        _, log = listed('128', {'agent': {'memory_limit': '192MiB', 'units': room, 'log_level': 'debug'}})
        self.assertNotIn('have room for', log)

    def test_calls_are_exact_whatever_columns_there_are(self):
        # With 1, the other CPUs are late ones and share a column; with 128, most columns are nobody's.
        for cpus in '1', '128':
            with self.subTest(cpus), Cgroup('tables') as cgroup:
                seen = once(['syscalls'], [workload('syscall'), cgroup.procs], env=pretending(cpus))
                mine = seen.of(cgroup)
                for name in 'getsid', 'mincore':
                    self.assertEqual(mine.total(COUNT, **{'bpfpush.syscall.name': name, 'error.type': None}),
                                     seen.expected[name])

    def test_the_verifier_has_little_to_look_at(self):
        # A table costs it about 100 instructions in each program, and the search of all tables 1 300.
        with tempfile.NamedTemporaryFile('r', prefix='bpfpush-test-') as file:
            once(ALL, ['sh', '-c', 'cat /proc/$PPID/fdinfo/* >' + file.name])
            verified = sum(map(int, re.findall(r'^verified_insns:\t(\d+)', file.read(), re.M)))
        self.assertGreater(verified, 20000)
        self.assertLess(verified, 80000)


if __name__ == '__main__':
    harness.main()
