#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hundreds of units for minutes, with default settings, as a table of figures: soak.py [PART]...

The parts are live-N (N units at once, for some minutes), churn (20 000 units in 250 s) and spawn (2 000 processes a
minute for 5 minutes, with per_process). Without any: live-50, live-500, live-1000, churn and spawn. Exits with 1 if a
figure is not as it must be.
"""
import contextlib
import sys
import time

from harness import Cgroup, OWNER
from scale import CALL, CHURN_CALLS, COUNT, UNIT, Run, differences, lost, working

MAX_UNITS = 500       # that the defaults have room for
LIVE_COLLECTIONS = 6
CHURN_UNITS, CHURN_PER_SECOND = 20000, 80
SPAWNED, SPAWNED_PER_SECOND = 10000, 33
COOLING_S = 120       # in which what has ended may be given back
failed = []


def report(part, figures):
    """figures: (name, value as text, whether it is as it must be; None: is only told)"""
    for name, text, is_right in figures:
        print('%-12s %-34s %-30s %s' % (part, name, text, {None: '', True: 'ok', False: 'WRONG'}[is_right]), flush=True)
        if is_right is False:
            failed.append('%s: %s: %s' % (part, name, text))


def mib(size):
    return '%.1f MiB' % (size / 2**20)


class Cost:
    """What the agent takes while a block runs."""

    def __init__(self, run):
        self.run = run

    def __enter__(self):
        self.start_s, self.cpu_s = time.monotonic(), self.run.cpu_s()
        self.n, self.pss = len(self.run.collection_s), self.run.pss_bytes()
        return self

    def __exit__(self, *error):
        self.cpu_s, self.time_s = self.run.cpu_s() - self.cpu_s, time.monotonic() - self.start_s
        self.peak = self.run.pss_bytes()
        self.collections = self.run.collection_s[self.n:]

    def figures(self, limited=False):
        share, longest = self.cpu_s / self.time_s, max(self.collections, default=0)
        yield 'CPU of the agent', '%.2f %% (%.1f s in %.0f s)' % (share * 100, self.cpu_s, self.time_s), share <= 0.03 if limited else None
        yield 'longest of %d collections' % len(self.collections), '%.1f ms' % (longest * 1e3), longest <= 0.05 if limited else None
        sizes = self.run.sizes
        yield 'points in the first push, most, last', '%d, %d, %d' % (sizes[0], max(sizes), sizes[-1]), None
        yield 'kernel memory of maps', mib(self.run.map_bytes()), None


@contextlib.contextmanager
def started(**options):
    with Run(agent='log_level = warning', **options) as run:
        yield run
        said = run.messages().splitlines()
        print(*(said or ['(the agent warned of nothing)']), sep='\n')


def soak_live(part, n):
    with Cgroup('soak') as cgroup, started() as run:
        with Cost(run) as cost, working('live', cgroup, n) as truth:
            run.wait_collections(LIVE_COLLECTIONS)
        overflows = run.overflows()
    expected = truth.by_unit()
    for of in ('sum', 'last'):
        got = run.sums(COUNT, UNIT, CALL, of=of)
        wrong = differences(expected, got)
        absent = sum(not count for _, _, count in wrong)
        within = n <= MAX_UNITS
        report(part, [('pairs exact (%s)' % of, '%d of %d' % (len(expected) - len(wrong), len(expected)), not wrong if within else None),
                      ('too low, too high, absent', '%d, %d, %d' % (sum(0 < a < b for _, b, a in wrong), sum(a > b for _, b, a in wrong), absent),
                       absent == len(wrong) if not within else None)])
    nameless = sum(expected.values()) - sum(got[key] for key in expected)
    report(part, [('calls without name, in overflow', '%d, %s' % (nameless, {name: round(count) for name, count in overflows.items()} or 'none'),
                   not overflows if within else nameless <= sum(count for (name, _), count in overflows.items() if name == COUNT)),
                  ('series', str(len(run.series)), None), ('PSS before, with units', '%s, %s' % (mib(cost.pss), mib(cost.peak)), None)])
    report(part, cost.figures())


def wait_memory(run, limit):
    """PSS, as soon as it is below the limit or COOLING_S are over."""
    deadline = time.monotonic() + COOLING_S
    while run.pss_bytes() > limit and time.monotonic() < deadline:
        time.sleep(5)
    return run.pss_bytes()


def report_churn(part, run, truth):
    for call in CHURN_CALLS:
        named, unknown, made = lost(call, truth, run)
        report(part, [('%s named, unknown' % call, '%d, %d of %d' % (named, unknown, made), named <= made <= named + unknown)])
    expected = truth.by_unit()
    right = len(expected) - len(differences(expected, run.sums(COUNT, UNIT, CALL)))
    report(part, [('pairs exact under their names', '%d of %d' % (right, len(expected)), right >= 0.99 * len(expected)),
                  ('in overflow', str(run.overflows() or 'none'), not run.overflows())])


def soak_churn(part):
    with Cgroup('soak') as cgroup, started() as run:
        run.wait_collections(2)  # until then series of the machine's own units are made
        with Cost(run) as cost, working('churn', cgroup, CHURN_UNITS, CHURN_PER_SECOND) as truth:
            run.wait_collections(2)
        after = wait_memory(run, cost.pss * 1.1)
    report_churn(part, run, truth)
    report(part, [*cost.figures(limited=True), ('PSS before, at the end, later', ', '.join(map(mib, (cost.pss, cost.peak, after))),
                                                after <= cost.pss * 1.1)])


def soak_spawn(part):
    collectors = ('syscalls', 'network', 'fileio', 'scheduler', 'memory', 'tcpstate')
    more = ''.join('[collector %s]\nper_process = yes\n' % name for name in collectors)
    with Cgroup('soak') as cgroup, started(more=more) as run:
        with Cost(run) as cost, working('spawn', cgroup, SPAWNED, SPAWNED_PER_SECOND) as truth:
            run.wait_collections(2)
        after = wait_memory(run, cost.pss * 1.1)
    for call in CHURN_CALLS:
        counted = run.sums(COUNT, OWNER, **{CALL: call})[cgroup.path,]
        report(part, [('%s of the unit' % call, '%d of %d' % (counted, sum(truth.calls[call])), counted == sum(truth.calls[call]))])
    by_pid = run.sums(COUNT, 'process.pid', **{OWNER: cgroup.path, CALL: CHURN_CALLS[0]})
    long_lived = list(zip(truth.others['pid'], truth.calls[CHURN_CALLS[0]]))[SPAWNED:]
    named = sum(by_pid[pid,] == count for pid, count in long_lived)
    report(part, [('long-lived processes exact', '%d of %d' % (named, len(long_lived)), named == len(long_lived) > 0),
                  ('processes with series of their own', '%d of %d' % (len(by_pid), len(truth.others['pid'])), None),
                  ('in overflow', str(run.overflows() or 'none'), not run.overflows()), *cost.figures(),
                  ('PSS before, at the end, later', ', '.join(map(mib, (cost.pss, cost.peak, after))), None)])


def main():
    for part in sys.argv[1:] or ['live-50', 'live-500', 'live-1000', 'churn', 'spawn']:
        print('\n== %s' % part, flush=True)
        if part.startswith('live-') and part[5:].isdecimal():
            soak_live(part, int(part[5:]))
        elif part in ('churn', 'spawn'):
            {'churn': soak_churn, 'spawn': soak_spawn}[part](part)
        else:
            sys.exit('%s: there is no part "%s": live-N, churn, spawn' % (sys.argv[0], part))
    print('', *failed or ['all figures are as they must be'], sep='\n')
    sys.exit(bool(failed))


if __name__ == '__main__':
    main()
