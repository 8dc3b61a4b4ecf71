# SPDX-License-Identifier: Apache-2.0
"""Spans: one for each that a program says, with its ids, its times and its names, equal to what the program said."""
import csv
import io
import json
import os
import random
import re
import shutil
import struct
import sys
import tempfile
import time
import unittest

import harness
from harness import OWNER, Cgroup
from shown import show
from test_own import HERE, compile_object

# Says each of the spans of its first argument, (kind, five numbers), in a cgroup.
WORKLOAD = '''
import ctypes, json, sys
libc = ctypes.CDLL(None)
with open(sys.argv[2], 'w') as procs:
    procs.write('0')
for kind, *numbers in json.loads(sys.argv[1]):
    libc.syscall(ctypes.c_long(0x310000 + kind), *map(ctypes.c_ulong, numbers))
'''
ROOT, CHILD, FAILED = range(3)
NAMES = ['root', 'child', 'failed']
SECOND = 10 ** 9


def text_of(*numbers):
    """As they are in memory, in hexadecimal."""
    return struct.pack('=%dQ' % len(numbers), *numbers).hex()


def said(kind, trace, upper, identity, _start, duration):
    """The attributes that this span has."""
    names = {'span_name': NAMES[kind], 'duration': duration / SECOND, 'trace_id': text_of(trace, upper), 'span_id': text_of(identity),
             'test.fixed': 'yes'}
    if kind == CHILD:
        names['parent_span_id'] = text_of(identity + 1)
    if kind == FAILED:
        names['error.type'] = 'ENOENT'
    return names


def prepare(directory):
    """The collector spans."""
    compile_object(os.path.join(HERE, 'own', 'spans.bpf.c'), os.path.join(directory, 'spans.bpf.o'))
    shutil.copy(os.path.join(HERE, 'own', 'spans.conf'), directory)


def make_spans(count):
    """Any spans of the last 100 s, with ids."""
    seed = random.randrange(1 << 32)
    print('seed', seed, file=sys.stderr)
    numbers, now_ns = random.Random(seed), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return [(numbers.randrange(3), numbers.randrange(1, 1 << 64), numbers.randrange(1 << 64), numbers.randrange(1, (1 << 64) - 1),
             now_ns - numbers.randrange(min(now_ns, 100 * SECOND)), numbers.randrange(100 * SECOND)) for _ in range(count)]


class SpansTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix='bpfpush-spans.'))
        prepare(cls.directory)
        cls.begin_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        cls.spans = make_spans(100)

    def show(self, spans, *options):
        with Cgroup('spans') as cgroup:
            out, err = show('spans', cgroup, [f'--collector-directory={self.directory}', *options], WORKLOAD, json.dumps(spans), cgroup.procs)
        self.assertEqual(err, '')
        self.path = cgroup.path
        return out

    def records(self, spans, *options):
        lines = [json.loads(line) for line in self.show(spans, '--format=json', *options).splitlines()]
        self.assertEqual({line['attributes'].pop(OWNER) for line in lines}, {self.path})
        return [[line for line in lines if line['event'] == name] for name in ('test.call', 'test.note')]

    def test_each_is_said_once_with_its_ids_and_times(self):
        calls, notes = self.records(self.spans)
        self.assertEqual([call['attributes'] for call in calls], [said(*span) for span in self.spans])
        boot_ns = {call['time_ns'] - span[4] for call, span in zip(calls, self.spans)}
        self.assertLess(max(boot_ns) - min(boot_ns), SECOND / 10)  # the clock may have been adjusted meanwhile
        self.assertLess(abs(time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) - min(boot_ns)), SECOND)
        self.assertEqual([note['attributes'] for note in notes],
                         [{'trace_id': text_of(*span[1:3]), 'span_id': text_of(span[3])} for span in self.spans])
        self.assertTrue(all(self.begin_ns + min(boot_ns) <= note['time_ns'] <= time.time_ns() for note in notes))

    def test_ids_that_are_not_set_are_made_and_differ(self):
        calls, notes = self.records([(ROOT, 0, 0, 0, self.begin_ns, 1)] * 50)
        for name, digits in (('trace_id', 32), ('span_id', 16)):
            ids = [call['attributes'][name] for call in calls]
            self.assertEqual(len(set(ids)), 50)
            for each in ids:
                self.assertRegex(each, '^[0-9a-f]{%d}$' % digits)
                self.assertTrue(int(each, 16))
        self.assertEqual([note['attributes'] for note in notes], [{}] * 50)

    def test_a_table_and_csv_have_them_too(self):
        rows = list(csv.DictReader(io.StringIO(self.show(self.spans[:20], '--format=csv'))))
        calls = [row for row in rows if row['event'] == 'test.call']
        self.assertEqual([(row['trace_id'], row['span_id'], row['parent_span_id'], float(row['duration']), row['span_name']) for row in calls],
                         [(names['trace_id'], names['span_id'], names.get('parent_span_id', ''), names['duration'], names['span_name'])
                          for names in (said(*span) for span in self.spans[:20])])
        table = self.show(self.spans[:20])
        self.assertEqual(re.findall(r'test\.call .*?trace_id=([0-9a-f]{32})', table), [text_of(*span[1:3]) for span in self.spans[:20]])

    def test_one_trace_can_be_chosen(self):
        wanted = said(*self.spans[7])
        calls, notes = self.records(self.spans, f"--where=trace_id={wanted['trace_id']}")
        self.assertEqual([call['attributes'] for call in calls], [wanted])
        self.assertEqual(len(notes), 1)

    def test_hostile_times_do_no_harm(self):
        calls, _ = self.records([(ROOT, 1, 1, 1, (1 << 64) - 1, (1 << 64) - 1), (CHILD, 1, 1, 2, 0, 0)])
        self.assertEqual([call['attributes']['duration'] for call in calls], [((1 << 64) - 1) / SECOND, 0])


if __name__ == '__main__':
    harness.main()
