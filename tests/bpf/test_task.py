# SPDX-License-Identifier: Apache-2.0
"""The collectors that share the object "task": each alone runs only its own programs, all together are exact."""
import json
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import ANY, Cgroup, once, workload

PROGRAMS = {
    'syscalls': {'sys_exit', 'signal_deliver'},
    'fileio': {'sys_exit', 'task_walk', 'sched_process_exit'},
    'scheduler': {'task_walk', 'task_newtask', 'sched_process_exit', 'sched_switch'},
    'memory': {'task_walk', 'sched_process_exit', 'mark_victim', 'direct_reclaim_begin', 'direct_reclaim_end',
               'memcg_reclaim_begin', 'memcg_reclaim_end'},
}
CALLS = 'bpfpush.syscalls'
CALL_TIME = 'bpfpush.syscall.duration'
OPERATIONS = 'bpfpush.file.operations'
OPERATION_TIME = 'bpfpush.file.operation.duration'
ALONE = {'cgroup': {'enabled': 'no'}}


class TaskTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='bpfpush-test-', dir='/var/tmp')
        self.addCleanup(shutil.rmtree, self.directory)
        shutil.os.chmod(self.directory, 0o755)

    def run_workloads(self, params=None, collectors=tuple(PROGRAMS)):
        """The workload of each in a cgroup of its own -> {collector: its points there}, and all points."""
        with Cgroup('calls') as calls, Cgroup('files') as files, Cgroup('tasks') as tasks, Cgroup('pages') as pages:
            seen = once(collectors, ['/bin/sh', '-c', '"$1" "$2"; "$3" "$4" "$5"; "$6" "$7" contend 3; "$8" "$9" short 50', 'sh',
                                     workload('syscall'), calls.procs, workload('file'), files.procs, self.directory,
                                     workload('sched'), tasks.directory, workload('memory'), pages.directory], params)
            of = {'syscalls': calls, 'fileio': files, 'scheduler': tasks, 'memory': pages}
            return {name: seen.of(cgroup) for name, cgroup in of.items()}, seen

    def check(self, mine, seen):
        expected = seen.expected
        for name in ('getsid', 'clone', 'rt_sigreturn', 'setitimer'):
            self.assertEqual(mine['syscalls'].total(CALLS, **{'bpfpush.syscall.name': name, 'error.type': None}),
                             expected[name] + 2 * (name == 'clone'))
        for operation in ('read', 'write', 'open', 'fsync'):
            self.assertEqual(mine['fileio'].total(OPERATIONS, **{'bpfpush.file.operation': operation, 'error.type': None}),
                             expected[operation])
        for direction in ('read', 'write'):
            self.assertEqual(mine['fileio'].total('process.disk.io', **{'disk.io.direction': direction}),
                             expected['disk_%s_bytes' % direction])
        for type_ in ('voluntary', 'involuntary'):
            self.assertEqual(mine['scheduler'].total('process.context_switches', **{'process.context_switch.type': type_}),
                             expected[type_])
        self.assertAlmostEqual(mine['scheduler'].total('bpfpush.scheduler.cpu.time'), expected['cpu_ns'] * 1e-9, delta=1e-9)
        for type_ in ('minor', 'major'):
            self.assertEqual(mine['memory'].total('process.paging.faults', **{'system.paging.fault.type': type_}),
                             expected[type_])

    def programs(self, name):
        listed = subprocess.run([harness.agent(), 'list', '--json', '--for=1ms', '--config=/dev/null', name],
                                stdout=subprocess.PIPE, check=True)
        return json.loads(listed.stdout)['programs']

    def test_each_alone_loads_only_its_own_programs(self):
        is_preempted = any('choice' in entry for entry in self.programs('syscalls'))
        for name, programs in PROGRAMS.items():
            if is_preempted and 'sched_process_exit' in programs:
                programs = programs | {'sched_switch'}  # where an exit that was skipped is seen after all
            with self.subTest(name):
                entries = self.programs(name)
                attached = [entry['name'] for entry in entries if entry['state'] == 'attached']
                self.assertEqual({program.split('__')[0] for program in attached}, programs)
                seen = once([name], ['/bin/sh', '-c', "ls -l /proc/$PPID/fd | grep -c bpf-prog | sed 's/.*/{\"loaded\": &}/'"],
                            ALONE)
                self.assertEqual(seen.expected['loaded'], len(attached))
                self.assertEqual({point['collector'] for point in seen} - {'self'}, {name})  # self: what was missed

    def test_all_together_are_exact(self):
        mine, seen = self.run_workloads()
        self.check(mine, seen)
        self.assertEqual(seen.select(**{'process.pid': ANY}), [])

    def test_only_those_that_are_asked_have_processes(self):
        for name in PROGRAMS:
            with self.subTest(name):
                mine, seen = self.run_workloads({name: {'per_process': 'yes'}, 'agent': {'brief_processes': '1000'}})
                self.check(mine, seen)
                self.assertEqual({point['collector'] for point in seen.select(**{'process.pid': ANY})}, {name})
                own = [point for point in mine[name] if point['collector'] == name]
                self.assertEqual({'process.pid' in point['attributes'] for point in own}, {True})

    def test_two_that_measure_the_same_call_do_not_disturb_each_other(self):
        mine, seen = self.run_workloads({'syscalls': {'duration': 'pread64, openat'}, 'fileio': {'duration': 'yes'}})
        self.check(mine, seen)
        files = mine['fileio']
        for name in ('pread64', 'openat'):
            self.assertEqual(files.total(CALL_TIME, **{'bpfpush.syscall.name': name})['count'],
                             files.total(CALLS, **{'bpfpush.syscall.name': name}))
        for operation in ('read', 'write', 'open', 'fsync'):
            self.assertEqual(files.total(OPERATION_TIME, **{'bpfpush.file.operation': operation})['count'],
                             files.total(OPERATIONS, **{'bpfpush.file.operation': operation}))


if __name__ == '__main__':
    harness.main()
