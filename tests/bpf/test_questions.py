# SPDX-License-Identifier: Apache-2.0
"""Questions on the command line: the first row is the right one, and its number is exact."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

import harness
from harness import OWNER, PATIENCE_S, Cgroup, Points, agent, cgroup_root, once, state_of, workload

CALLS = 'bpfpush.syscalls'
DISK = 'process.disk.io'
WAIT = 'bpfpush.scheduler.run_queue.duration'
PAGE = 4096
NS = 1e-9


def ask(question, *command, is_alone=False, **options):
    """What `bpfpush once` prints for a person."""
    words = question.split() + ([] if is_alone else ['--whole-machine'])
    done = subprocess.run([agent(), 'once', '--config=/dev/null', *words, '--', *command],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False, **options)
    if done.returncode:
        raise AssertionError('%s: exit status %d\n%s' % (question, done.returncode, done.stderr))
    return done.stdout


def rows(text, metric):
    """The rows of a metric's table as dicts by heading; all but the first cell without blanks."""
    table = text[text.index(metric + ' ('):].split('\n\n')[0].splitlines()[1:]
    heads = [(match.group(0), match.start(), match.end()) for match in re.finditer(r'\S+', table[0])]
    return [dict(zip((head for head, *_ in heads), re.split(r'\s{2,}', line.strip()))) for line in table[1:]]


def seconds(text):
    number, unit = re.fullmatch(r'([\d.]+)(\D+)', text).groups()
    return round(float(number) * {'s': 1, 'ms': 1e-3, 'µs': 1e-6, 'ns': 1e-9}[unit], 12)


def is_of_another_test(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open('/proc/%s/status' % pid) as file:
        return 'PPid:\t%d\n' % os.getpid() not in file.read()


def scopes():
    """Cgroups that commands have been counted in alone; not those of the agents that another test runs."""
    return [name for _, names, _ in os.walk(cgroup_root()) for name in names
            if name.startswith('bpfpush-once-') and not is_of_another_test(name.removeprefix('bpfpush-once-'))]


class Workloads(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='bpfpush-test-', dir='/var/tmp')  # a disk
        self.addCleanup(shutil.rmtree, self.directory)

    def work(self, name, procs, failures, blocks):
        path = os.path.join(self.directory, name)
        if os.path.exists(path):
            os.unlink(path)
        return ' '.join([workload('ask'), name, procs or '""', str(failures), str(blocks), path])

    def both(self, many, few):
        """A command that works in both cgroups, and prints what each has done."""
        return 'sh', '-c', ' & '.join([self.work('many', many.procs, 3000, 500), self.work('few', few.procs, 20, 3), 'wait'])


class QuestionsTest(Workloads):
    def ask_twice(self, question, metric, command, *cgroups):
        """The units of these cgroups in the order in which a person sees them with their rows, and the points that a
        program gets for the same question. Other units of this machine may do more."""
        self.assertLess(len('bpfpush once ' + question), 60)
        found = {row['unit']: row for row in rows(ask(question, *command()), metric)}
        return [row for unit, row in found.items() if unit in {cgroup.path for cgroup in cgroups}], once(question.split(), command())

    def test_which_service_makes_most_failing_calls(self):
        with Cgroup('many') as many, Cgroup('few') as few:
            found, seen = self.ask_twice('syscalls --by=unit --where=error.type', CALLS, lambda: self.both(many, few), many, few)
            self.assertEqual([(row['unit'], row['total']) for row in found], [(many.path, '3000'), (few.path, '20')])
            self.assertEqual([point['total'] for point in seen.of(many)], [seen.expected['many'][0]])
            self.assertEqual([point['total'] for point in seen.of(few)], [seen.expected['few'][0]])
            self.assertEqual({point['name'] for point in seen}, {CALLS})

    def test_who_writes_to_the_disk(self):
        with Cgroup('many') as many, Cgroup('few') as few:
            found, seen = self.ask_twice('disk.io --by=unit --where=direction=write', DISK, lambda: self.both(many, few), many, few)
            self.assertEqual([row['unit'] for row in found], [many.path, few.path])
            self.assertGreaterEqual(seen.expected['many'][1], 500 * PAGE)
            self.assertEqual(seen.of(many).total(DISK), seen.expected['many'][1])
            self.assertEqual(seen.of(few).total(DISK), seen.expected['few'][1])

    def test_who_waits_for_a_cpu(self):
        def command():
            return 'sh', '-c', ' & '.join(['%s %s sleep 1 >/dev/null' % (workload('sched'), few.directory),
                                           '%s %s contend 4' % (workload('sched'), many.directory), 'wait'])

        with Cgroup('many') as many, Cgroup('few') as few:
            found, seen = self.ask_twice('run_queue.duration --by=unit', WAIT, command, many, few)
            self.assertEqual([row['unit'] for row in found], [many.path, few.path])
            waits = seen.of(many).total(WAIT)
            self.assertAlmostEqual(waits['sum'], seen.expected['run_delay_ns'] * NS, delta=NS)
            self.assertEqual(len(seen.of(many)), 1)

    def test_each_process_by_itself(self):
        with Cgroup('many') as many, Cgroup('few') as few:
            seen = once(['syscalls', '--by=process', '--where=error.type=EBADF'], self.both(many, few))
            mine = seen.of(many).select(**{'process.executable.name': 'workload-ask'})
            self.assertEqual([point['total'] for point in mine], [3000])
            self.assertEqual(set(mine[0]['attributes']), {'process.pid', 'process.executable.name', OWNER})

    def test_conditions(self):
        for condition, expected in (('error.type!=EBADF', 0), ('!error.type', 0), ('syscall.name=ftrunc*', 3000),
                                    ('syscall.name!=ftruncate', 0), ('unit=/no/such', 0), ('unit=*many*', 3000)):
            with self.subTest(condition), Cgroup('many') as many, Cgroup('few') as few:
                seen = once(['syscalls', '--by=unit,error.type', '--where=error.type', '--where=' + condition],
                            self.both(many, few))
                self.assertEqual(seen.of(many).total(CALLS, **{'error.type': 'EBADF'}), expected)

    def test_a_setting_of_the_command_line_is_as_one_of_the_configuration(self):
        with Cgroup('many') as many, Cgroup('few') as few:
            for option in ('--duration=ftruncate,pwrite64', '--set=syscalls.duration=ftruncate,pwrite64'):
                seen = once(['syscall.duration', option], self.both(many, few))
                mine = Points(seen.of(many) + seen.of(few))
                self.assertEqual({name: mine.total(**{'bpfpush.syscall.name': name})['count'] for name in ('ftruncate', 'pwrite64')},
                                 {'ftruncate': 3020, 'pwrite64': 503})

    def test_without_a_question_all_is_as_it_was(self):
        with Cgroup('many') as many, Cgroup('few') as few:
            seen = once(['syscalls'], self.both(many, few))
            self.assertEqual(seen.of(many).total(CALLS, **{'bpfpush.syscall.name': 'ftruncate', 'error.type': 'EBADF'}), 3000)

    def test_every_format_gets_the_answer(self):
        with Cgroup('many') as many, Cgroup('few') as few:
            question = 'syscalls --by=unit --where=syscall.name=ftruncate --format='
            table = ask(question + 'csv', *self.both(many, few)).splitlines()
            self.assertEqual(sorted(line.count(many.path) + line.count(few.path) for line in table if '/bpfpush-test-' in line), [1, 1])
            text = ask(question + 'bpftrace-json', *self.both(many, few))
            self.assertIn('"%s": 3000' % many.path, text)

    def test_heat_maps(self):
        question = '--heatmap syscall.duration --duration=clock_nanosleep --where=unit='
        sleeps = ['sh', '-c', 'for i in 1 2 3 4 5 6; do sleep 0.1; sleep 0.01; done']
        with Cgroup('many') as many:
            text = ask(question + many.path, *many.command(sleeps))
            hot = {line.split()[0] for line in text.splitlines() if re.search(r'\| *[^ ]', line)}
            self.assertTrue(text.startswith('bpfpush.syscall.duration\n'), text)
            self.assertLessEqual({'15.6ms', '125ms'}, hot)  # rows end there: at 1/64 and 1/8 s
            self.assertFalse({'7.81ms', '31.2ms'} <= hot, text)
            picture = os.path.join(self.directory, 'heat.svg')
            ask(question + many.path + ' --output=' + picture, *many.command(sleeps))
            root = xml.etree.ElementTree.parse(picture).getroot()
            self.assertEqual(root.tag, '{http://www.w3.org/2000/svg}svg')
            self.assertTrue([part for part in root.iter() if re.fullmatch(r'heat-\d', part.get('class', ''))])
        for words, said in ((['tcp.rtt', 'run_queue.duration', '--output=' + picture], 'one of them for a file.svg'),
                            (['bpfpush.syscalls'], 'name a metric that is one')):
            done = subprocess.run([agent(), 'once', '--config=/dev/null', '--heatmap', *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            self.assertEqual((done.returncode, done.stdout), (64, ''))
            self.assertIn(said, done.stderr)

    def check_bands(self, found, n_fast, n_slow):
        """found: [(lower limit, upper limit, how many)]. A busy machine wakes sleepers late, but not early."""
        found = [(seconds(low), int(n)) for low, _, n in found if int(n)]
        self.assertEqual([sum(n for low, n in found if (low >= 4) == is_slow) for is_slow in (False, True)], [n_fast, n_slow])
        self.assertGreaterEqual(min(found)[0], 0.0156)

    def test_two_latencies_are_two_bands(self):
        question = 'syscall.duration --duration=clock_nanosleep --where=unit='
        sleeps = ['sh', '-c', 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.02; done; sleep 5 & sleep 5; wait']
        picture = os.path.join(self.directory, 'heat.svg')
        with Cgroup('many') as many:
            text = ask('--histogram ' + question + many.path, *many.command(sleeps))
            self.check_bands(re.findall(r'^ +(\S+) -> +(\S+) : (\d+) ', text, re.MULTILINE), 12, 2)
            ask('--heatmap ' + question + many.path + ' --output=' + picture, *many.command(sleeps))
        with open(picture, encoding='utf-8') as file:
            cells = re.findall(r' x="(\d+)" y="\d+" [^>]*><title>[\d:.]+, (\S+) to (\S+): (\d+)<', file.read())
        self.check_bands([cell[1:] for cell in cells], 12, 2)
        # Those that came last are on the right.
        last = max(int(x) for x, low, *_ in cells if seconds(low) < 4)
        self.assertLess(last, min(int(x) for x, low, *_ in cells if seconds(low) >= 4))

    def test_an_option_that_would_change_nothing_is_refused(self):
        for line, status, said in (
                ('--limit=3 --format=json', 64, 'bpfpush once: --limit has no effect with this --format: remove one of them'),
                ('--histogram --format=csv', 64, 'bpfpush once: --histogram has no effect with this --format: remove one of them'),
                ('--sort=total --heatmap', 64, 'bpfpush once: --sort has no effect with --heatmap: remove one of them'),
                ('--format=json --heatmap', 64, 'bpfpush once: --format has no effect with --heatmap: remove one of them'),
                ('--sort=p99', 64, '--sort: unknown column "p99": there are total, rate, unit, '),
                ('--by=bpfpush.sycall.name', 64, '--by: unknown attribute "bpfpush.sycall.name": did you mean "bpfpush.syscall.name"?'),
                ('--where=unit=[', 64, '--where: "unit=[": a "[" has no "]": ')):
            done = subprocess.run([agent(), 'once', '--config=/dev/null', '--for=1ms', CALLS, *line.split()],
                                  capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr[:len(said)]), (status, '', said))

    def test_one_row_for_the_whole_machine(self):
        for option in ('--by=none', '--set syscalls.drop_attributes=unit --by=unit'):
            points = once(['syscalls', '--where=syscall.name=ftruncate', *option.split()], ['sh', '-c', self.work('one', '', 100, 1)])
            self.assertEqual([point['attributes'] for point in points], [{}])
            self.assertGreaterEqual(points[0]['total'], 100)

    def test_an_answer_without_rows_says_so(self):
        done = subprocess.run([agent(), 'once', '--config=/dev/null', '--for=1ms', 'syscalls', '--where=unit=/no/such'],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        self.assertEqual(done.stderr, 'bpfpush once: nothing that was counted meets the question\n')
        done = subprocess.run([agent(), 'once', '--config=/dev/null', '--for=1ms', '--heatmap', 'syscall.duration', '--duration=swapoff'],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        self.assertEqual(done.stderr, 'bpfpush once: nothing was counted\n')

    def test_an_answer_without_rows_fails_too_if_it_cannot_be_written(self):
        with open('/dev/full', 'w') as full:
            done = subprocess.run([agent(), 'once', '--config=/dev/null', '--for=1ms', 'syscalls', '--where=unit=/no/such'],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (74, 'exporter console: cannot write to standard output: No space left on device\n'))

    def test_a_question_about_processes_counts_each_of_them(self):
        for words in ('--by=pid', '--by=unit,process.pid', '--by=executable.name', '--where=pid=[0-9]*', '--where=executable.name=*'):
            with self.subTest(words):
                points = once(['syscalls', words], ['sh', '-c', ':'])
                self.assertTrue(any(name in point['attributes'] for point in points for name in ('process.pid', 'process.executable.name')))


class OnlyCommandTest(Workloads):
    def tearDown(self):
        self.assertEqual(scopes(), [])

    def test_only_the_command_and_what_it_starts_is_counted(self):
        with Cgroup('busy') as busy:
            loop = busy.start(['sh', '-c', 'while :; do cat /nonexistent; done'], stderr=subprocess.DEVNULL)
            self.addCleanup(loop.wait)  # the cgroup kills it
            script = '%s; %s' % (self.work('one', '', 1000, 10), self.work('two', '', 234, 20))
            seen = once(['syscalls', 'fileio'], ['sh', '-c', script], is_alone=True)
            self.assertEqual(seen.total(CALLS, **{'bpfpush.syscall.name': 'ftruncate'}), 1234)
            self.assertEqual(seen.total('bpfpush.file.operations', **{'bpfpush.file.operation': 'fsync'}), 2)
            # Making a file makes more of the disk dirty than its blocks.
            self.assertGreaterEqual(seen.total(DISK, **{'disk.io.direction': 'write'}),
                                    seen.expected['one'][1] + seen.expected['two'][1])
            owners = {point['attributes'][OWNER] for point in seen}
            self.assertEqual(len(owners), 1)
            self.assertRegex(owners.pop(), r'^bpfpush-once-\d+$')
            self.assertEqual(seen.total(CALLS, **{'bpfpush.syscall.name': 'execve', 'error.type': None}), 3)
            self.assertEqual(seen.select(CALLS, **{'bpfpush.syscall.name': 'execve', 'error.type': 'ENOENT'}), [])

    def test_what_does_this_command_do(self):
        command = 'bpfpush once --all --'
        self.assertLess(len(command), 60)
        text = ask(command.split()[2], 'sh', '-c', self.work('one', '', 3000, 500), is_alone=True)
        calls = {(row['syscall.name'], row['error.type']): row['total'] for row in rows(text, CALLS)}
        self.assertEqual(calls['ftruncate', 'EBADF'], '3000')
        self.assertEqual(calls['pwrite64', '-'], '500')
        self.assertIn(('fsync', '-'), calls)

    def test_a_probe_counts_the_command_whatever_it_is_told_apart_by(self):
        for by in '', ' by comm', ' by unit,comm', ' by process':
            line = [agent(), 'once', '--config=/dev/null', '--format=json', '--probe=count tracepoint:sched:sched_process_exec' + by, '--',
                    'sh', '-c', '/bin/true; /bin/true; /bin/true; :']
            done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE_S)
            self.assertEqual(sum(json.loads(point)['total'] for point in done.stdout.splitlines()), 4, by)

    def test_processes_that_are_left_go_on_elsewhere(self):
        # One is left in a cgroup below, which it has made itself.
        inner = 'mkdir "$0/inner"; echo 0 >"$0/inner/cgroup.procs"; echo $$; exec sleep 60 >/dev/null 2>&1'
        script = 'd=%s$(sed -n "s/^0:://p" /proc/self/cgroup); (sh -c \'%s\' "$d" & ) | head -1' % (cgroup_root(), inner)
        text = ask('--format=json syscalls', 'sh', '-c', script, is_alone=True)
        pid = int(re.search(r'^\d+$', text, re.MULTILINE).group(0))
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        with open('/proc/self/cgroup') as mine, open('/proc/%d/cgroup' % pid) as its:
            self.assertEqual([line for line in its if line.startswith('0::')], [line for line in mine if line.startswith('0::')])

    def test_the_status_is_the_commands(self):
        for command, status in ((['sh', '-c', 'exit 3'], 3), (['sh', '-c', 'kill -9 $$'], 137), (['/nonexistent'], 127)):
            done = subprocess.run([agent(), 'once', '--config=/dev/null', 'syscalls', '--', *command],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
            self.assertEqual((done.returncode, scopes()), (status, []))

    def test_a_signal_or_a_reader_that_goes_leaves_no_cgroup(self):
        line = [agent(), 'once', '--config=/dev/null', 'syscalls', '--limit=0', '--',
                'sh', '-c', 'echo runs; exec sleep 60']
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, None):
            with self.subTest(number), subprocess.Popen(line, stdout=subprocess.PIPE, start_new_session=True) as run:
                self.assertEqual(run.stdout.readline(), b'runs\n')
                self.assertEqual(len(scopes()), 1)
                if number is None:
                    run.stdout.close()
                run.send_signal(number or signal.SIGTERM)
                if number in (signal.SIGINT, signal.SIGHUP):  # a terminal gives it to both
                    os.killpg(run.pid, number)
                run.wait(PATIENCE_S)
                self.assertEqual(scopes(), [])

    def test_the_next_one_removes_what_one_that_was_killed_left(self):
        line = [agent(), 'once', '--config=/dev/null', 'syscalls', '--', 'sh', '-c', 'echo $$; exec sleep 60']
        with subprocess.Popen(line, stdout=subprocess.PIPE) as run:
            child = int(run.stdout.readline())
            run.kill()
        os.kill(child, signal.SIGKILL)
        left = scopes()
        self.assertEqual(len(left), 1)
        while state_of(child):
            time.sleep(0.01)
        ask('syscalls', 'true', is_alone=True)

    def test_without_a_tree_it_says_so_before_it_counts(self):
        line = [agent(), 'once', '--config=/dev/null', 'syscalls', '--', 'echo', 'ran']
        for hide, status, words in (('umount -l %s' % cgroup_root(), 69, 'would be made in the cgroup2 tree, which is not mounted here, or does not show the cgroup of bpfpush; --whole-machine counts all'),
                                    ('mount -o remount,bind,ro %s' % cgroup_root(), 77, 'cannot be made: Read-only file system; --whole-machine counts all')):
            script = 'mount --bind {0} {0}; '.format(cgroup_root()) if 'remount' in hide else ''
            done = subprocess.run(['unshare', '-m', 'sh', '-c', script + hide + '; exec "$@"', 'sh', *line],
                                  capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            self.assertEqual((done.returncode, done.stdout), (status, ''), done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == '__main__':
    harness.main()
