# SPDX-License-Identifier: Apache-2.0
"""A user's own pairs, dropped into a directory with nothing rebuilt: those that CONTRIBUTING.md shows, to the
letter; own/timers, which has a kernel function, an enum, a histogram, a signed gauge and a setting; own/baseline
and own/pinned, whose maps hold something at the start."""
import ctypes
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from harness import Cgroup, once

HERE = os.path.dirname(os.path.realpath(__file__))
CONTRIBUTING = os.path.join(HERE, '..', '..', 'CONTRIBUTING.md')
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


def compile_object(source, to):
    subprocess.run([*shlex.split(os.environ['BPF_COMPILE']), '-c', source, '-o', to], check=True)


class Pair(unittest.TestCase):
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

    def recipe(self, title):
        """The blocks of code below that heading: {language: text}."""
        with open(CONTRIBUTING, encoding='utf-8') as file:
            part = re.split(r'^###+ ', file.read(), flags=re.M)
        text = next(each for each in part if each.startswith(title + '\n'))
        return dict(re.findall(r'```(\w+)\n(.*?)```', text, re.S))

    def install(self, name, source, descriptor):
        source = self.recipe('Recipes')['c'] + source
        self.file(name + '.conf', descriptor)
        compile_object(self.file(name + '.bpf.c', source), os.path.join(self.directory, name + '.bpf.o'))

    def once_with_recipe(self, name, title, command):
        blocks = self.recipe(title)
        self.install(name, blocks['c'], blocks['ini'])
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
            seen = once(['exec'], cgroup.command(['/bin/sh', '-c', lines + 'true']), params=self.params())
            mine = seen.of(cgroup)
        self.assertEqual(mine.total('process.execs', **{'process.exec.kind': 'script'}), EXECS)
        # /bin/true each time, and the shell itself
        self.assertEqual(mine.total('process.execs', **{'process.exec.kind': 'binary'}), EXECS + 1)
        self.assertNotIn('exec.unused', str(list(seen)))

    def test_recipe_of_an_enum_as_the_key_of_an_array(self):
        forks = 'import os\nfor _ in range(50):\n    if not os.fork(): os._exit(0)\n    os.wait()\n'
        threads = 'import threading\nfor _ in range(70):\n    t = threading.Thread(); t.start(); t.join()\n'
        seen = self.once_with_recipe('tasks', 'An enum as the key of an array', [sys.executable, '-c', forks + threads])
        # The whole machine is counted.
        self.assertEqual({point['attributes']['system.task.kind'] for point in seen}, {'process', 'thread'})
        self.assertGreaterEqual(seen.total('system.tasks.created', **{'system.task.kind': 'process'}), 50)
        self.assertGreaterEqual(seen.total('system.tasks.created', **{'system.task.kind': 'thread'}), 70)

    def test_recipe_of_a_number_set_once_per_collection(self):
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        seen = self.once_with_recipe('uptime', 'A number without attributes, set once per collection', ['/bin/true'])
        [point] = seen
        self.assertEqual(point['attributes'], {})
        self.assertTrue(before <= point['value'] <= time.clock_gettime(time.CLOCK_BOOTTIME), point)

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
        self.assertIn('(the library or the symbol is missing)', errors['second'])
        self.assertIn(f'({none if has_tracefs else "mount tracefs at /sys/kernel/tracing"})', errors['third'])

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
