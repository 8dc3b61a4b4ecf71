# SPDX-License-Identifier: Apache-2.0
"""Hooks that a descriptor names: own/hooks, whose sections hold no targets."""
import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import harness
import json_lines
from harness import PATIENCE_S, check_margin, once, workload
from manager import Manager

HERE = os.path.dirname(os.path.realpath(__file__))
N = 500
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000  # sched.h, sys/mount.h
TARGETS = {'call': 'target = libc:malloc', 'function_return': 'target = libc:malloc', 'mark': 'target = libc:libc:setjmp',
           'classic': 'target = sched/sched_switch', 'raw': 'target = sys_enter', 'btf': 'target = sys_enter',
           'fault': 'event = page-faults', 'switched': '', 'tick': 'event = cycles', 'seed': '', 'packet': 'interface = lo',
           'entry': 'target = do_nanosleep', 'exit_': 'target = do_nanosleep'}
METRIC = """[collector]
description = test
[metric runs]
name = test.runs
unit = {run}
description = test
"""


def mount_tracefs():
    """For this process and its children alone."""
    libc = ctypes.CDLL(None)
    libc.unshare(CLONE_NEWNS)
    libc.mount(b'none', b'/', None, MS_REC | MS_PRIVATE, None)
    libc.mount(b'tracefs', b'/sys/kernel/tracing', b'tracefs', 0, None)


class Hooks(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-hooks.'))
        subprocess.run([*shlex.split(os.environ['BPF_COMPILE']), '-c', os.path.join(HERE, 'own', 'hooks.bpf.c'),
                        '-o', os.path.join(self.directory, 'hooks.bpf.o')], check=True)

    def describe(self, programs, more=''):
        """programs: {name: its keys}; all others are off."""
        text = METRIC + more
        for name, target in TARGETS.items():
            text += '[program %s]\n%s' % (name, programs.get(name, 'when = off\n%s\n' % target))
        with open(os.path.join(self.directory, 'hooks.conf'), 'w', encoding='utf-8') as file:
            file.write(text)

    def once(self, programs, more='', strict='no', said='', command=(workload('noted'), str(N)), **options):
        """Returns what each hook has counted, and what the workload did. said: what is in each line of the log."""
        self.describe(programs, more)
        seen = once(['hooks'], command, params={'agent': {'collector_directory': self.directory, 'strict': strict}}, **options)
        self.assertEqual([line for line in seen.stderr.splitlines() if not said or said not in line], [])
        return {hook: int(total) for hook, total in seen.by('hooks.hook').items()}, seen.expected


class TargetTest(Hooks):
    def test_a_target_of_a_program_in_a_file(self):
        path = workload('noted')
        counted, done = self.once({'call': 'target = %s:noted_function\n' % path,
                                   'function_return': 'target = noted_function\nbinary = %s\n' % path,
                                   'mark': 'target = workload:noted\nbinary = %s\n' % path})
        self.assertEqual(counted, {'call': N, 'return': N, 'mark': N})
        self.assertEqual(done['calls'], N)

    def test_a_library_by_its_short_name(self):
        counted, _ = self.once({'call': 'target = libc:nanosleep\n', 'function_return': 'target = nanosleep\nbinary = libc\n'})
        self.assertEqual(counted, {'call': N, 'return': N})

    def test_targets_of_tracepoints(self):
        counted, done = self.once({'classic': 'target = syscalls/sys_enter_getrusage\n', 'raw': 'target = task_rename\n',
                                   'btf': 'target = task_rename\n'}, preexec_fn=mount_tracefs)
        # getrusage is called twice as "noted", and the task is renamed once while it has that name.
        self.assertEqual(counted, {'classic': 2, 'raw': 1, 'btf': 1})


class EventTest(Hooks):
    def test_each_fault_and_each_switch_is_counted(self):
        counted, done = self.once({'fault': 'event = page-faults\n', 'switched': ''})
        self.assertEqual(set(counted), {'fault', 'switch'})
        self.assertEqual(counted['fault'], done['faults'])
        self.assertIn(counted['switch'], range(done['switches'], done['switches_around'] + 1))
        self.assertGreater(done['faults'], N / 2)  # the kernel may map a page before its fault
        self.assertGreater(done['switches'], N / 2)

    def test_a_period_is_kept(self):
        counted, done = self.once({'fault': 'event = page-faults\nperiod = 10\n'})
        # Which ones of all the faults on a CPU these are, is chance: five standard deviations.
        check_margin(self, 'faults besides each tenth', abs(counted['fault'] - done['faults'] / 10), 35)


class PacketTest(Hooks):
    SEND = """import socket
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(('127.0.0.1', 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(%d):
    sender.sendto(b'x', receiver.getsockname())
    receiver.recv(1)
""" % N

    def packets(self, keys, **options):
        return self.once({'packet': keys}, command=[sys.executable, '-c', self.SEND], preexec_fn=harness.enter_own_network, **options)[0]

    def test_each_packet_of_an_interface_is_counted(self):
        self.assertEqual(self.packets('interface = lo\n'), {'packet': N})
        self.assertEqual(self.packets('interface = lo\nmode = generic\n'), {'packet': N})
        self.assertEqual(self.packets('target = lo\n'), {'packet': N})

    def test_all_interfaces(self):
        self.assertEqual(self.packets('interface = *\n'), {'packet': N})

    def test_an_interface_that_is_missing(self):
        with self.assertRaisesRegex(AssertionError, r'packet \(xdp/lo9\): attach: No such device \(this machine has no such interface; ip link lists them\)'):
            self.packets('interface = lo9\n')


class RestartTest(Hooks):
    def start(self, manager, **options):
        """Kills the agent and starts the next."""
        for process in manager.processes:
            process.kill()
            process.wait()
        config, self.output = (os.path.join(self.directory, name) for name in ('agent.conf', 'points'))
        with open(config, 'w', encoding='utf-8') as file:
            file.write('[agent]\ninterval = 1s\ncollectors = hooks\ncollector_directory = %s\n[exporter file]\n'
                       'type = json\npath = %s\n' % (self.directory, self.output))
        manager.start([harness.agent(), 'run', '--config=' + config], **options)
        manager.wait_for('READY=1')

    def wait_for_calls(self):
        for _ in range(PATIENCE_S * 10):
            points = json_lines.points(json_lines.read(self.output), n_killed=1)
            totals = [point['total'] for point in points if point['attributes'].get('hooks.hook') == 'call']
            if totals and totals[-1] == N:
                return
            time.sleep(0.1)
        self.fail(totals)

    def test_a_uprobe_counts_while_no_agent_runs(self):
        self.describe({'call': 'target = %s:noted_function\n' % workload('noted')})
        with Manager() as manager:
            self.start(manager)
            self.assertTrue(manager.ids(r'^hooks\..*\.l\.call$'))
            for process in manager.processes:
                process.kill()
                process.wait()
            subprocess.run([workload('noted'), str(N)], stdout=subprocess.DEVNULL, check=True)
            self.start(manager)
            self.wait_for_calls()

    def test_a_file_in_the_place_of_another_is_noticed_and_attached_at_the_next_start(self):
        program, log = (os.path.join(self.directory, name) for name in ('program', 'log'))

        def install():
            shutil.copy(workload('noted'), program + '.new')
            os.rename(program + '.new', program)
        install()
        self.describe({'call': 'target = %s:noted_function\n' % program})
        with Manager() as manager, open(log, 'a+', encoding='utf-8') as said:
            self.start(manager, stderr=said)
            install()
            for _ in range(PATIENCE_S * 10):
                said.seek(0)
                if 'program call (uprobe/%s:noted_function) does not run in the file that is there now' % program in said.read():
                    break
                time.sleep(0.1)
            else:
                self.fail('not noticed')
            self.start(manager)
            subprocess.run([program, str(N)], stdout=subprocess.DEVNULL, check=True)
            self.wait_for_calls()

    def test_an_object_with_a_perf_event_begins_again(self):
        self.describe({'call': 'target = %s:noted_function\n' % workload('noted'), 'fault': 'event = page-faults\n'})
        with Manager() as manager:
            for _ in range(2):
                self.start(manager)
                self.assertFalse(manager.ids(r'^hooks\.'))
            subprocess.run([workload('noted'), str(N)], stdout=subprocess.DEVNULL, check=True)
            self.wait_for_calls()


class CheckTest(Hooks):
    def check(self, programs, strict, **options):
        """The exit status of `bpfpush check`, and what it says."""
        self.describe(programs)
        config = os.path.join(self.directory, 'config')
        with open(config, 'w', encoding='utf-8') as file:
            file.write('[agent]\nstrict = %s\n' % strict)
        line = [harness.agent(), 'check', '--config=' + config, '--collector-directory=' + self.directory, 'hooks']
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        return done.returncode, [said.split(': ', 1)[1] for said in done.stderr.splitlines()]

    def test_what_this_machine_lacks_is_told(self):
        programs = {'call': 'target = libc:mallocate\n', 'function_return': 'target = /no/such/file:main\n',
                    'mark': 'target = %s:workload:noted\n' % workload('noted'), 'classic': 'target = sched/sched_swich\n',
                    'raw': 'target = sys_enter\n', 'btf': 'target = task_renam\n', 'fault': 'event = page-faults\n',
                    'tick': 'event = cpu-clock\n'}
        status, said = self.check(programs, 'no')
        self.assertEqual(status, 0)
        self.assertEqual(len(said), 4, said)
        self.assertRegex(said[0], r'^program "call" \(uprobe/libc:mallocate\): /.*/libc.so.6 has no function mallocate that it exports, and it is stripped of the names of all others$')
        self.assertEqual(said[1:], [
            'program "function_return" (uretprobe//no/such/file:main): this machine has no file /no/such/file',
            'program "classic" (tp/sched/sched_swich): this kernel has no tracepoint sched_swich: did you mean sched_switch?',
            'program "btf" (tp_btf/task_renam): this kernel has no tracepoint task_renam: did you mean task_rename?'])
        self.assertEqual(self.check(programs, 'yes'), (78, said))

    def test_a_name_in_a_file_that_cannot_be_attached_to(self):
        path = workload('noted')
        _, said = self.check({'call': 'target = %s:noted_choice\n' % path, 'function_return': 'target = libc:strlen\n',
                              'mark': 'target = %s:noted:workload\n' % path, 'seed': 'target = %s:nanosleep\n' % path}, 'no')
        said = dict(re.match(r'program "(\w+)" \(.*?\): (.*)', line).groups() for line in said)
        self.assertEqual(said.pop('call'), 'the processor decides which function of %s is called as noted_choice (IFUNC); '
                         'name that function, such as __noted_choice_plain' % path)
        self.assertRegex(said.pop('function_return'), r'is called as strlen \(IFUNC\); (name that function|the file is stripped)')
        self.assertRegex(said.pop('seed'), '^%s has no function nanosleep; /.*/libc.so.6 has it$' % re.escape(path))
        self.assertEqual(said, {'mark': '%s has no USDT noted:workload' % path})

    def test_a_tracepoint_of_another_category(self):
        _, said = self.check({'classic': 'target = foo/sched_switch\n', 'raw': 'target = sched_switch\n'}, 'no',
                             preexec_fn=mount_tracefs)
        self.assertEqual(said, ['program "classic" (tp/foo/sched_switch): this kernel has no tracepoint foo:sched_switch: did you '
                                'mean sched:sched_switch?'])


class StrictTest(Hooks):
    def test_a_hook_that_is_refused_keeps_a_strict_collector_from_starting(self):
        programs = {'raw': 'target = sys_enter\n', 'btf': 'target = task_renam\n'}
        self.once(programs, said='collector hooks is partial: the kernel refused btf (tp_btf/task_renam)')
        with self.assertRaisesRegex(AssertionError, r'status 69\n(.*\n)*not started: hooks are missing for collector hooks \(strict = yes\)'):
            self.once(programs, strict='yes')

    def test_hooks_that_are_refused_for_one_reason_are_one_line(self):
        programs = {'raw': 'target = sys_enter\n', 'entry': 'target = no_such\n', 'exit_': 'target = no_such\n',
                    'btf': 'target = task_renam\n'}
        self.describe(programs)
        said = once(['hooks'], (workload('noted'), '1'), params={'agent': {'collector_directory': self.directory}}).stderr
        self.assertEqual(re.findall(r'partial: the kernel refused (.*?): ', said),
                         ['entry (kprobe/no_such), exit_ (kretprobe/no_such)', 'btf (tp_btf/task_renam)'])


class ListTest(Hooks):
    def test_the_hooks_of_a_collector_that_cannot_run_are_shown(self):
        self.describe({'btf': 'target = task_renam\n'})
        done = subprocess.run([harness.agent(), 'list', '--config=/dev/null', '--collector-directory=' + self.directory, 'hooks'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 69)
        self.assertRegex(done.stdout, r'(?m)^  btf +tp_btf/task_renam +refused\n +load: No such process \(this kernel has no '
                         r'tracepoint of that name\)')
        self.assertIn('\n  call ', done.stdout)


class SymbolTest(Hooks):
    def test_a_variable_gets_the_address_of_a_symbol_before_a_program_runs_once(self):
        with open('/proc/kallsyms', encoding='ascii') as file:
            address = next(int(line.split()[0], 16) for line in file if line.split()[2] == 'schedule')
        counted, _ = self.once({'seed': ''}, more='kind = gauge\n[param kaddr_schedule]\nsymbol = schedule\n')
        self.assertEqual(counted, {'seed': address & 0xffffff})
        with self.assertRaisesRegex(AssertionError, 'this kernel has no symbol no_such_symbol'):
            self.once({'seed': ''}, more='[param kaddr_schedule]\nsymbol = no_such_symbol\n')


if __name__ == '__main__':
    harness.main()
