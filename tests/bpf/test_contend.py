# SPDX-License-Identifier: Apache-2.0
"""More programs that are busy than CPUs, and some that interrupt them: every default metric is exact all the same."""
import contextlib
import json
import os
import shutil
import subprocess
import unittest

import harness
from harness import OWNER, Cgroup, check_margin, enter_own_network, once, workload
from scale import Run

N_BRIEF = int(os.environ.get('BPFPUSH_CONTEND', 48))  # children; they set how long the work takes
CAPABILITIES = '+bpf,+perfmon'
USER = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--bounding-set=-all,' + CAPABILITIES,
        '--inh-caps=' + CAPABILITIES, '--ambient-caps=' + CAPABILITIES, '--no-new-privs']

CALL = 'bpfpush.syscall.name'
DURATION = 'bpfpush.tcp.connection.duration'
PROGRAM = 'bpfpush.program.name'
CPU = 'bpfpush.scheduler.cpu.time'
WAITS = 'bpfpush.scheduler.run_queue.duration'
FAILED = {'getpgid': 'ESRCH'}
CALLS = [('bpfpush.syscalls', {CALL: call, 'error.type': FAILED.get(call)}, call)
         for call in ('getpgid', 'getpriority', 'pwrite64', 'pread64', 'sendto', 'recvfrom', 'connect', 'accept4')]
FILES = [('bpfpush.file.operations', {'bpfpush.file.operation': 'read'}, 'file_reads'),
         ('bpfpush.file.operations', {'bpfpush.file.operation': 'write'}, 'file_writes'),
         ('bpfpush.file.operations', {'bpfpush.file.operation': 'open'}, 'file_opens'),
         ('bpfpush.file.io', {'disk.io.direction': 'read'}, 'file_read_bytes'),
         ('bpfpush.file.io', {'disk.io.direction': 'write'}, 'file_write_bytes'),
         ('process.disk.io', {'disk.io.direction': 'read'}, 'disk_read_bytes'),
         ('process.disk.io', {'disk.io.direction': 'write'}, 'disk_write_bytes')]
BYTES = [('process.network.io', {'network.transport': transport, 'network.io.direction': direction}, figure)
         for transport, direction, figure in (('udp', 'transmit', 'udp_sent_bytes'), ('udp', 'receive', 'udp_received_bytes'),
                                              ('tcp', 'transmit', 'tcp_sent_bytes'), ('tcp', 'receive', 'tcp_received_bytes'))]
NETWORK = [('bpfpush.udp.datagrams', {'network.io.direction': 'transmit'}, 'udp_sent'),
           ('bpfpush.udp.datagrams', {'network.io.direction': 'receive'}, 'udp_received'),
           ('bpfpush.tcp.connections', {'bpfpush.tcp.role': 'client', 'error.type': None}, 'tcp_connections'),
           ('bpfpush.tcp.connections', {'bpfpush.tcp.role': 'server', 'error.type': None}, 'tcp_connections'),
           (DURATION, {'bpfpush.tcp.role': 'client'}, 'tcp_connections'),
           (DURATION, {'bpfpush.tcp.role': 'server'}, 'tcp_connections'),
           ('bpfpush.tcp.retransmits', {}, 'retransmits')]
STATES = [('bpfpush.tcp.state.transitions', {'bpfpush.tcp.state.to': state}, figure)
          for state, figure in (('syn_sent', 'tcp_connections'), ('syn_received', 'tcp_connections'), ('established', 'tcp_ends'),
                                ('listen', 'tcp_listeners'), ('closed', 'tcp_closed'))]
KEPT = [('process.paging.faults', {'system.paging.fault.type': 'minor'}, 'minor'),
        ('process.paging.faults', {'system.paging.fault.type': 'major'}, 'major'),
        ('process.context_switches', {'process.context_switch.type': 'voluntary'}, 'voluntary'),
        ('process.context_switches', {'process.context_switch.type': 'involuntary'}, 'involuntary'),
        ('bpfpush.scheduler.migrations', {}, 'migrations'),
        (CPU, {}, 'cpu_ns'),
        (WAITS, {}, 'run_delay_ns')]
ALL = CALLS + FILES + BYTES + NETWORK + STATES + KEPT


def truth_of(figures):
    """With what follows from them: each connection has two ends, and a listener is closed too."""
    figures['tcp_ends'] = 2 * figures['tcp_connections']
    figures['tcp_closed'] = figures['tcp_ends'] + figures['tcp_listeners']
    return figures


def in_ns(name, value):
    return round(value * 1e9) if name in (CPU, WAITS) else value


def counted(run, cgroup, name, attributes):
    """(last total, sum of deltas); of waits, their sum has no deltas here."""
    found = run.select(name, **{OWNER: cgroup.path}, **attributes)
    last = sum(series.last_sum if name == WAITS else series.last for series in found)
    deltas = last if name == WAITS else sum(series.sum for series in found)
    return in_ns(name, last), in_ns(name, deltas)


def work(cgroup):
    done = subprocess.run([workload('contend'), cgroup.directory, str(N_BRIEF)], stdout=subprocess.PIPE, check=True)
    return truth_of(json.loads(done.stdout))


@contextlib.contextmanager
def changing(cgroup):
    """Runs processes that make map calls; yields what they made, once they have ended."""
    made = {}
    with subprocess.Popen([workload('maps'), cgroup.procs], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout.readline() != '\n':
            raise AssertionError('workload-maps has not begun')
        yield made
        process.stdin.close()
        made.update(json.loads(process.stdout.read()))


def memory_bytes():
    return os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')


def is_preempting(run):
    """Does the kernel preempt programs? Then there are second ones, which make up for the first."""
    return any(series.attributes[PROGRAM].endswith('_again') for series in run.select('bpfpush.bpf.program.attached'))


def setUpModule():
    """Nobody else is to use TCP next to the workload. What is started from here on is in this network namespace."""
    enter_own_network()


class ContendTest(unittest.TestCase):
    maxDiff = None

    def check(self, prefix=(), collectors='', rows=ALL):
        with Cgroup('contend') as cgroup:
            with Run(interval_s=1, agent='include_units = ' + cgroup.path, collectors=collectors, prefix=prefix) as run:
                truth = work(cgroup)
                pss = run.pss_bytes()
                run.stop()
                said = run.messages()
        self.assertGreater(truth['involuntary'], 20)  # or it was no contention
        self.assertLess(pss, memory_bytes() / 16)
        wrong = []
        for name, attributes, figure in rows:
            last, deltas = counted(run, cgroup, name, attributes)
            if name == DURATION and is_preempting(run):
                # The time of a beginning that the kernel hid is not known.
                self.assertTrue(truth[figure] * 0.9 <= last == deltas <= truth[figure], (last, deltas, truth[figure]))
            elif not last == deltas == truth[figure]:
                wrong.append('%s %s: truth %d, counted %d, deltas %d (%+.3f %%)' % (
                    name, ' '.join(map(str, attributes.values())), truth[figure], last, deltas, 100 * last / max(truth[figure], 1) - 100))
        waits = sum(series.last for series in run.select(WAITS, **{OWNER: cgroup.path}))
        self.assertLessEqual(waits, truth['arrivals'])  # see test_scheduler.py
        self.assertEqual(wrong, [], 'missed: %s\n%s' % (run.missed_by_program(), said))

    def test_all_is_exact_as_root(self):
        self.check()

    @unittest.skipUnless(shutil.which('setpriv'), 'needs setpriv')
    def test_all_is_exact_with_two_capabilities(self):
        self.check(USER)

    def test_sums_are_exact_without_the_hook_of_switches(self):
        self.check(collectors='memory, fileio', rows=[row for row in ALL if row[0] in ('process.paging.faults', 'process.disk.io')])

    def test_what_map_calls_of_others_hide_is_known(self):
        """While a process changes a map, programs at some hooks are skipped. What is counted and what is missed is all."""
        with Cgroup('contend') as cgroup, Cgroup('maps') as maps, changing(maps) as changed:
            seen = once([], [workload('contend'), cgroup.directory, N_BRIEF // 3])
        mine, truth = seen.of(cgroup), truth_of(seen.expected)
        made = sum(truth[figure] for _, _, figure in CALLS)
        self.check_whole(seen, 'sys_exit', sum(mine.total(*row[:1], **row[1]) for row in CALLS), made, all_made=made + changed['calls'])
        for (name, attributes, figure), program in zip(NETWORK, ('udp_send', 'udp_receive')):
            self.check_whole(seen, program, mine.total(name, **attributes), truth[figure], all_made=truth[figure])
        calls, ratios = seen.total('bpfpush.syscalls'), seen.select('bpfpush.bpf.program.event.missed_ratio')
        for point in ratios.select(**{'bpfpush.collector.name': 'syscalls'}):
            missed = seen.total('bpfpush.bpf.program.event.missed', **{PROGRAM: point['attributes'][PROGRAM]})
            self.assertAlmostEqual(point['value'], missed / (missed + calls), delta=0.001)

    def check_whole(self, seen, program, counted, made, all_made):
        """all_made: with the events of others, which may be missed too. Those of still others are a few dozen."""
        missed = {point['attributes'][PROGRAM]: point['total'] for point in seen.select('bpfpush.bpf.program.event.missed')
                  if point['attributes'][PROGRAM].startswith(program)}
        self.assertLessEqual(counted, made)
        check_margin(self, 'counted and missed against made, with %s' % missed, abs(counted + sum(missed.values()) - made), all_made * 0.01 + 50)


if __name__ == '__main__':
    harness.main()
