# SPDX-License-Identifier: Apache-2.0
"""Hundreds of units, or thousands that come and go, against the running agent.

    with Cgroup('scale') as cgroup, Run(interval_s=2) as run, working('live', cgroup, 300) as truth:
        run.wait_collections(2)
    wrong = differences(truth.by_unit(), run.sums(COUNT, UNIT, 'bpfpush.syscall.name'))

What the workload (workload-units.c) counted itself is compared with what the agent exported: the sums of all deltas,
and the last total of each series.
"""
import collections
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

import harness
from harness import OWNER, PATIENCE_S, workload

UNIT = 'systemd.unit.name'
COUNT = 'bpfpush.syscalls'
CALL = 'bpfpush.syscall.name'
N_CALLS = 44
CHURN_CALLS = ('timer_getoverrun', 'ioprio_get')  # that churn and spawn make, and hardly anybody else
OTHERS = ('written', 'read', 'sent', 'pid')       # what the workload prints besides calls


class Truth:
    """What a workload in that cgroup says it did: calls[name][i], and written, read, sent and pid, by unit or process."""

    def __init__(self, cgroup, line):
        self.cgroup = os.path.basename(cgroup)
        figures = json.loads(line)
        self.others = {name: figures.pop(name) for name in OTHERS}
        self.calls = figures

    def unit(self, i):
        return '%s-%05d.service' % (self.cgroup, i)

    def by_unit(self):
        """{(unit, call): count}"""
        return {(self.unit(i), call): count for call, counts in self.calls.items() for i, count in enumerate(counts) if count}

    def other(self, figure):
        """{(unit,): figure}"""
        return {(self.unit(i),): count for i, count in enumerate(self.others[figure])}


@contextlib.contextmanager
def working(mode, cgroup, *arguments, after_batch=None):
    """Runs the workload until it prints and yields what it did; units that live end after that. after_batch() is called
    after each batch, if it is told to make batches."""
    command = [workload('units'), mode, cgroup.directory, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        while (line := process.stdout.readline()) == '\n':
            after_batch()
            print(file=process.stdin, flush=True)
        if not line:
            raise AssertionError('%s printed nothing' % ' '.join(command))
        yield Truth(cgroup.directory, line)
        process.stdin.close()
        if process.wait(PATIENCE_S):
            raise AssertionError('%s: exit status %d' % (' '.join(command), process.returncode))


class Series:
    """One series over the whole run."""

    def __init__(self, point):
        self.name, self.attributes, self.kind = point['name'], point['attributes'], point['kind']
        self.sum, self.last, self.last_sum = 0, None, None  # last_sum: of a histogram's values

    def add(self, point):
        if self.kind == 'gauge':
            self.last = point['value']
        elif self.kind == 'sum':
            self.sum += point['delta']
            self.last = point['total']
        else:
            self.sum += point['delta']['count']
            self.last, self.last_sum = point['total']['count'], point['total']['sum']


class Sums:
    """All series of a run, as a json exporter wrote them."""

    def __init__(self, lines=()):
        self.series, self.times, self.sizes = {}, [], []
        self.collection_s = []  # how long each took
        for line in lines:
            self.take(json.loads(line))

    def take(self, point):
        if not self.times or self.times[-1] != point['time_ns']:
            self.times.append(point['time_ns'])
            self.sizes.append(0)
        self.sizes[-1] += 1
        key = (point['name'], *sorted(point['attributes'].items()))
        if key not in self.series:
            self.series[key] = Series(point)
        self.series[key].add(point)
        if point['name'] == 'otel.sdk.metric_reader.collection.duration':
            self.collection_s.append(point['delta']['sum'])

    def select(self, name=None, **attributes):
        return [series for series in list(self.series.values()) if (name is None or series.name == name) and
                all(series.attributes.get(key) == value for key, value in attributes.items())]

    def sums(self, name, *keys, of='sum', **attributes):
        """{(value of each attribute in keys): sum}; with of='last', of the last totals."""
        found = collections.Counter()
        for series in self.select(name, **attributes):
            found[tuple(series.attributes.get(key) for key in keys)] += getattr(series, of)
        return found

    def missed(self, collector):
        """How many events the kernel did not give to the programs of a collector: each may be missing once."""
        return sum(series.last for series in self.select('bpfpush.bpf.program.event.missed', **{'bpfpush.collector.name': collector}))

    def missed_by_program(self):
        found = self.sums('bpfpush.bpf.program.event.missed', 'bpfpush.program.name', of='last')
        return {name: count for (name,), count in found.items() if count}

    def map_bytes(self):
        return sum(series.last for series in self.select('bpfpush.bpf.map.memory.usage'))

    def overflows(self):
        """{metric: count} of what lost its name."""
        found = collections.Counter()
        for series in self.select(**{'otel.metric.overflow': True}):
            if series.kind != 'gauge' and series.sum:
                found[series.name, series.attributes.get('bpfpush.overflow.reason')] += series.sum
        return dict(found)


class Run(Sums):
    """`bpfpush run` with default settings but the interval, and a json exporter that is read as it grows."""

    def __init__(self, interval_s=10, agent='', collectors='', more='', prefix=()):
        """prefix: words of a command that starts the agent, with fewer rights"""
        self.directory = tempfile.TemporaryDirectory(prefix='bpfpush-test-')
        super().__init__()
        self.interval_s = interval_s
        self.output, self.log = (os.path.join(self.directory.name, name) for name in ('points', 'log'))
        config = os.path.join(self.directory.name, 'agent.conf')
        with open(config, 'w') as file:
            file.write('[agent]\ninterval = %ds\ncollectors = %s\n%s\n%s\n[exporter points]\ntype = json\npath = %s\n'
                       % (interval_s, collectors, agent, more, self.output))
        open(self.output, 'w').close()
        for path, mode in ((self.directory.name, 0o755), (self.output, 0o666)):  # if the agent is another user
            os.chmod(path, mode)
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen([*prefix, harness.agent(), 'run', '--config=' + config], stderr=log)
        self.is_over = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        self.wait(lambda: self.times)
        return self

    def __exit__(self, *error):
        self.stop()
        self.directory.cleanup()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)
        self.is_over.set()
        self.reader.join()

    def read(self):
        """What is written, as it grows, until the agent has stopped and all is read."""
        rest = b''
        with open(self.output, 'rb') as file:
            while True:
                was_over, block = self.is_over.is_set(), file.read(1 << 20)
                *lines, rest = (rest + block).split(b'\n')
                for line in lines:
                    self.take(json.loads(line))
                if not block:
                    if was_over:
                        return
                    self.is_over.wait(0.1)

    def messages(self):
        with open(self.log) as file:
            return file.read()

    def wait(self, is_true, patience_s=PATIENCE_S):
        deadline = time.monotonic() + patience_s
        while not is_true():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError('no collection; the agent said:\n' + self.messages())
            time.sleep(0.05)

    def wait_collections(self, n):
        """Until n collections that began after now are read to their ends."""
        before_ns = time.time_ns()
        self.wait(lambda: sum(ns > before_ns for ns in list(self.times)[-n - 2:]) > n, PATIENCE_S + 3 * n * self.interval_s)

    def cpu_s(self):
        with open('/proc/%d/stat' % self.process.pid) as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def pss_bytes(self):
        with open('/proc/%d/smaps_rollup' % self.process.pid) as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith('Pss:'))


def lost(call, truth, run):
    """(named, unknown, made): the calls of units that have their names, of units of the whole machine that have none,
    and those that were made. Nothing is lost if the first two are at least the third."""
    counted = run.sums(COUNT, UNIT, **{CALL: call})
    named = sum(counted[truth.unit(i),] for i in range(len(truth.calls[call])))
    return named, run.sums(COUNT, OWNER, CALL)['unknown', call], sum(truth.calls[call])


def differences(expected, got):
    """Those of expected that got says otherwise, as [(key, expected, got)]."""
    return [(key, value, got.get(key, 0)) for key, value in sorted(expected.items()) if got.get(key, 0) != value]
