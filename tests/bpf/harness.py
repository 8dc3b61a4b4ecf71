# SPDX-License-Identifier: Apache-2.0
"""Counted workloads against the running kernel.

A test runs a workload that knows what it did, counts it with `bpfpush once`, and compares exact figures:

    class SyscallsTest(unittest.TestCase):
        def test_calls_are_counted(self):
            with Cgroup('calls') as cgroup:
                seen = once(['syscalls'], [workload('syscall'), cgroup.procs, '1000'])
                mine = seen.of(cgroup)
                self.assertEqual(mine.total('bpfpush.syscalls', **{'error.type': 'ENOENT'}),
                                 seen.expected['enoent'])

    if __name__ == '__main__':
        harness.main()

Workloads are C programs, workload-NAME.c, listed in meson.build. They print what is to be expected as one
JSON object on a line of stdout. What starts a program reads files and makes system calls too, so a workload
that is counted to the last call enters its cgroup itself (workload.h), when all is prepared.

Set by meson: BPFPUSH, the agent; BPFPUSH_WORKLOADS, the directory of the workloads.
"""
import ctypes
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.append(os.path.join(HERE, '..'))
import leftovers
import rights
from patience import PATIENCE_S

OWNER = 'process.linux.cgroup'
SKIP_STATUS = 77
CLONE_NEWNET = 0x40000000  # sched.h
ANY = object()


def agent():
    return os.environ.get('BPFPUSH', 'build/bpfpush')


def workload(name):
    """The path of the program built from workload-NAME.c."""
    return os.path.join(os.environ.get('BPFPUSH_WORKLOADS', 'build/tests/bpf'), 'workload-' + name)


def cgroup_root():
    """Where cgroup2 is mounted: beside cgroup1 (hybrid), or alone. None: nowhere."""
    for place in ('/sys/fs/cgroup/unified', '/sys/fs/cgroup'):
        if os.path.exists(os.path.join(place, 'cgroup.controllers')):
            return place
    return None


def enter_own_network():
    """Also for preexec_fn: moves the calling process into a new network namespace, without packets of others."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), 'unshare')
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)


def state_of(pid):
    """As in /proc/PID/stat, such as "S"; "" if there is no such process, or a dead one that nobody has waited for."""
    try:
        with open('/proc/%d/stat' % pid, encoding='utf-8', errors='replace') as file:
            return file.read().rpartition(')')[2].split()[0].strip('ZX')
    except (FileNotFoundError, ProcessLookupError):
        return ''


class Cgroup:
    """A cgroup of the test's own, removed at the end; what still lives in it is killed."""

    def __init__(self, name):
        self.path = '/bpfpush-test-%s-%d' % (name, os.getpid())  # as in the attribute process.linux.cgroup
        self.directory = cgroup_root() + self.path

    def __enter__(self):
        os.mkdir(self.directory)
        return self

    def __exit__(self, *error):
        leftovers.remove(self.directory)

    def path_of(self, file):
        return os.path.join(self.directory, file)

    @property
    def procs(self):
        """The file that a process writes "0" to, to move in."""
        return self.path_of('cgroup.procs')

    def pids(self):
        with open(self.procs) as file:
            return [int(line) for line in file]

    def enter(self):
        """For preexec_fn: moves the calling process in."""
        with open(self.procs, 'w') as file:
            file.write('0')

    def run(self, command, **options):
        """subprocess.run() inside."""
        return subprocess.run(command, preexec_fn=self.enter, **options)

    def start(self, command, **options):
        """subprocess.Popen() inside."""
        return subprocess.Popen(command, preexec_fn=self.enter, **options)

    def command(self, command):
        """The command line that runs command inside, for once(): counted are its start and all it does."""
        return [workload('enter'), self.procs] + [str(word) for word in command]


class Points(list):
    """Points as `--format=json` prints them, in order."""

    expected = {}  # what the workload printed: all its objects in one
    status = 0     # its exit status
    stderr = ''    # its and the agent's

    def add(self, text):
        """What the agent and the workload printed."""
        for line in text.split('\n'):  # names may hold what splitlines() takes for an end
            if not line.startswith('{'):
                continue
            record = json.loads(line)
            if 'collector' in record:
                self.append(record)
            else:
                self.expected.update(record)

    def select(self, name=None, **attributes):
        """Those with this name and these attributes. None: must not be there; ANY: whatever it is."""
        chosen = Points(point for point in self if _matches(point, name, attributes))
        chosen.expected, chosen.status, chosen.stderr = self.expected, self.status, self.stderr
        return chosen

    def of(self, cgroup):
        """Those of one Cgroup."""
        return self.select(**{OWNER: cgroup.path})

    def total(self, name=None, **attributes):
        """The sum of the totals; of histograms a dict of count, sum and counts by upper bound."""
        found = self.select(name, **attributes)
        if any(point['kind'] == 'histogram' for point in found):
            return _histogram(point['total'] for point in found)
        return sum(point['value' if point['kind'] == 'gauge' else 'total'] for point in found)

    def length_s(self):
        """How long was counted: what is done one after the other does not take longer."""
        return max(point['time_ns'] - point['start_time_ns'] for point in self if 'start_time_ns' in point) * 1e-9

    def by(self, attribute, name=None, **attributes):
        """{attribute's value: sum of totals}; None for points without it."""
        values = {point['attributes'].get(attribute) for point in self.select(name, **attributes)}
        return {value: self.total(name, **dict(attributes, **{attribute: value})) for value in values}


def _matches(point, name, attributes):
    if name is not None and point['name'] != name:
        return False
    for key, value in attributes.items():
        if value is ANY:
            if key not in point['attributes']:
                return False
        elif point['attributes'].get(key) != value:
            return False
    return True


def _histogram(totals):
    whole = {'count': 0, 'sum': 0, 'buckets': {}}
    for total in totals:
        whole['count'] += total['count']
        whole['sum'] += total.get('sum', 0)
        for bound, count in zip(total['bounds'] + [float('inf')], total['counts']):
            whole['buckets'][bound] = whole['buckets'].get(bound, 0) + count
    return whole


def config_text(params):
    """{'agent': {'units': 9}, 'fileio': {'duration': 'yes'}, 'metric a.b': …} as sections of a configuration."""
    return ''.join('[%s]\n%s\n' % (name if name == 'agent' or ' ' in name else 'collector ' + name,
                                   ''.join('%s = %s\n' % item for item in keys.items()))
                   for name, keys in params.items())


def once(collectors, command=None, params=None, seconds=None, timeout=PATIENCE_S, is_alone=False, **options):
    """Counts while command runs (or for seconds) and returns Points. params: as in config_text(). is_alone: only what
    the command does itself, where it does not enter another cgroup."""
    with tempfile.NamedTemporaryFile('w', prefix='bpfpush-test-', suffix='.conf') as config:
        line = [agent(), 'once', '--format=json']
        if params:
            config.write(config_text(params))
            config.flush()
            line.append('--config=' + config.name)
        if seconds is not None:
            line.append('--for=%gs' % seconds)
        line += list(collectors)
        if command:
            line += ([] if is_alone else ['--whole-machine']) + ['--'] + [str(word) for word in command]
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=timeout, **options)
    seen = Points()
    seen.expected, seen.status, seen.stderr = {}, done.returncode, done.stderr
    seen.add(done.stdout)
    if done.returncode:
        raise AssertionError('%s: exit status %d\n%s' % (' '.join(line), done.returncode, done.stderr))
    return seen


@functools.cache
def refuses_map_iterators():
    with tempfile.NamedTemporaryFile('w', prefix='bpfpush-test-', suffix='.conf') as config:
        config.write('[agent]\nlog_level = debug\n')
        config.flush()
        done = subprocess.run([agent(), 'once', '--config=' + config.name, 'tcpstate', '--', 'true'], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return 'sockets_walk (iter/bpf_sk_storage_map): load: Operation not permitted' in done.stderr


def require_map_iterators(test):
    """Programs that visit the elements of a map: kernels of some virtual machines refuse even empty ones."""
    if refuses_map_iterators():
        test.skipTest('needs a kernel that allows iterators over maps')


def check_counted(test, counted, truth, seen, collector, each=1, others=0):
    """For programs that the kernel may skip and that have no alternative (docs/kernels.md): what was counted and what
    the kernel says that it skipped is the truth, or more, because it skips events that do not count, too. If it
    skipped nothing, the two are equal. each: for how much one event may stand; others: what others added to the count."""
    missed = seen.total('bpfpush.bpf.program.event.missed', **{'bpfpush.collector.name': collector})
    test.assertLessEqual(counted, truth + others)
    test.assertLessEqual(truth, counted + missed * each, 'missed events: %d' % missed)


def chance():
    """Random numbers; BPFPUSH_TEST_SEED makes them those of an earlier run."""
    seed = os.environ.get('BPFPUSH_TEST_SEED') or os.urandom(4).hex()
    print('BPFPUSH_TEST_SEED=%s' % seed, flush=True)
    return random.Random(seed)


def check_margin(test, what, got, allowed):
    """For statistics: got may be as much as allowed. Both are printed, so that a drift is seen."""
    print('%s: %g of the %g that are allowed' % (what, got, allowed))
    test.assertLessEqual(got, allowed, what)


def remembered(run):
    """For a method of a test that counts: what it returned when it was first called with these arguments. Several
    tests look at it, so none may change it."""
    results = {}

    @functools.wraps(run)
    def run_once(self, *arguments, **options):
        key = repr((arguments, options))
        if key not in results:
            results[key] = run(self, *arguments, **options)
        return results[key]
    return run_once


def missing():
    """What this machine lacks for tests of this suite, as text; None when it has all."""
    if not os.path.exists('/sys/kernel/btf/vmlinux'):
        return '/sys/kernel/btf/vmlinux: a kernel with CONFIG_DEBUG_INFO_BTF'
    if cgroup_root() is None:
        return 'a mounted cgroup2 (at /sys/fs/cgroup or /sys/fs/cgroup/unified)'
    return rights.bpf_refusal() or rights.cgroup_refusal(cgroup_root())


def main():
    lacks = missing()
    if lacks:
        print('skipped: needs %s' % lacks)
        sys.exit(SKIP_STATUS)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup's would be inherited by all that the tests start
    leftovers.remove_cgroups(cgroup_root())
    leftovers.remove_tracefs()
    done = unittest.main(verbosity=2, exit=False).result
    if not done.testsRun:
        sys.exit('no case was run')
    sys.exit(not done.wasSuccessful())
