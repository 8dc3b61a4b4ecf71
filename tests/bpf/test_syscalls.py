# SPDX-License-Identifier: Apache-2.0
"""System calls: counted exactly, by name and error, whatever way they take through the kernel."""
import signal
import subprocess
import time
import unittest

import harness
from harness import ANY, PATIENCE_S, Cgroup, once, remembered, workload

COUNT = 'bpfpush.syscalls'
DURATION = 'bpfpush.syscall.duration'
NAME = 'bpfpush.syscall.name'
ERROR = 'error.type'
TIMED = {'duration': 'getsid, clock_nanosleep, readv, rt_sigreturn'}


class SyscallsTest(unittest.TestCase):
    @remembered
    def run_workload(self, params=None, agent=None):
        with Cgroup('syscalls') as cgroup:
            seen = once(['syscalls'], [workload('syscall'), cgroup.procs],
                        {'agent': agent or {}, 'syscalls': params or {}})
            return seen.of(cgroup), seen.expected

    def check_counts(self, mine, expected):
        """Keys of expected are NAME or NAME_ERRNO; both must be there, and nothing beside them."""
        for key in ('getsid', 'getsid_ESRCH', 'inotify_rm_watch_EBADF', 'unlinkat_ENOENT', 'mincore',
                    'mremap_EINVAL', 'getpgid_EPERM', 'rt_sigsuspend_EINTR', 'clock_nanosleep_EINTR',
                    'readv', 'rt_sigreturn', 'setitimer'):
            name, _, error = key.partition('_E')
            with self.subTest(key):
                self.assertEqual(mine.total(COUNT, **{NAME: name, ERROR: 'E' + error if error else None}),
                                 expected[key])

    def test_calls_are_counted_by_name_and_error(self):
        mine, expected = self.run_workload()
        self.check_counts(mine, expected)

    def test_calls_fail_only_with_the_errors_they_had(self):
        mine, _ = self.run_workload()
        errors = {(point['attributes'][NAME], point['attributes'][ERROR])
                  for point in mine.select(COUNT, **{ERROR: ANY}) if point['total']}
        # futex() is the C library's, when its threads happen to meet.
        self.assertEqual({pair for pair in errors if pair[1] != 'ENOSYS' and pair[0] != 'futex'}, {
            ('getsid', 'ESRCH'), ('inotify_rm_watch', 'EBADF'), ('unlinkat', 'ENOENT'), ('mremap', 'EINVAL'),
            ('getpgid', 'EPERM'), ('rt_sigsuspend', 'EINTR'), ('clock_nanosleep', 'EINTR')})

    def test_a_birth_is_one_call_and_not_two(self):
        mine, expected = self.run_workload()
        # raw clone() of the children, and one fork() each for the two tests that change a process
        self.assertEqual(mine.total(COUNT, **{NAME: 'clone', ERROR: None}), expected['clone'] + 2)

    def test_unknown_numbers_share_one_series(self):
        mine, expected = self.run_workload()
        self.assertEqual(mine.total(COUNT, **{NAME: 'unknown', ERROR: 'ENOSYS'}), expected['unknown_ENOSYS'])
        self.assertEqual(len(mine.select(COUNT, **{ERROR: 'ENOSYS'})), 1)

    def test_calls_of_32_bit_code_are_not_taken_for_others(self):
        mine, expected = self.run_workload()
        if not expected['compat']:
            self.skipTest('the kernel runs no 32-bit code')
        # 147 is getsid there and sched_get_priority_min here
        self.assertEqual(mine.select(COUNT, **{NAME: 'sched_get_priority_min'}), [])
        self.assertEqual(mine.total(COUNT, **{NAME: 'compat_getsid'}), expected['compat'])

    def test_only_chosen_calls_are_timed(self):
        mine, expected = self.run_workload(TIMED)
        self.check_counts(mine, expected)
        self.assertEqual({point['attributes'][NAME] for point in mine.select(DURATION)},
                         {'getsid', 'clock_nanosleep', 'readv', 'rt_sigreturn'})
        self.assertEqual(mine.total(DURATION, **{NAME: 'getsid'})['count'],
                         expected['getsid'] + expected['getsid_ESRCH'])
        self.assertEqual(mine.total(DURATION, **{NAME: 'rt_sigreturn'})['count'], expected['rt_sigreturn'])

    def test_interrupted_calls_have_lasted_until_the_signal(self):
        mine, expected = self.run_workload(TIMED)
        slept = mine.total(DURATION, **{NAME: 'clock_nanosleep'})
        # a timer of 3 ms ends each; at the first its start, and at any a busy machine, shift it
        self.assertEqual(slept['count'], expected['clock_nanosleep_EINTR'])
        self.assertGreater(slept['sum'], 0.001 * slept['count'])
        self.assertEqual(mine.total(DURATION, **{NAME: 'readv'})['count'], expected['readv'])

    def test_all_times_every_call(self):
        mine, _ = self.run_workload({'duration': 'all'})
        for name in ('getsid', 'getpgid', 'mincore', 'setitimer', 'readv', 'wait4'):
            with self.subTest(name):
                refused = mine.total(COUNT, **{NAME: name, ERROR: 'EPERM'})  # never began
                timed = mine.total(DURATION, **{NAME: name})
                self.assertEqual(timed and timed['count'], mine.total(COUNT, **{NAME: name}) - refused)

    def test_a_process_has_its_own_numbers_on_request(self):
        # most of them are gone when the agent reads
        mine, expected = self.run_workload({'per_process': 'yes'}, {'brief_processes': '1000'})
        by_process = mine.by('process.pid', COUNT, **{NAME: 'getsid', ERROR: None})
        self.assertEqual(sum(by_process.values()), expected['getsid'])
        self.assertEqual(len(by_process), 1 + expected['clone'])
        self.assertEqual(sorted(by_process.values())[-1],
                         expected['getsid'] - expected['clone'] * 3)
        names = {point['attributes']['process.executable.name'] for point in mine.select(COUNT)}
        self.assertEqual(names, {'workload-syscall'})

    def test_a_parallel_cgroup_does_not_mix_in(self):
        with Cgroup('other') as other:
            with Cgroup('syscalls') as cgroup:
                busy = other.start([workload('syscall'), other.procs], stdout=-3)
                seen = once(['syscalls'], [workload('syscall'), cgroup.procs])
                busy.wait()
                self.check_counts(seen.of(cgroup), seen.expected)


# A seccomp filter makes getsid(N) fail with errno N, for all from 133 to 499.
INVENTOR = """
import ctypes, os, struct
number = {'x86_64': 124, 'aarch64': 156}[os.uname().machine]
lines = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x44, 0, 0, 0x50000), (0x16, 0, 0, 0), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in lines))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack('HxxxxxxQ', len(lines), ctypes.addressof(code))) == 0
for errno in range(133, 500):
    assert libc.syscall(number, errno) == -1
"""


class InventedTest(unittest.TestCase):
    def test_errors_without_a_name_are_one(self):
        with Cgroup('invented') as cgroup:
            mine = once(['syscalls'], cgroup.command(['python3', '-c', INVENTOR])).of(cgroup)
        self.assertEqual(mine.by(ERROR, COUNT, **{NAME: 'getsid', ERROR: ANY}), {'EHWPOISON': 1, '134': 366})


# Makes calls until it is told to end, and then says when it made each.
CALLER = """
import os, signal, sys, time
times = []
def end(*unused):
    print(*times)
    sys.exit()
signal.signal(signal.SIGTERM, end)
print('ready', flush=True)
while True:
    os.getpgid(0)
    times.append(time.time_ns())
    time.sleep(0.0005)
"""


class StartTest(unittest.TestCase):
    def test_what_is_counted_while_others_are_attached_is_not_shown(self):
        with Cgroup('start') as cgroup:
            caller = cgroup.start(['python3', '-c', CALLER], stdout=subprocess.PIPE, text=True)
            caller.stdout.readline()
            launched_ns = time.time_ns()
            seen = once([], ['kill', '-%d' % signal.SIGTERM, caller.pid],
                        {'agent': {'include_units': cgroup.path}}).of(cgroup)
            times = [int(text) for text in caller.communicate(timeout=PATIENCE_S)[0].split()]
        calls = seen.select(COUNT, **{NAME: 'getpgid'})
        start_ns = min(point['start_time_ns'] for point in seen if 'start_time_ns' in point)
        # The baseline is read shortly before the clock: most of the time before that goes into loading and attaching.
        margin_ns = (start_ns - launched_ns) / 2
        self.assertGreaterEqual(calls.total(), sum(at >= start_ns for at in times) - 1)
        self.assertLessEqual(calls.total(), sum(at >= start_ns - margin_ns for at in times) + 1)


if __name__ == '__main__':
    harness.main()
