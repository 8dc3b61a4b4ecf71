# SPDX-License-Identifier: Apache-2.0
"""Probes: nothing but sections of the configuration, or options of the command line."""
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
from harness import Cgroup, check_margin, once, workload
from hidden import tracefs, write
from test_hooks import mount_tracefs

N = 600
ROOM = 4096  # for threads in calls of a latency; those that are in none keep up to half of it
PATH = workload('probed')
CALL, NEST, JUMP = (f'{PATH}:probed_{name}' for name in ('call', 'nest', 'jump'))
ERROR, WAIT, EXEC, LARGE = (f'{PATH}:probed_{name}' for name in ('error', 'wait', 'exec', 'large'))
NAME, TYPED = (f'{PATH}:probed_{name}' for name in ('name', 'typed'))
SYS_LSEEK = 62 if platform.machine() == 'aarch64' else 8
ERRORS = N // 4  # of probed_call(), which returns its number else
NUMBERS = [number for number in range(N) if number % 4]
TEXTS = {'a long name': 0, 'short': 1, 's': 2}  # of probed_name(), by the number's remainder


class Probes(unittest.TestCase):
    def count(self, *words, n=N, arguments=(), **probes):
        """probes: {name: keys of its section}. Returns the points of the workload, all points."""
        with Cgroup('probes') as cgroup:
            seen = once([*probes, *words], [PATH, cgroup.procs, n, *arguments], preexec_fn=mount_tracefs,
                        params={'probe ' + name: keys for name, keys in probes.items()})
            self.assertEqual(seen.stderr, '')
            return seen.of(cgroup), seen


class FunctionTest(Probes):
    def test_calls_are_counted_by_their_arguments(self):
        mine, _ = self.count(calls={'hook': 'uprobe:' + CALL, 'by': 'unit, comm, arg1:text'},
                             few={'hook': 'uprobe:' + CALL, 'by': 'unit, arg0:u8', 'name': 'test.few', 'unit': '{x}'})
        self.assertEqual(mine.by('calls.arg1', 'bpfpush.probe.calls'), {name: N / 3 for name in ('first', 'second', 'third')})
        self.assertEqual(mine.by('thread.name', 'bpfpush.probe.calls'), {'probed': N})
        self.assertEqual(mine.by('few.arg0', 'test.few'), {low: len([1 for i in range(N) if i % 256 == low]) for low in range(256)})
        self.assertEqual({point['unit'] for point in mine}, {'{call}', '{x}'})
        self.assertEqual({tuple(sorted(point['attributes'])) for point in mine},
                         {('calls.arg1', harness.OWNER, 'thread.name'), ('few.arg0', harness.OWNER)})

    def test_results_and_errors(self):
        mine, _ = self.count(results={'hook': 'uretprobe:' + CALL, 'measure': 'histogram ret', 'by': 'unit'},
                             value={'hook': 'uretprobe:' + CALL, 'measure': 'sum ret', 'by': 'unit, process'},
                             errors={'hook': 'uretprobe:' + CALL, 'by': 'unit, errno'},
                             both={'hook': 'uretprobe:' + CALL, 'by': 'unit, errno, arg1:text'})
        found = mine.total('bpfpush.probe.results')
        self.assertEqual((found['count'], found['sum']), (len(NUMBERS), sum(NUMBERS)))
        expected = {}
        for number in NUMBERS:
            bound = 1 << (number - 1).bit_length()
            expected[bound] = expected.get(bound, 0) + 1
        self.assertEqual({bound: n for bound, n in found['buckets'].items() if n}, expected)
        # It is called as variables of the object begin.
        self.assertEqual(mine.by('process.executable.name', 'bpfpush.probe.value'), {'workload-probed': sum(NUMBERS)})
        self.assertEqual(mine.by('error.type', 'bpfpush.probe.errors'), {'ENOENT': ERRORS, None: N - ERRORS})
        # What is known at the call counts at the return.
        self.assertEqual(mine.by('both.arg1', 'bpfpush.probe.both', **{'error.type': 'ENOENT'}),
                         {name: ERRORS / 3 for name in ('first', 'second', 'third')})

    def test_a_call_in_a_call_has_a_time_of_its_own(self):
        mine, seen = self.count(nest={'hook': 'uprobe:' + NEST, 'measure': 'latency', 'by': 'unit, arg0:s32'})
        done = seen.expected
        found = mine.total('bpfpush.probe.nest.duration')
        self.assertEqual(found['count'], done['nested'])
        self.assertEqual(mine.by('nest.arg0').keys(), set(range(done['nested'])))
        self.assertLessEqual(done['inner_ns'], found['sum'] * 1e9 + 1)
        self.assertLessEqual(found['sum'] * 1e9, done['outer_ns'] + 1)
        self.assertEqual(seen.total('bpfpush.probe.lost'), 0)

    def test_an_error_of_an_int_is_no_value(self):
        mine, _ = self.count(total={'hook': 'uretprobe:' + ERROR, 'measure': 'sum ret', 'by': 'unit'},
                             sizes={'hook': 'uretprobe:' + ERROR, 'measure': 'histogram ret', 'by': 'unit'})
        self.assertEqual(mine.total('bpfpush.probe.total'), sum(NUMBERS))
        self.assertEqual(mine.total('bpfpush.probe.sizes')['count'], len(NUMBERS))

    def test_a_value_that_is_too_large_is_lost(self):
        """A negative one is none, and neither lost."""
        mine, seen = self.count(large={'hook': 'uprobe:' + LARGE, 'measure': 'sum arg0:u64', 'by': 'unit'},
                                sizes={'hook': 'uprobe:' + LARGE, 'measure': 'histogram arg0:u64', 'by': 'unit'},
                                signed={'hook': 'uprobe:' + LARGE, 'measure': 'sum arg0', 'by': 'unit'},
                                errors={'hook': 'uretprobe:' + CALL, 'measure': 'sum ret:u64', 'by': 'unit'})
        for name in ('large', 'signed', 'errors'):
            self.assertEqual(mine.total('bpfpush.probe.' + name), sum(NUMBERS), name)
        found = mine.total('bpfpush.probe.sizes')
        self.assertEqual((found['count'], found['sum']), (len(NUMBERS), sum(NUMBERS)))
        lost = seen.select('bpfpush.probe.lost').by('bpfpush.probe.name')
        self.assertEqual(lost, {'large': N - len(NUMBERS), 'sizes': N - len(NUMBERS)})

    def test_a_function_of_the_c_library_by_its_result(self):
        mine, _ = self.count(renames={'hook': 'uretprobe:libc:rename', 'by': 'unit, ret:s32'},
                             timed={'hook': 'uprobe:libc:rename', 'measure': 'latency', 'by': 'unit, ret:s32'})
        self.assertEqual(mine.by('renames.ret', 'bpfpush.probe.renames'), {-1: N})
        self.assertEqual(mine.total('bpfpush.probe.timed.duration', **{'timed.ret': -1})['count'], N)

    def test_arguments_are_shown_as_their_types_say(self):
        mine, _ = self.count(to={'hook': 'uprobe:' + TYPED, 'by': 'unit, arg0:ipv6, arg1:ipv4, arg2:be16, arg5:errno'},
                             on={'hook': 'uprobe:' + TYPED, 'by': 'unit, arg3:dev, arg4:enum=TCP_ESTABLISHED, arg1:hex'},
                             at={'hook': 'uprobe:' + TYPED, 'by': 'unit, arg4:ifindex'})
        every = range(N)
        self.assertEqual(mine.by('to.arg0', 'bpfpush.probe.to'), {f'2001:db8::{i or ""}': N / 3 for i in range(3)})
        self.assertEqual(mine.by('to.arg1', 'bpfpush.probe.to'), {f'192.0.2.{i}': N / 5 for i in range(5)})
        self.assertEqual(mine.by('to.arg2', 'bpfpush.probe.to'), {8080: N / 2, 8081: N / 2})
        self.assertEqual(mine.by('to.arg5', 'bpfpush.probe.to'), {'ENOENT': ERRORS, None: N - ERRORS})
        self.assertEqual(mine.by('on.arg3', 'bpfpush.probe.on'), {device_name('7:0'): N})
        names = {1: 'TCP_ESTABLISHED', 2: 'TCP_SYN_SENT', 3: 'TCP_SYN_RECV', 99: '99'}
        states = [i % 3 + 1 if i % 6 else 99 for i in every]
        self.assertEqual(mine.by('on.arg4', 'bpfpush.probe.on'), {name: states.count(state) for state, name in names.items()})
        self.assertEqual(mine.by('on.arg1', 'bpfpush.probe.on'), {f'{i << 24 | 0x0200c0:#x}': N / 5 for i in range(5)})
        self.assertEqual(mine.by('at.arg4', 'bpfpush.probe.at')['lo'], states.count(1))

    def test_the_text_that_a_function_returns(self):
        """Where it returns, and of a call whose arguments are known, too. A shorter text leaves nothing of a longer one."""
        mine, _ = self.count(names={'hook': 'uretprobe:' + NAME, 'by': 'unit, ret:text'},
                             pairs={'hook': 'uretprobe:' + NAME, 'by': 'unit, ret:text, arg0:s32'},
                             times={'hook': 'uprobe:' + NAME, 'measure': 'latency', 'by': 'unit, ret:text'})
        expected = {text: len([i for i in NUMBERS if i % 3 == rest]) for text, rest in TEXTS.items()}
        expected[''] = ERRORS  # NULL
        self.assertEqual(mine.by('names.ret', 'bpfpush.probe.names'), expected)
        self.assertEqual(mine.by('pairs.ret', 'bpfpush.probe.pairs'), expected)
        self.assertEqual(len(mine.select('bpfpush.probe.pairs')), N)
        times = mine.by('times.ret', 'bpfpush.probe.times.duration')
        self.assertEqual({text: time['count'] for text, time in times.items()}, expected)
        with Cgroup('probes') as cgroup:
            done = subprocess.run([harness.agent(), 'dump', '--config=/dev/null', f'--probe=latency uprobe:{NAME} by ret:text', 'snapshot',
                                   '--', PATH, cgroup.procs, str(N)], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(len(re.findall('^times [0-9a-f]', done.stdout, re.MULTILINE)), len(expected))

    def test_a_function_of_several_versions(self):
        mine, _ = self.count(n=50, arguments=['threads'], made={'hook': 'uprobe:libc:pthread_create', 'by': 'unit'})
        self.assertEqual(mine.total('bpfpush.probe.made'), 50)

    def test_threads_that_find_no_room_are_counted(self):
        """Each makes a call alone before, and keeps its room or leaves it."""
        for n, measured in ((ROOM, ROOM), (5000, ROOM)):
            self.check_threads('threads', n, n + measured, n - measured)

    def test_threads_that_end_in_a_call_leave_their_room(self):
        """One after the other, more than have room; another call comes last."""
        self.check_threads('end', ROOM + 100, 1, ROOM + 100)

    def check_threads(self, mode, n, measured, lost):
        mine, seen = self.count(n=n, arguments=[mode], wait={'hook': 'uprobe:' + WAIT, 'measure': 'latency', 'by': 'unit'})
        is_preempting = seen.select('bpfpush.bpf.program.attached', **{'bpfpush.program.name': 'thread_end_again'})
        # Kernels that preempt a uprobe's program let another run of it spoil its stack.
        margin = n // 50 if is_preempting else 0
        check_margin(self, 'calls measured', abs(mine.total('bpfpush.probe.wait.duration')['count'] - measured), margin)
        check_margin(self, 'calls lost', abs(seen.total('bpfpush.probe.lost') - lost), 2 * margin)

    def test_calls_that_exec_ends_leave_room(self):
        """The thread that calls exec is the first of the program, or another one."""
        mine, seen = self.count(n=50, arguments=['exec'], left={'hook': 'uprobe:' + EXEC, 'measure': 'latency', 'by': 'unit'})
        self.assertEqual(mine.total('bpfpush.probe.left.duration')['count'], 1)
        self.assertEqual(seen.total('bpfpush.probe.lost'), 50)

    def test_calls_that_do_not_return_are_lost_and_spoil_no_other(self):
        mine, seen = self.count(jump={'hook': 'uretprobe:' + JUMP, 'measure': 'latency', 'by': 'unit'})
        done = seen.expected
        found = mine.total('bpfpush.probe.jump.duration')
        self.assertEqual(found['count'], done['jumps'])
        self.assertGreaterEqual(found['sum'], done['jumps'] * 0.02)
        self.assertEqual(seen.total('bpfpush.probe.lost', **{'bpfpush.probe.name': 'jump'}), done['lost'])


def device_name(number):
    """What the kernel calls this block device; if it has none, its number."""
    path = '/sys/dev/block/' + number
    return os.path.basename(os.path.realpath(path))


def lacks_kprobes():
    with open('/proc/kallsyms', encoding='ascii', errors='replace') as file:
        return not any(line.split()[2] == 'register_kprobe' for line in file)


@unittest.skipIf(lacks_kprobes(), 'this kernel has no kprobes')
class KernelTest(Probes):
    def test_calls_by_an_argument(self):
        mine, _ = self.count(writes={'hook': 'kprobe:write_null', 'by': 'unit, arg2'},
                             size={'hook': 'kprobe:write_null', 'measure': 'sum arg2', 'by': 'unit'})
        self.assertEqual(mine.by('writes.arg2', 'bpfpush.probe.writes'),
                         {size: len(range(size, N, 7)) for size in range(7)})
        self.assertEqual(mine.total('bpfpush.probe.size'), sum(i % 7 for i in range(N)))

    def test_results_and_errors(self):
        mine, _ = self.count(errors={'hook': 'kretprobe:write_full', 'by': 'unit, errno'},
                             sizes={'hook': 'kretprobe:write_null', 'measure': 'histogram ret', 'by': 'unit, arg2:u32, errno'})
        self.assertEqual(mine.by('error.type', 'bpfpush.probe.errors'), {'ENOSPC': N})
        found = mine.total('bpfpush.probe.sizes')
        self.assertEqual((found['count'], found['sum']), (N, sum(i % 7 for i in range(N))))
        self.assertEqual(mine.by('sizes.arg2', 'bpfpush.probe.sizes').keys(), set(range(7)))

    def test_the_text_that_a_function_returns(self):
        code = 'import os\nfor i in range(30): os.readlink("/proc/self/root")\nfor i in range(20): os.readlink("/proc/self/exe")'
        with Cgroup('probes') as cgroup:
            seen = once(['paths'], cgroup.command([sys.executable, '-c', code]),
                        params={'probe paths': {'hook': 'kretprobe:d_path', 'by': 'unit, ret:text'}})
        paths = seen.of(cgroup).by('paths.ret', 'bpfpush.probe.paths')
        self.assertGreaterEqual(paths['/'], 30)
        self.assertGreaterEqual(paths[os.path.realpath(sys.executable)], 20)

    def test_a_call_goes_on_after_exec(self):
        call = {'x86_64': '__x64_sys_execve', 'aarch64': '__arm64_sys_execve'}[platform.machine()]
        mine, seen = self.count(n=50, arguments=['exec'], execs={'hook': 'kprobe:' + call, 'measure': 'latency', 'by': 'unit'})
        self.assertEqual((mine.total('bpfpush.probe.execs.duration')['count'], seen.total('bpfpush.probe.lost')), (50, 0))

    def test_latency(self):
        self.check_latency('kprobe:hrtimer_nanosleep')

    def test_latency_where_only_a_plain_kprobe_can_attach(self):
        self.check_latency('kretprobe:hrtimer_nanosleep+0')

    def test_a_function_that_nobody_can_probe(self):
        done = subprocess.run([harness.agent(), 'once', '--config=/dev/null', '--probe=kprobe:exc_int3', '--whole-machine', '--', 'true'],
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn('nobody can probe this function: it is notrace, or in /sys/kernel/debug/kprobes/blacklist', done.stderr)

    def test_a_name_that_several_functions_have(self):
        """All calls are counted, as the kernel's function tracer has them, or the name is refused."""
        reads = ['sh', '-c', 'for i in 1 2 3 4 5; do cat /proc/cpuinfo /proc/consoles /proc/crypto >/dev/null; done']
        line = [harness.agent(), 'once', '--config=/dev/null', '--format=json', '--probe=count kprobe:c_start', '--', *reads]
        with open('/proc/kallsyms', encoding='ascii', errors='replace') as file:
            n = sum(line.split()[1] in 'tTwW' and line.split()[2] == 'c_start' for line in file)
        if n < 2:
            self.skipTest('needs a kernel with several functions c_start')
        with tracefs() as place:
            instance = os.path.join(place, 'instances', 'bpfpush-test-%d' % os.getpid())
            os.mkdir(instance)
            try:
                write(instance + '/set_ftrace_filter', 'c_start')
                write(instance + '/current_tracer', 'function')
                done = subprocess.run(line, capture_output=True, text=True, check=False)
                with open(instance + '/trace', encoding='utf-8', errors='replace') as file:
                    n_calls = sum(text.lstrip().startswith('cat-') and ': c_start <-' in text for text in file)
            finally:
                os.rmdir(instance)
        if done.returncode:  # and nothing was run
            self.assertRegex(done.stderr, 'has (several functions of this name|%d functions c_start), and not all can be counted' % n)
            return
        self.assertGreaterEqual(n_calls, 3 * 5)
        points = [json.loads(text) for text in done.stdout.splitlines()]
        self.assertEqual(sum(point['total'] for point in points if point['name'] == 'bpfpush.probe.c_start'), n_calls, done.stderr)

    def check_latency(self, hook):
        mine, seen = self.count(naps={'hook': hook, 'measure': 'latency', 'by': 'unit, errno'})
        found, done = mine.total('bpfpush.probe.naps.duration'), seen.expected
        self.assertEqual(found['count'], done['naps'])
        self.assertLessEqual(done['nap_least_ns'], found['sum'] * 1e9 + 1)
        self.assertLessEqual(found['sum'] * 1e9, done['nap_most_ns'] + 1)
        self.assertEqual(seen.total('bpfpush.probe.lost'), 0)


class EventTest(Probes):
    def test_a_mark_of_a_program(self):
        mine, _ = self.count(mark={'hook': f'usdt:{PATH}:workload:probed', 'measure': 'sum arg0', 'by': 'unit'})
        self.assertEqual(mine.total('bpfpush.probe.mark'), sum(range(N)))

    @unittest.skipUnless(platform.machine() == 'x86_64', 'needs operands of x86-64')
    def test_each_place_of_a_mark_has_operands_of_its_own(self):
        hook = f'usdt:{PATH}:workload:forms'
        mine, seen = self.count(forms={'hook': hook, 'by': 'unit, arg0, arg1'}, all={'hook': hook, 'by': 'unit'})
        forms = {(point['attributes']['forms.arg0'], point['attributes']['forms.arg1']): point['total']
                 for point in mine.select('bpfpush.probe.forms')}
        self.assertEqual(forms, {(-50, 0): N / 4, (-39, 1): N / 4, (-28, 2): N / 4, (-17, 3): N / 4, (-39, 7): N})
        self.assertEqual((mine.total('bpfpush.probe.all'), seen.expected['guarded']), (2 * N, 0))

    @unittest.skipUnless(platform.machine() == 'x86_64', 'needs operands of x86-64')
    def test_a_mark_that_a_semaphore_guards(self):
        mine, seen = self.count(guarded={'hook': f'usdt:{PATH}:workload:guarded', 'measure': 'sum arg0', 'by': 'unit'})
        self.assertEqual((mine.total('bpfpush.probe.guarded'), seen.expected['guarded']), (sum(range(N)), N))

    def test_a_tracepoint_by_its_fields(self):
        mine, _ = self.count(seeks={'hook': 'tracepoint:syscalls:sys_enter_lseek', 'by': 'unit, fd, offset, __syscall_nr'})
        self.assertEqual(mine.by('seeks.syscall_nr').keys(), {SYS_LSEEK})
        seeks = mine.select(**{'seeks.fd': 2 ** 32 - 1})
        self.assertEqual(seeks.by('seeks.offset', 'bpfpush.probe.seeks'), {offset: N // 5 for offset in range(5)})

    def test_fields_are_shown_as_their_types_say(self):
        """Connections to a port that nobody has, with an address that nobody else uses."""
        code = ('import socket\nfor i in range(20):\n for kind, to in ((socket.AF_INET, ""), (socket.AF_INET6, "::ffff:")):\n'
                '  socket.socket(kind).connect_ex((to + "127.77.1.2", 1))')
        event = 'tracepoint:sock:inet_sock_set_state'
        seen = once(['links', 'wide'], [sys.executable, '-c', code], preexec_fn=mount_tracefs, params={
            'probe links': {'hook': event, 'by': 'daddr:ipv4, newstate:enum, dport'},
            'probe wide': {'hook': event, 'by': 'daddr_v6:ipv6, oldstate:enum, protocol:enum=IPPROTO_TCP'}})
        links = seen.select('bpfpush.probe.links', **{'links.daddr': '127.77.1.2'})
        self.assertEqual(links.by('links.newstate'), {'TCP_SYN_SENT': 40, 'TCP_CLOSE': 40})
        self.assertEqual(links.by('links.dport'), {1: 80})
        wide = seen.select('bpfpush.probe.wide', **{'wide.daddr_v6': '127.77.1.2'})
        self.assertEqual(wide.by('wide.oldstate'), {'TCP_CLOSE': 40, 'TCP_SYN_SENT': 40})
        self.assertEqual(wide.by('wide.protocol'), {'IPPROTO_TCP': 80})

    def test_results_of_system_calls_are_shown_as_their_types_say(self):
        mine, _ = self.count(exits={'hook': 'tracepoint:raw_syscalls:sys_exit', 'by': 'unit, id:syscall, ret:errno'})
        for call, error in (('lseek', 'EBADF'), ('rename', 'ENOENT'), ('write', 'ENOSPC')):
            self.assertEqual(mine.total('bpfpush.probe.exits', **{'exits.id': call, 'exits.ret': error}), N, call)
        self.assertEqual(mine.by('exits.ret', **{'exits.id': 'lseek'}), {'EBADF': N})
        self.assertGreaterEqual(mine.total('bpfpush.probe.exits', **{'exits.id': 'write', 'exits.ret': None}), N)

    def test_functions_of_the_kernel_have_names(self):
        mine, seen = self.count(timers={'hook': 'tracepoint:timer:hrtimer_start', 'by': 'unit, comm, function:ksym'})
        self.assertEqual(mine.total('bpfpush.probe.timers', **{'timers.function': 'hrtimer_wakeup', 'thread.name': 'probed'}),
                         seen.expected['naps'])

    def test_the_name_that_a_task_gets(self):
        _, seen = self.count(names={'hook': 'tracepoint:task:task_rename', 'by': 'newcomm'},
                             raw={'hook': 'tracepoint:task:task_rename', 'by': 'comm'})
        self.assertEqual(seen.total('bpfpush.probe.names', **{'names.newcomm': 'probed'}), 1)
        self.assertGreaterEqual(seen.total('bpfpush.probe.raw'), 1)

    def test_fields_that_are_called_as_words_are(self):
        mine, _ = self.count(exits={'hook': 'tracepoint:raw_syscalls:sys_exit', 'by': 'unit, id, ret'},
                             ends={'hook': 'tracepoint:sched:sched_process_exit', 'by': 'unit, comm, args.comm, pid'})
        self.assertEqual(mine.by('exits.ret', 'bpfpush.probe.exits', **{'exits.id': SYS_LSEEK}), {-9: N})
        self.assertEqual(mine.total('bpfpush.probe.ends', **{'ends.comm': 'probed', 'thread.name': 'probed'}), 1)

    def test_an_event_of_the_kernel(self):
        seen = once(['switches', 'faults'], [workload('noted'), str(N)], params={
            'probe switches': {'hook': 'perf:context-switches', 'by': 'comm'},
            'probe faults': {'hook': 'perf:page-faults', 'by': 'comm, cpu'}})
        for name in ('switches', 'faults'):
            most = seen.expected.get(name + '_around', seen.expected[name])
            self.assertIn(seen.total('bpfpush.probe.' + name, **{'thread.name': 'noted'}), range(seen.expected[name], most + 1), name)


class CommandTest(Probes):
    def test_a_probe_of_the_command_line(self):
        mine, seen = self.count(f'--probe=uprobe:{CALL} by unit', f'--probe=histogram ret uretprobe:{CALL} by unit, errno')
        self.assertEqual(mine.total('bpfpush.probe.probed_call'), N)
        self.assertEqual(mine.total('bpfpush.probe.probed_call_2')['count'], N - ERRORS)
        self.assertEqual({point['collector'] for point in seen}, {'probed_call', 'probed_call_2'})

    def test_a_measured_value_of_the_command_line_can_have_a_type(self):
        mine, _ = self.count(f'--probe=sum ret:s32 uretprobe:{ERROR} by unit')
        self.assertEqual(mine.total('bpfpush.probe.probed_error'), sum(NUMBERS))

    def test_attributes_can_be_left_out(self):
        mine, _ = self.count(calls={'hook': 'uprobe:' + CALL, 'by': 'unit, comm, arg1:text', 'drop_attributes': 'thread.name calls.arg1'})
        [point] = mine
        self.assertEqual((point['attributes'].keys(), point['total']), ({harness.OWNER}, N))

    def test_a_hook_that_this_kernel_lacks_is_a_mistake(self):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as config:
            config.write('[agent]\ncollectors = cgroup\n[probe a]\nhook = kprobe:vfs_raed\n'
                         '[probe b]\nhook = tracepoint:sched:sched_swich\n[probe c]\nhook = rawtp:sched_swich\n')
            config.flush()
            done = subprocess.run([harness.agent(), 'check', '--config=' + config.name], stderr=subprocess.PIPE, text=True, check=False)
        lines = [line.removeprefix(config.name) for line in done.stderr.splitlines()]
        self.assertEqual((done.returncode, [line[:3] for line in lines]), (78, [':4:', ':6:', ':8:']))
        self.assertIn('no kprobes' if lacks_kprobes() else 'function vfs_raed: did you mean vfs_read?', lines[0])
        self.assertIn('tracepoint sched_swich: did you mean sched_switch?', lines[1])

    def run_with(self, command, *words, text='', **options):
        """With a tracefs of its own. Returns the exit status and what is said, a line each."""
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as config:
            config.write(text)
            config.flush()
            done = subprocess.run([harness.agent(), command, '--config=' + config.name, *words], stderr=subprocess.PIPE,
                                  text=True, check=False, preexec_fn=mount_tracefs, **options)
            return done.returncode, [line.replace(config.name, 'NAME') for line in done.stderr.splitlines()]

    def test_the_category_of_a_system_call_is_named(self):
        for category in ('syscall', 'raw_syscalls'):
            status, lines = self.run_with('check', text='[probe a]\nhook = tracepoint:%s:sys_enter_getpid\n' % category)
            self.assertEqual(status, 78, lines)
            self.assertRegex(lines[0], r'^NAME:2: hook: this kernel has no tracepoint (?:%s:)?sys_enter_getpid: '
                             r'did you mean syscalls:sys_enter_getpid\?$' % category)

    def test_what_a_check_says_is_said_at_the_start(self):
        text = ('[agent]\ncollectors = cgroup\n[probe a]\nhook = tracepoint:shed:sched_switch\n'
                '[probe b]\nhook = tracepoint:syscalls:sys_enter_getpid2\n[probe c]\nhook = usdt:%s:no:mark\n'
                '[probe d]\nhook = uprobe:/etc/passwd:main\n' % PATH)
        expected = ['NAME:4: hook: this kernel has no tracepoint shed:sched_switch: did you mean sched:sched_switch?',
                    'NAME:6: hook: this kernel has no tracepoint syscalls:sys_enter_getpid2',
                    f'NAME:8: hook: {PATH} has no USDT no:mark',
                    'NAME:10: hook: /etc/passwd is neither a program nor a library (ELF)']
        self.assertEqual(self.run_with('check', text=text), (78, expected))
        self.assertEqual(self.run_with('once', '--for=1ms', text=text, stdout=subprocess.DEVNULL), (0, expected))
        strict = text.replace('[probe d]', '[probe d]\nstrict = yes')
        self.assertEqual(self.run_with('once', '--for=1ms', text=strict, stdout=subprocess.DEVNULL), (69, [
            *expected[:3], expected[3].replace(':10:', ':11:'),
            'not started: hooks are missing for probe d (strict = yes)']))

    def test_a_wrong_probe_of_the_command_line_ends_it(self):
        """Without a second of counting."""
        self.assertEqual(self.run_with('once', '--probe=rawtp:sched_switch', f'--probe=usdt:{PATH}:no:mark', '--whole-machine', '--', '/no/such/command'),
                         (69, [f'bpfpush --probe: hook: {PATH} has no USDT no:mark',
                               'not started: hooks are missing for probe mark']))

    def test_several_wrong_probes_end_it_with_one_sentence(self):
        self.assertEqual(self.run_with('once', f'--probe=usdt:{PATH}:no:mark', f'--probe=usdt:{PATH}:no:other', '--for=1ms'),
                         (69, [f'bpfpush --probe: hook: {PATH} has no USDT no:mark',
                               f'bpfpush --probe: hook: {PATH} has no USDT no:other',
                               'not started: hooks are missing for probe mark, probe other']))

    @unittest.skipIf(os.path.exists('/sys/kernel/tracing/events'), 'tracefs is mounted')
    def test_a_tracefs_that_is_not_mounted_is_what_is_said(self):
        done = subprocess.run([harness.agent(), 'once', '--config=/dev/null', '--probe=tracepoint:syscalls:sys_enter_openat by filename',
                               '--for=1ms'], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr.splitlines()), (69, [
            'bpfpush --probe: hook: tracefs is not mounted; run mount -t tracefs tracefs /sys/kernel/tracing',
            'not started: hooks are missing for probe sys_enter_openat']))

    def test_a_refusal_names_the_hook_and_no_program_of_ours(self):
        limited = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=+bpf,+perfmon', '--ambient-caps=+bpf,+perfmon']
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            os.mkdir(directory + '/bpf')
            for path in ('bpf/probe.bpf.o', 'bpf/cgroup.bpf.o', 'bpf/cgroup.conf', 'build.ninja'):
                shutil.copy(os.path.join(os.path.dirname(harness.agent()), path), os.path.join(directory, path))
            program, binary = (shutil.copy(path, directory) for path in (harness.agent(), PATH))
            done = subprocess.run([*limited, program, 'once', '--config=/dev/null', f'--probe=uprobe:{binary}:probed_call', '--for=1ms'],
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.stderr.splitlines()[-1], 'not started: hooks are missing for probe probed_call')
        self.assertRegex(done.stderr, f'^probe probed_call cannot run: the kernel refused uprobe/{binary}:probed_call: attach: .*'
                         '\\(CAP_SYS_ADMIN is missing; "sudo bpfpush allow perf-events" gives it to the service\\)\n')

    def test_arguments_that_a_mark_lacks_are_a_mistake(self):
        done = subprocess.run([harness.agent(), 'dump', '--config=/dev/null', f'--probe=sum arg1 usdt:{PATH}:workload:probed', 'shape'],
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (78, f'bpfpush --probe: measure: "arg1" is not known at '
                         f'usdt:{PATH}:workload:probed, which has 1 argument; count from arg0\n'))

    @unittest.skipUnless(platform.machine() == 'x86_64', 'needs operands of x86-64')
    def test_an_operand_of_an_unknown_form_spoils_only_itself(self):
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory:
            path = os.path.join(directory, 'conf')
            with open(path, 'w', encoding='ascii') as file:
                file.write(f'[probe forms]\nhook = usdt:{PATH}:workload:forms\nby = arg1, arg2\n')
            said = (f'{path}:3: by: "arg2" of usdt:{PATH}:workload:forms cannot be read: in one of its places it is 8f@%xmm0; '
                    'name another one, or none\n')
            for words in (['check'], ['once', '--for=1ms'], ['run']):
                done = subprocess.run([harness.agent(), *words, '--config=' + path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      stdout=subprocess.DEVNULL, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (78, said), words)

    def test_types_that_a_field_cannot_have_are_mistakes(self):
        event = 'tracepoint:sock:inet_sock_set_state'
        cases = {
            'sport:ipv4': 'by: "sport:ipv4": the field has 2 bytes, too few or too many for this type; write sport or another type',
            'daddr_v6:dev': 'by: "daddr_v6:dev": the field has 16 bytes, too few or too many for this type; write another field',
            'daddr_v6': 'by: field "daddr_v6" of sock:inet_sock_set_state has 16 bytes, too many for a number; if it is an address, '
                        'write daddr_v6:ipv6',
            'saddr': 'by: field "saddr" of sock:inet_sock_set_state is an array of 4 bytes, not a number; "by" can show it, '
                     'as saddr:ipv4',
            'sport:u16': 'by: "sport:u16": a field of a tracepoint has a type already; write sport',
            'newstate:enun': 'unknown type "enun": did you mean "enum"?',
            'sport:enum': 'by: "sport:enum": the event has no names for the numbers of this field; write sport:enum=NAME with the '
                          'name of an enum of the kernel, or one of its constants',
            'sport:enum=skb_drop_reasn': 'this kernel has no enum "skb_drop_reasn", and none with a constant of this name: did you '
                                         'mean "skb_drop_reason"?'}
        for value, said in cases.items():
            with self.subTest(value):
                self.assertEqual(self.run_with('dump', f'--probe={event} by {value}', 'shape'), (78, ['bpfpush --probe: ' + said]))
        self.assertEqual(self.run_with('dump', '--probe=tracepoint:signal:signal_generate by errno', 'shape'),
                         (78, ['bpfpush --probe: by: "errno" is a word of probes; write args.errno for the field']))
        self.assertEqual(self.run_with('dump', '--probe=tracepoint:signal:signal_generate by args.errno', 'shape')[0], 0)

    def test_a_probe_that_counts_nothing_says_so(self):
        done = subprocess.run([harness.agent(), 'once', '--config=/dev/null', f'--probe=latency uprobe:{CALL} by unit', '--', 'true'],
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, f'bpfpush once: Latency of uprobe:{CALL}: there was nothing to count\n')

    def test_a_probe_is_listed_as_a_collector(self):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as config:
            config.write(f'[probe calls]\nhook = uprobe:{CALL}\nby = unit\ndescription = Calls\n[agent]\ncollectors = cgroup\n')
            config.flush()
            done = subprocess.run([harness.agent(), 'list', '--json', '--for=1ms', '--config=' + config.name],
                                  stdout=subprocess.PIPE, text=True, check=True)
        listed = {each['collector']: each for each in map(json.loads, done.stdout.splitlines())}
        self.assertEqual(listed.keys(), {'cgroup', 'calls'})
        self.assertEqual([(each['name'], each['state']) for each in listed['calls']['programs']], [('user_enter', 'attached')])
        self.assertEqual((listed['calls']['description'], listed['calls']['settings']), ('Calls', []))


if __name__ == '__main__':
    harness.main()
