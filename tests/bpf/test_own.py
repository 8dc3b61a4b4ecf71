# SPDX-License-Identifier: Apache-2.0
"""A user's own pairs, dropped into a directory with nothing rebuilt: those that docs/writing-collectors.md shows,
to the letter; own/timers, which has a kernel function, an enum, a histogram, a signed gauge and a setting;
own/baseline and own/pinned, whose maps hold something at the start."""
import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import harness
import rights
from harness import Cgroup, once

HERE = os.path.dirname(os.path.realpath(__file__))
PAGE = os.path.join(HERE, '..', '..', 'docs', 'writing-collectors.md')
EXECS = 7
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000  # sched.h, sys/mount.h
# A program around the lines of a recipe, with a metric, without which there is no collector.
AROUND = """
struct no_key { u32 unused; };
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, struct no_key);
	__type(value, u64);
} seen SEC(".maps");
u64 counts[20];
%s
SEC("tp_btf/task_newtask")
int BPF_PROG(task_new, struct task_struct *task, u64 clone_flags)
{
	struct no_key key = {};
	u64 *value = bpf_map_lookup_elem(&seen, &key);
%s
	return 0;
}
"""
DESCRIPTOR = """[collector]
description = test
[metric seen]
name = test.seen
unit = 1
description = test
kind = gauge
"""


def compile_object(source, to, *options):
    subprocess.run([*shlex.split(os.environ['BPF_COMPILE']), *options, '-c', source, '-o', to], check=True)


class Pair(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-own.'))

    def file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def install_example(self):
        with open(PAGE, encoding='utf-8') as file:
            text = file.read()
        source = re.search(r'```c\n(.*?)```', text, re.S).group(1)
        descriptor = re.search(r'```ini\n(.*?)```', text, re.S).group(1)
        self.file('started.conf', descriptor)
        compile_object(self.file('started.bpf.c', source), os.path.join(self.directory, 'started.bpf.o'))

    def recipe(self, title):
        """The blocks of code below that heading: {language: text}."""
        with open(PAGE, encoding='utf-8') as file:
            part = re.split(r'^##+ ', file.read(), flags=re.M)
        text = next(each for each in part if each.startswith(title + '\n'))
        return dict(re.findall(r'```(\w+)\n(.*?)```', text, re.S))

    def install(self, name, source, descriptor):
        source = self.recipe('Recipes')['c'] + source
        self.file(name + '.conf', descriptor)
        compile_object(self.file(name + '.bpf.c', source), os.path.join(self.directory, name + '.bpf.o'))

    def once_with_recipe(self, name, title, command, old='', new=''):
        """In its descriptor, the new text is in the place of the old one."""
        blocks = self.recipe(title)
        self.assertIn(old, blocks['ini'])
        self.install(name, blocks['c'], blocks['ini'].replace(old, new) if old else blocks['ini'])
        return once([name], command, params=self.params())

    def install_own(self, name):
        with open(os.path.join(HERE, 'own', name + '.conf'), encoding='utf-8') as file:
            self.file(name + '.conf', file.read())
        compile_object(os.path.join(HERE, 'own', name + '.bpf.c'), os.path.join(self.directory, name + '.bpf.o'))

    def params(self, **settings):
        return dict(settings, agent={'collector_directory': self.directory})


class OwnTest(Pair):
    def test_the_example_of_the_manual_counts_every_exec(self):
        self.install_example()
        script = self.file('script', '#!/bin/sh\ntrue\n')
        os.chmod(script, 0o755)
        with Cgroup('own') as cgroup:
            lines = ''.join('%s; /bin/true; ' % script for _ in range(EXECS))
            seen = once(['started'], cgroup.command(['/bin/sh', '-c', lines + 'true']), params=self.params())
            mine = seen.of(cgroup)
        self.assertEqual(mine.total('process.execs', **{'process.exec.kind': 'script'}), EXECS)
        # /bin/true each time, and the shell itself
        self.assertEqual(mine.total('process.execs', **{'process.exec.kind': 'binary'}), EXECS + 1)
        self.assertNotIn('started.unused', str(list(seen)))

    def test_recipe_of_an_enum_as_the_key_of_an_array(self):
        forks = 'import os\nfor _ in range(50):\n    if not os.fork(): os._exit(0)\n    os.wait()\n'
        threads = 'import threading\nfor _ in range(70):\n    t = threading.Thread(); t.start(); t.join()\n'
        seen = self.once_with_recipe('tasks', 'An enum as the key of an array', [sys.executable, '-c', forks + threads])
        # The whole machine is counted.
        self.assertEqual({point['attributes']['system.task.kind'] for point in seen}, {'process', 'thread'})
        self.assertGreaterEqual(seen.total('system.tasks.created', **{'system.task.kind': 'process'}), 50)
        self.assertGreaterEqual(seen.total('system.tasks.created', **{'system.task.kind': 'thread'}), 70)

    def test_recipe_of_a_number_set_once_per_collection(self):
        harness.require_map_iterators(self)
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        seen = self.once_with_recipe('uptime', 'A number without attributes, set once per collection', ['/bin/true'])
        [point] = seen
        self.assertEqual(point['attributes'], {})
        self.assertTrue(before <= point['value'] <= time.clock_gettime(time.CLOCK_BOOTTIME), point)

    def test_recipe_of_a_histogram_with_bounds(self):
        loop = 'import os\nfor _ in range(200):\n    if not os.fork(): os._exit(0)\n    os.wait()\n'
        [point] = self.once_with_recipe('pids', 'A histogram with bounds of your own', [sys.executable, '-c', loop])
        self.assertEqual(point['total']['bounds'], list(range(0, 1001, 100)))
        self.assertEqual(len(point['total']['counts']), 12)
        self.assertGreaterEqual(sum(point['total']['counts']), 200)
        self.assertEqual(point['total']['count'], sum(point['total']['counts']))

    def test_recipe_of_records(self):
        with Cgroup('own') as cgroup:
            command = cgroup.command(['/bin/sh', '-c', '/bin/true; ' * 20 + ':'])
            mine = self.once_with_recipe('ends', 'Records of a ring buffer, counted', command).of(cgroup)
        self.assertEqual(mine.by('process.command'), {'true': 20, 'sh': 1})

    def test_recipe_of_events_which_may_be_counted_too(self):
        blocks = self.recipe('Events')
        source = blocks['c'].replace('	u32 signal;', '	u32 signal;\n	val_ns half;')
        source = source.replace('.signal = signal }', '.signal = signal, .half = (u64)signal * 500000000 }')
        self.install('kills', source, blocks['ini'].replace('record = kill\n', 'record = kill\nseverity = warn\nattribute = test.part=a\n') +
                     '[metric kills]\nname = test.kills\nunit = {signal}\ndescription = Signals\nrecord = kill\n')
        for command in ('once', 'events'):
            with self.subTest(command), Cgroup('own') as cgroup:
                done = subprocess.run([harness.agent(), command, '--config=/dev/null', '--collector-directory=' + self.directory,
                                       'kills', '--format=json', '--set=kills.rate_limit=0', '--whole-machine', '--where=unit=' + cgroup.path, '--',
                                       *cgroup.command(['/bin/sh', '-c', 'for i in 1 2 3; do kill -10 $$; done; kill -12 $$; :']) ],
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE_S,
                                      preexec_fn=lambda: [signal.signal(number, signal.SIG_IGN) for number in (10, 12)], check=True)
                lines = [json.loads(line) for line in done.stdout.splitlines()]
                self.assertEqual(done.stderr, '')
                if command == 'once':
                    mine = {line['attributes']['process.signal']: line['total'] for line in lines if line['name'] == 'test.kills'}
                    self.assertEqual({number: mine[number] for number in (10, 12)}, {10: 3, 12: 1})
                    continue
                mine = [line for line in lines if line['attributes']['process.signal'] in (10, 12)]
                self.assertEqual([(line['event'], line['severity'], line['attributes']['process.signal'],
                                   line['attributes']['kills.half'], line['attributes']['test.part']) for line in mine],
                                 [('process.signal.sent', 'WARN', number, number / 2, 'a') for number in (10, 10, 10, 12)])

    def test_recipe_of_spans(self):
        blocks = self.recipe('Spans')
        self.install('lives', blocks['c'], blocks['ini'])
        with Cgroup('own') as cgroup:
            begin_ns = time.time_ns()
            done = subprocess.run([harness.agent(), 'events', '--config=/dev/null', '--collector-directory=' + self.directory, 'lives', '--format=json',
                                   '--set=lives.rate_limit=0', '--whole-machine', '--where=unit=' + cgroup.path, '--',
                                   *cgroup.command(['/bin/sh', '-c', 'for i in 1 2 3; do sleep 0.1; done; :'])],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE_S, check=True)
            end_ns = time.time_ns()
        self.assertEqual(done.stderr, '')
        spans = [json.loads(line) for line in done.stdout.splitlines()]
        lives = {name: [span for span in spans if span['attributes']['span_name'] == name] for name in ('sleep', 'sh')}
        self.assertEqual({name: len(of) for name, of in lives.items()}, {'sleep': 3, 'sh': 1})
        self.assertEqual(len({span['attributes']['trace_id'] for span in spans}), len(spans))
        for span in [*lives['sleep'], *lives['sh']]:
            self.assertGreaterEqual(span['attributes']['duration'], 0.1)
            self.assertGreaterEqual(span['time_ns'], begin_ns)
            self.assertLessEqual(span['time_ns'] + span['attributes']['duration'] * 1e9, end_ns)

    def test_recipe_of_chosen_cgroups(self):
        with Cgroup('own') as cgroup:
            shell = ['/bin/sh', '-c', '/bin/true; ' * 20 + ':']
            command = ' '.join(map(shlex.quote, cgroup.command(shell)))
            # The forks outside are not counted, nor those of other tests.
            seen = self.once_with_recipe('chosen', 'Only chosen cgroups', ['/bin/sh', '-c', f'/bin/true; /bin/true; {command}'],
                                         '^/bpfpush-test', '^' + cgroup.path)
        self.assertEqual(seen.total('system.forks'), 20)

    def test_recipe_of_the_arguments_of_a_function(self):
        size = 54321 << 10
        calls = f'import ctypes\nc = ctypes.CDLL(None)\nc.malloc.argtypes = [ctypes.c_size_t]\n' \
            f'for _ in range(30): c.malloc({size})\n'
        seen = self.once_with_recipe('malloc', 'Arguments of functions: kprobes, uprobes and USDT',
                                     [sys.executable, '-c', calls])
        [point] = seen
        bucket = next(i for i, bound in enumerate(point['total']['bounds']) if bound >= size)
        self.assertGreaterEqual(point['total']['counts'][bucket], 30)
        self.assertGreaterEqual(point['total']['sum'], 30 * size)

    def test_recipe_of_a_check_that_the_compiler_removes(self):
        lines = self.recipe('A check that the compiler removes')['c']
        self.install('check', AROUND % ('', lines + '\tif (value)\n\t\t++*value;'), DESCRIPTOR)
        self.assertGreater(once(['check'], ['/bin/sh', '-c', '/bin/true; :'], params=self.params()).total('test.seen'), 0)

    @unittest.skipUnless(os.uname().machine == 'x86_64', 'the recipe is for x86-64')
    def test_recipe_of_the_arguments_of_system_calls(self):
        lines = self.recipe('Arguments of system calls')['c']
        self.install('arguments', AROUND % (lines, '\tif (value)\n\t\t*value = asked_bytes;'), DESCRIPTOR)
        command = 'dd if=/dev/zero of=/dev/null bs=1000003 count=7 2>/dev/null; /bin/true; :'
        self.assertGreaterEqual(once(['arguments'], ['/bin/sh', '-c', command], params=self.params()).total('test.seen'), 7 * 1000003)

    def test_recipe_of_symbols_and_settings_of_the_kernel(self):
        lines = self.recipe('Symbols and settings of the kernel')['c']
        body = '\tif (value)\n\t\t*value = ((u64)&schedule & 0x7fffffff) + (CONFIG_HZ ? 0 : 1ull << 32);'
        with open('/proc/kallsyms', encoding='ascii') as file:
            address = next(int(line.split()[0], 16) for line in file if line.split()[2] == 'schedule')
        self.install('symbols', AROUND % (lines, body), DESCRIPTOR)
        seen = once(['symbols'], ['/bin/sh', '-c', '/bin/true; :'], params=self.params())
        self.assertEqual(seen.total('test.seen'), address & 0x7fffffff)

    def test_hooks_that_are_missing_are_explained(self):
        hooks = """
SEC("tp_btf/no_such_tracepoint")
int BPF_PROG(first) { return 0; }
SEC("uprobe/libc.so.6:no_such_symbol")
int second(void *context) { return 0; }
SEC("tp/sched/no_such_tracepoint")
int third(void *context) { return 0; }
"""
        self.install('missing', AROUND % (hooks, '\tif (value)\n\t\t++*value;'), DESCRIPTOR)
        listed = json.loads(subprocess.run([harness.agent(), 'list', '--json', '--for=1ms', '--config=/dev/null',
                                            f'--collector-directory={self.directory}', 'missing'],
                                           stdout=subprocess.PIPE, check=True).stdout)
        errors = {program['name']: program.get('error', '') for program in listed['programs']}
        none = 'this kernel has no tracepoint of that name'
        has_tracefs = os.path.exists('/sys/kernel/tracing/events')
        self.assertIn(f'({none})', errors['first'])
        self.assertIn("failed to find symbol 'no_such_symbol'", errors['second'])
        unmounted = "mount tracefs at /sys/kernel/tracing, and look there for the tracepoint's name"
        self.assertIn(f'({none if has_tracefs else unmounted})', errors['third'])

    def test_timers_have_names_kinds_delays_and_a_level(self):
        self.install_own('timers')
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
        self.install_own('timers')
        seen = once(['timers'], ['/bin/sleep', '0.3'], params=self.params(timers={'pending': 'no'}))
        self.assertGreater(seen.total('bpfpush.timer.starts'), 0)
        self.assertFalse(seen.select('bpfpush.timer.pending'))

    def test_what_was_there_before_the_start_is_not_counted(self):
        self.install_own('baseline')
        with Cgroup('own') as cgroup:
            loop = 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done'
            seen = once(['baseline'], cgroup.command(['/bin/sh', '-c', loop]), params=self.params())
            mine = seen.of(cgroup)
        # One run of the iterator after the first: it copied 1 000 000, then 5 more, and tallied 1 each time.
        self.assertEqual(seen.total('test.copied'), 5)
        self.assertEqual(seen.total('test.tally'), 1)
        # Set to 100, perhaps on several CPUs.
        self.assertEqual(seen.total('test.level'), 100)
        # task__fork and task__exit are not alternatives. The shell itself ends too; it was forked outside.
        self.assertEqual(mine.total('test.forks'), 10)
        self.assertEqual(mine.total('test.exits'), 11)


class BoundsTest(Pair):
    """own/bounds: histograms with bounds of their own, as structures and with the bucket in the key."""
    VALUES = [0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 16, 17, 31, 32, 33, 49, 50, 50, 51, 99, 100, 101, 128, 129, 149,
              150, 151, 1000, 1001, 5000, 123456789]
    CALLS = 'import ctypes\nc = ctypes.CDLL(None)\nfor v in %r: c.syscall(*map(ctypes.c_long, (124, v, 0x62706675)))\n'

    def setUp(self):
        super().setUp()
        self.install_own('bounds')

    def assert_histogram(self, point, bounds, values, per_unit=1, has_sum=True):
        """values: counted anew; bounds: as the map counts, of which there are so many per unit."""
        limits = [-1, *bounds, float('inf')]
        expected = {'count': len(values), 'bounds': [bound / per_unit for bound in bounds],
                    'counts': [sum(low < value <= high for value in values) for low, high in zip(limits, limits[1:])]}
        if has_sum:
            expected['sum'] = sum(values) / per_unit
        self.assertEqual(point['total'], expected, point['name'])

    def test_each_value_is_in_its_bucket(self):
        seen = once(['bounds'], [sys.executable, '-c', self.CALLS % self.VALUES], params=self.params())
        points = {point['name'].removeprefix('test.'): point for point in seen if 'parity' not in str(point['attributes'])}
        for place in ('shared', 'percpu'):
            self.assert_histogram(points[place + '.linear'], [50, 100, 150], self.VALUES)
            self.assert_histogram(points[place + '.fixed'], [1, 2, 5, 1000], self.VALUES)
            self.assert_histogram(points[place + '.powers'], [8, 16, 32, 64, 128], self.VALUES)
        self.assert_histogram(points['shared.scaled'], [50, 100, 150], self.VALUES, 1000)
        # A key k of linear counts from k * 50 on.
        self.assert_histogram(points['key.linear'], [49, 99, 149], self.VALUES, 1000000, has_sum=False)
        self.assert_histogram(points['key.zero'], [0, 1, 2, 4, 8], self.VALUES, has_sum=False)
        self.assert_histogram(points['key.floor'], [1, 3, 7, 15, 31, 63], self.VALUES)
        self.assert_histogram(points['key.fixed'], [10, 100], self.VALUES, has_sum=False)
        for parity in range(2):
            [point] = seen.select('test.key.powers', **{'bounds.parity': parity})
            self.assert_histogram(point, [1, 2, 4, 8, 16, 32], [value for value in self.VALUES if value % 2 == parity])
            self.assertEqual(list(point['attributes']), ['bounds.parity'])
        for name in ('key.linear', 'key.zero', 'key.fixed'):
            self.assertEqual(points[name]['attributes'], {})

    def test_a_structure_of_the_headers_moves_with_its_numbers(self):
        values = [0, 1, 3, 3, 1000]
        seen = once(['bounds'], [sys.executable, '-c', self.CALLS % values], params=self.params())
        total = seen.select('test.shared.known')[0]['total']
        counts = dict(zip(total['bounds'], total['counts']))
        self.assertEqual({bound: n for bound, n in counts.items() if n}, {0: 1, 1024: 1, 4096: 2, 1 << 20: 1})
        self.assertEqual(total['sum'], sum(values) * 1024)

    def test_bounds_that_do_not_fit_the_sum_are_said_once(self):
        with open(os.path.join(self.directory, 'bounds.conf'), encoding='utf-8') as file:
            fitting = file.read()
        call = self.CALLS % [*range(1, 9), *[17] * 10]
        for wrong, said in ((fitting, []), (fitting.replace('exp2 floor 0..5', 'exp2 0..5'), ['test.key.floor is 206, and its bounds allow 94 to 189']),
                            (fitting.replace('= exp2 0..5', '= exp2 floor 0..5'), ['test.key.powers is 186, and its bounds allow 327 to 668'])):
            with self.subTest(said):
                self.file('bounds.conf', wrong)
                seen = once(['bounds'], [sys.executable, '-c', call], params=self.params())
                self.assertEqual(re.findall('collector bounds: the sum of (.*?): its map', seen.stderr), said)

    def test_the_largest_number_is_above_all_bounds(self):
        seen = once(['bounds'], [sys.executable, '-c', self.CALLS % [-1]], params=self.params())
        for name in ('shared.linear', 'percpu.linear', 'shared.fixed', 'percpu.fixed', 'shared.powers', 'percpu.powers'):
            [point] = seen.select('test.' + name)
            self.assertEqual(point['total']['sum'], (1 << 64) - 1)
            self.assertEqual(point['total']['counts'][-1], 1, name)

    def test_the_shape_shows_what_became_of_bounds(self):
        shape = subprocess.run([harness.agent(), 'dump', 'shape', '--config=/dev/null',
                                '--collector-directory=' + self.directory, 'bounds'],
                               stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertIn('  test.shared.scaled: 4 buckets up to 50 100 150, divided by 1000\n', shape)
        self.assertIn('  test.key.powers: 7 buckets up to 1 2 4 8 16 32, divided by 1\n', shape)
        self.assertIn('  test.key.linear: 4 buckets up to 49 99 149, divided by 1000000, no sum\n', shape)
        self.assertEqual(shape.count(' buckets up to '), 12)

    def test_numbers_are_multiplied_exactly(self):
        # No double has all of these digits.
        values = [(1 << 53) + 1] * 3
        seen = once(['bounds'], [sys.executable, '-c', self.CALLS % values], params=self.params())
        self.assertEqual(seen.total('test.calls'), 3 * 1024)
        self.assertEqual(seen.total('test.last'), ((1 << 53) + 1) / 2)
        output = subprocess.run([harness.agent(), 'once', '--format=json', '--config=/dev/null',
                                 '--collector-directory=' + self.directory, 'bounds', '--whole-machine', '--', sys.executable, '-c',
                                 self.CALLS % values], stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertIn('"value":4503599627370496.5}', output)
        self.assertIn('"sum":27021597764222.979,"bounds":[0.05,0.1,0.15],"counts":[0,0,0,3]', output)


class SharedTest(Pair):
    """own/shared: one object of the collectors own/first and own/second."""
    FORKS = 10

    def setUp(self):
        super().setUp()
        for name in ('first', 'second'):
            with open(os.path.join(HERE, 'own', name + '.conf'), encoding='utf-8') as file:
                self.file(name + '.conf', file.read())
        compile_object(os.path.join(HERE, 'own', 'shared.bpf.c'), os.path.join(self.directory, 'shared.bpf.o'))

    def count(self, *names, **settings):
        """-> what was counted, what of it in the workload's cgroup, and the facts by name"""
        with Cgroup('own') as cgroup:
            command = cgroup.command(['/bin/sh', '-c', '/bin/true; ' * self.FORKS + ':'])
            seen = once(names, command, params=self.params(**settings))
            facts = {point['attributes']['test.fact']: point['value'] for point in seen.select('test.facts')}
            return seen, seen.of(cgroup), facts

    def list(self, *names):
        """-> {collector: {program: its state}}"""
        done = subprocess.run([harness.agent(), 'list', '--json', '--for=1ms', '--config=/dev/null',
                               f'--collector-directory={self.directory}', *names], stdout=subprocess.PIPE, check=True)
        listed = [json.loads(line) for line in done.stdout.splitlines()]
        return {each['collector']: {program['name']: program['state'] for program in each['programs']} for each in listed}

    def test_one_alone_runs_only_its_own_programs(self):
        harness.require_map_iterators(self)
        seen, mine, facts = self.count('first')
        self.assertEqual(mine.total('test.first.forks'), self.FORKS)
        self.assertFalse(seen.select('test.second.forks') + seen.select('test.exits'))
        self.assertEqual(facts, {'on': 1, 'each': 3, 'once': 1})
        self.assertEqual(self.list('first'), {'first': {name: 'attached' for name in ('task_fork', 'run_each', 'run_once')}})

    def test_the_other_alone(self):
        seen, mine, _ = self.count('second')
        self.assertEqual(mine.total('test.second.forks'), self.FORKS)
        self.assertEqual(mine.total('test.exits'), self.FORKS + 1)
        self.assertFalse(seen.select('test.first.forks') + seen.select('test.facts'))

    def test_both_share_one_loaded_object(self):
        harness.require_map_iterators(self)
        _, mine, facts = self.count('second', 'first')
        self.assertEqual(mine.total('test.first.forks'), self.FORKS)
        self.assertEqual(mine.total('test.second.forks'), self.FORKS)
        self.assertEqual(mine.total('test.exits'), self.FORKS + 1)
        # Iterators run at the start and before the only reading, or only at the start.
        self.assertEqual(facts, {'on': 3, 'exit': 1, 'each': 3, 'once': 1})
        listed = self.list('first', 'second')
        self.assertEqual(listed['first'], {name: 'attached' for name in ('task_fork', 'run_each', 'run_once')})
        self.assertEqual(listed['second'], {'task_fork': 'attached', 'task_exit': 'attached', 'task_none': 'refused',
                                            'run_each': 'attached'})

    def test_a_setting_is_that_of_one_collector(self):
        _, mine, _ = self.count('first', 'second', second={'step': 3})
        self.assertEqual(mine.total('test.first.forks'), self.FORKS)
        self.assertEqual(mine.total('test.second.forks'), 3 * self.FORKS)

    def test_a_map_whose_setting_is_off_is_not_read(self):
        seen, mine, facts = self.count('first', 'second', second={'exits': 'no'})
        self.assertEqual(facts['exit'], 1)
        self.assertFalse(seen.select('test.exits'))
        self.assertEqual(mine.total('test.second.forks'), self.FORKS)

    def test_a_refused_program_makes_only_those_partial_that_use_it(self):
        harness.require_map_iterators(self)
        seen, _, _ = self.count('first', 'second')
        self.assertIn('collector second is partial: the kernel refused task_none', seen.stderr)
        self.assertNotIn('collector first', seen.stderr)

    def first_points(self, names):
        """-> all points of the first collection, and of which collector's programs it tells"""
        output = os.path.join(self.directory, 'points')
        config = self.file('agent.cfg', f'[agent]\ninterval = 1s\ncollectors = {names}\n'
                           f'collector_directory = {self.directory}\n[exporter x]\ntype = json\npath = {output}\n')
        agent = subprocess.Popen([harness.agent(), 'run', '--config=' + config], stderr=subprocess.DEVNULL)
        try:
            while agent.poll() is None and not (os.path.exists(output) and os.path.getsize(output)):
                time.sleep(0.1)
        finally:
            agent.terminate()
            agent.wait()
        with open(output, encoding='utf-8') as file:
            lines = [json.loads(line) for line in file]
        points = harness.Points(point for point in lines if point['time_ns'] == lines[0]['time_ns'])
        programs = [(point['attributes']['bpfpush.collector.name'], point['attributes']['bpfpush.program.name'])
                    for point in points.select('bpfpush.bpf.program.attached')]
        return points, sorted(each for each in programs if each[0] != 'cgroup')

    def test_one_that_cannot_run_leaves_its_programs_to_the_others(self):
        self.file('early.conf', '[collector]\ndescription = test\nobject = shared\n[metric visited]\nname = test.visited\n'
                  'unit = 1\ndescription = test\n[program task_fork]\nbackup = task_exit\n[program task_none]\n')
        _, programs = self.first_points('early second')
        self.assertEqual(programs, [('second', name) for name in ('run_each', 'task_exit', 'task_fork', 'task_none')])
        self.assertEqual(list(self.list('early', 'second')), ['second', 'early'])

    def test_programs_and_maps_are_reported_once(self):
        points, programs = self.first_points('first second')
        self.assertEqual(programs, [
            ('first', 'run_each'), ('first', 'run_once'), ('first', 'task_fork'), ('second', 'task_exit'),
            ('second', 'task_none')])
        maps = [(point['attributes']['bpfpush.collector.name'], point['attributes']['bpfpush.map.name'])
                for point in points.select('bpfpush.bpf.map.entry.limit')]
        for owner, name in (('first', 'first_forks'), ('second', 'second_forks'), ('second', 'exits'), ('first', 'facts'),
                            ('first', 'visited')):
            self.assertEqual([each for each in maps if each[1] == name], [(owner, name)])

    def test_missing_rights_are_reported_once_for_all_collectors(self):
        if rights.nobody_refusal():
            self.skipTest(f'needs {rights.nobody_refusal()}')
        os.chmod(self.directory, 0o755)
        program = shutil.copy(harness.agent(), self.directory)
        done = subprocess.run([program, 'once', '--config=/dev/null', f'--collector-directory={self.directory}', 'first',
                               'second', '--whole-machine', '--', '/bin/true'], stderr=subprocess.PIPE, text=True, check=False,
                              preexec_fn=rights.become_nobody)
        self.assertEqual((done.returncode, done.stderr.splitlines()),
                         (77, ['not started: CAP_BPF and CAP_PERFMON are missing: run as root, or with CAP_BPF and CAP_PERFMON']))


class BegunTest(Pair):
    """A collector of which only a part runs that fills no exported map."""
    SAID = 'collector begun cannot run: the kernel refused all programs that count, such as end (tp_btf/task_that_ends_nowhere): '

    def run_bpfpush(self, *words):
        return subprocess.run([harness.agent(), *words, '--for=1ms', '--config=/dev/null', f'--collector-directory={self.directory}',
                               'begun'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    def test_it_does_not_run(self):
        self.install_own('begun')
        for command in ('once', 'list'):
            with self.subTest(command):
                done = self.run_bpfpush(command)
                said, nothing = [line for line in done.stderr.splitlines()]
                self.assertTrue(said.startswith(self.SAID) and said.endswith('(this kernel has no tracepoint of that name)'), said)
                self.assertEqual((done.returncode, nothing), (69, 'not started: no collector runs, so nothing can be counted'))
                # A list shows what was refused.
                self.assertEqual(' refused\n ' in done.stdout, command == 'list', done.stdout)

    def test_others_run_without_it(self):
        self.install_own('begun')
        done = self.run_bpfpush('list', '--json', 'cgroup')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.SAID, done.stderr)
        self.assertEqual([json.loads(line)['collector'] for line in done.stdout.splitlines()], ['cgroup', 'begun'])


class PinnedTest(Pair):
    """A second run does not start with the total of the first."""

    def setUp(self):
        super().setUp()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNS) or libc.mount(None, b'/', None, MS_REC | MS_PRIVATE, None) or \
                libc.mount(b'bpf', b'/sys/fs/bpf', b'bpf', 0, None):
            self.skipTest('no file system for pinned maps: %s' % os.strerror(ctypes.get_errno()))
        self.addCleanup(libc.umount, b'/sys/fs/bpf')

    def test_a_pinned_map_is_counted_from_the_start(self):
        self.install_own('pinned')
        with Cgroup('own') as cgroup:
            for n in (10, 3):
                command = cgroup.command(['/bin/sh', '-c', '/bin/true; ' * n + ':'])
                seen = once(['pinned'], command, params=self.params())
                self.assertEqual(seen.of(cgroup).total('test.forks'), n)


if __name__ == '__main__':
    harness.main()
