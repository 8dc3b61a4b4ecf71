# SPDX-License-Identifier: Apache-2.0
"""Processes: starts, ends and lifetimes, equal to what wait() reported to the workload that started them."""
import sys
import unittest

import harness
from harness import ANY, Cgroup, once

STARTS, EXITS, LIFETIME = 'bpfpush.process.starts', 'bpfpush.process.exits', 'bpfpush.process.lifetime'
TYPE, CODE, SIGNAL = 'bpfpush.process.start.type', 'process.exit.code', 'bpfpush.process.exit.signal'

SLEEP_S = 0.005
# The first argument is SLEEP_S. Each other one is a kind of child and how many. It prints the forks, the programs executed, and ends by code and by
# signal, its own end included, and how long each child lived at most, from before the fork to after the wait.
WORKLOAD = '''
import collections, ctypes, json, os, signal, sys, threading, time
libc = ctypes.CDLL(None)

def threads(n):
    ready = threading.Barrier(n + 1)
    for i in range(n):
        threading.Thread(target=lambda: (ready.wait(), time.sleep(60)), daemon=True).start()
    ready.wait()

def leave_leader(end):
    threading.Thread(target=lambda: (time.sleep(float(sys.argv[1])), end())).start()
    libc.syscall(60 if os.uname().machine == 'x86_64' else 93, 7)  # exit: of this thread alone

def killed(number):
    signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
    os.kill(os.getpid(), number)

KINDS = {
    'code0': lambda: os._exit(0),
    'code3': lambda: os._exit(3),
    'code255': lambda: os._exit(255),
    'killed': lambda: killed(signal.SIGKILL),
    'core': lambda: killed(signal.SIGABRT),
    'exec': lambda: os.execv('/bin/sh', ['sh', '-c', 'exit 4']),
    'noexec': lambda: os.execv('/nonexistent', ['x']),
    'threads': lambda: (threads(8), os._exit(5)),
    'thread_killed': lambda: (threads(8), killed(signal.SIGKILL)),
    'leader_first': lambda: leave_leader(lambda: os._exit(6)),
    'leader_code': lambda: leave_leader(lambda: libc.syscall(60 if os.uname().machine == 'x86_64' else 93, 9)),
    'thread_exec': lambda: (threading.Thread(target=lambda: os.execv('/bin/sh', ['sh', '-c', 'exit 8'])).start(), time.sleep(60)),
}
codes, signals, lived = collections.Counter({'0': 1}), collections.Counter(), {}
for word in sys.argv[2:]:
    kind, n = word.split('=')
    for i in range(int(n)):
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        child = os.fork()
        if not child:
            try:
                KINDS[kind]()
            except OSError:
                os._exit(127)
        status = os.waitpid(child, 0)[1]
        lived[child] = time.clock_gettime(time.CLOCK_BOOTTIME) - before
        if os.WIFSIGNALED(status):
            signals[signal.Signals(os.WTERMSIG(status)).name] += 1
        else:
            codes[str(os.WEXITSTATUS(status))] += 1
print(json.dumps({'forks': len(lived), 'codes': codes, 'signals': signals, 'lived_s': lived}), flush=True)
'''


class ProcessTest(unittest.TestCase):
    def count(self, *kinds, **params):
        with Cgroup('process') as cgroup:
            seen = once(['process'],
                        cgroup.command([sys.executable, '-c', WORKLOAD, SLEEP_S, *kinds]),
                        {'agent': {'brief_processes': '1000'}, 'process': params})
            return seen.of(cgroup), seen.expected

    def check(self, mine, expected, execs):
        self.assertEqual(mine.by(TYPE, STARTS), {'fork': expected['forks'], 'exec': execs})
        ends = {kind: {str(value): n for value, n in mine.by(kind, EXITS, **{kind: ANY}).items()} for kind in (CODE, SIGNAL)}
        self.assertEqual(ends, {CODE: expected['codes'], SIGNAL: expected['signals']})
        self.assertEqual(mine.total(EXITS), expected['forks'] + 1)
        self.assertEqual(mine.total(LIFETIME)['count'], expected['forks'] + 1)

    def test_children_are_counted_by_how_they_ended(self):
        mine, expected = self.count('code0=20', 'code3=7', 'code255=1', 'killed=5', 'core=2', 'noexec=3')
        self.check(mine, expected, 1)

    def test_programs_that_are_executed_are_counted(self):
        mine, expected = self.count('exec=11', 'thread_exec=5')
        self.check(mine, expected, 1 + 16)

    def test_threads_are_not_processes(self):
        mine, expected = self.count('threads=40', 'thread_killed=40')
        self.check(mine, expected, 1)

    def test_a_process_whose_first_thread_ends_first_ends_once(self):
        mine, expected = self.count('leader_first=10', 'leader_code=10')
        self.check(mine, expected, 1)

    def test_lifetimes_are_from_fork_to_end(self):
        mine, expected = self.count('leader_first=20', per_process='yes')
        self.assertEqual(len(expected['lived_s']), 20)
        for pid, most_s in expected['lived_s'].items():
            lived = mine.total(LIFETIME, **{'process.pid': int(pid)})
            self.assertEqual(lived['count'], 1)
            self.assertGreater(lived['sum'], SLEEP_S)
            self.assertLess(lived['sum'], most_s)


if __name__ == '__main__':
    harness.main()
