# SPDX-License-Identifier: Apache-2.0
"""The table that `bpfpush once` prints where nothing is asked for in detail: its numbers, and that it fits; intervals."""
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import termios
import unittest

import harness
from harness import PATIENCE_S, Cgroup, agent, workload

ONCE = [agent(), 'once', '--config=/dev/null']
HEADING = re.compile(r'^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d UTC, ([\d.]+) m?s', re.MULTILINE)
FAILURES = {'many': 40000, 'few': 4000}
HINT = 'details: --all, or a collector such as syscalls (bpfpush list --available)'
# Less than 1 % is that of loaders and shells, and what is lost when a number is rounded.
MARGIN = 0.02


def run(*words, **options):
    return subprocess.run([*ONCE, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False, **options)


def on_terminal(lines, columns, *words, **environment):
    """What a terminal of this size gets."""
    leader, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (lines, columns))
    with os.fdopen(leader, 'rb', buffering=0) as screen, os.fdopen(terminal, 'wb') as output:
        environment = dict(os.environ, **dict({'NO_COLOR': '1', 'LC_ALL': 'C.UTF-8'}, **environment))
        with subprocess.Popen([*ONCE, *words], stdout=output, env=environment) as process:
            output.close()
            text = b''
            with contextlib.suppress(OSError):  # the program has closed its side
                while block := screen.read(65536):
                    text += block
        assert process.returncode == 0, text
    return text.decode().replace('\r\n', '\n')


def rows(text):
    """[{heading: text}] of the first table. Numbers end where their heading does, and texts begin there."""
    heads, *lines = text.split('\n\n')[0].splitlines()[1:]
    places = [(match.group(), match.start(), match.end()) for match in re.finditer(r'\S+', heads)]
    return [{name: line[max(0, begin - 12):end].split()[-1] if name.endswith(('/s', '%')) else line[begin:].split()[0]
             for name, begin, end in places} for line in lines if line.startswith('  ') and '…' not in line[:4]]


def number(text):
    match = re.match(r'([\d.]+)([kMG]?)$', text)
    return float(match.group(1)) * {'': 1, 'k': 1e3, 'M': 1e6, 'G': 1e9}[match.group(2)]


class MessageTest(unittest.TestCase):
    def test_a_person_who_waits_is_told_what_for(self):
        leader, terminal = os.openpty()
        with os.fdopen(leader, 'rb', buffering=0) as screen, os.fdopen(terminal, 'wb') as messages:
            with subprocess.Popen([*ONCE, '--for=1h'], stdout=subprocess.DEVNULL, stderr=messages) as process:
                messages.close()
                said = screen.readline()
                process.send_signal(signal.SIGINT)
            self.assertEqual((process.returncode, said), (0, b'counting for 3600 s; Ctrl-C ends it sooner\r\n'))

    def test_a_short_run_does_not_speak_of_room_that_it_does_not_need(self):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as config:
            config.write('[agent]\nmemory_limit = 11MiB\n')
            config.flush()
            done = subprocess.run([harness.agent(), 'once', '--config=' + config.name, '--', 'true'], capture_output=True, text=True,
                                  timeout=PATIENCE_S, check=True)
        self.assertEqual(done.stderr, '')


class TableTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix='bpfpush-test-')
        self.addCleanup(self.directory.cleanup)

    def work(self, name, procs='""'):
        """A command that makes failing calls."""
        path = os.path.join(self.directory.name, name)
        return f'rm -f {path}; {workload("ask")} {name} {procs} {FAILURES[name]} 1 {path} >&2'

    def check_rate(self, text, row, name):
        """The calls that failed, from the rate and the time that both are on the page."""
        seen = number(row['errs/s']) * float(HEADING.search(text).group(1))
        self.assertLess(abs(seen - FAILURES[name]), FAILURES[name] * MARGIN, text)

    def test_the_busiest_unit_comes_first_and_its_rates_are_right(self):
        with Cgroup('many') as many, Cgroup('few') as few:
            script = f'{self.work("few", few.procs)}; {self.work("many", many.procs)}'
            text = on_terminal(500, 250, '--whole-machine', '--sort=errs/s', '--', 'sh', '-c', script)
            found = {row['unit']: row for row in rows(text)}
            self.check_rate(text, found[many.path], 'many')
            self.check_rate(text, found[few.path], 'few')
            order = [name for name in found if name in (many.path, few.path)]
            self.assertEqual(order, [many.path, few.path])

    def test_of_a_command_the_rows_are_what_it_did_alone(self):
        with Cgroup('busy') as busy:
            loop = busy.start(['sh', '-c', 'while :; do cat /nonexistent; done'], stderr=subprocess.DEVNULL)
            self.addCleanup(loop.wait)  # the cgroup kills it
            text = on_terminal(500, 250, '--', 'sh', '-c', self.work('many'))
            [row] = rows(text)
            self.assertRegex(row['unit'], r'^bpfpush-once-\d+$')
            self.check_rate(text, row, 'many')

    def test_each_process_of_a_command_has_a_row(self):
        for option in ('--per-process', '--by=process'):
            with self.subTest(option):
                text = on_terminal(500, 250, option, '--sort=errs/s', '--', 'sh', '-c', f'{self.work("few")}; {self.work("many")}')
                mine = [row for row in rows(text) if row['executable.name'] == 'workload-ask']
                self.assertEqual(len(mine), 2, text)
                self.check_rate(text, mine[0], 'many')
                self.check_rate(text, mine[1], 'few')
                self.assertEqual([row['executable.name'] for row in rows(text)].count('rm'), 2, text)

    def test_it_fits_the_terminal(self):
        # Counted until each unit has worked: between the two times that it makes the file that was removed, it has slept.
        names = ['%s/unit-%d' % (self.directory.name, i) for i in range(30)]
        once_more = 'rm -f "$@"; for name; do until [ -e "$name" ]; do sleep 0.05; done; done\n'
        all_worked = ['--whole-machine', '--', 'sh', '-c', once_more * 2, 'sh', *names]
        with contextlib.ExitStack() as stack:
            for i, name in enumerate(names):
                cgroup = stack.enter_context(Cgroup('one-of-many-with-a-long-name-%d' % i))
                self.addCleanup(cgroup.start(['sh', '-c', 'while sleep 0.05; do : >"$0"; done', name]).wait)
            for lines, columns in ((24, 80), (12, 40), (50, 132), (6, 20)):
                with self.subTest(lines=lines, columns=columns):
                    text = on_terminal(lines, columns, *all_worked)
                    printed = text.splitlines()
                    self.assertLessEqual(max(map(len, printed)), columns, text)
                    self.assertLess(len(printed), lines)
                    if lines < 30:
                        self.assertEqual(len(printed), lines - 1, text)
                        self.assertRegex(printed[-2], r'^  … \d+ more$')
                    self.assertEqual(printed[-1], HINT[:columns])
            text = run(*all_worked).stdout
            self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
            self.assertGreaterEqual(len(text.splitlines()), 32)  # all of them
            self.assertEqual(len(run('--limit=2', *all_worked).stdout.splitlines()), 5)

    def test_details_are_for_those_who_ask(self):
        fails = ['--', 'cat', '/nowhere']  # on an idle machine, no other call may fail
        for words in (['--all'], ['syscalls'], ['bpfpush.syscalls'], ['--by=syscall.name', '--all'], ['--histogram'],
                      ['--where=error.type', 'syscalls', *fails]):
            text = run(*words if fails[0] in words else ['--for=100ms', *words]).stdout
            self.assertIn('bpfpush.syscalls (call)', text, words)
        self.assertIn('process.paging.faults (fault)', run('--for=100ms', '--all').stdout)
        self.assertIn('"name":"process.paging.faults"', run('--for=100ms', '--format=json').stdout)

    def test_a_terminal_is_told_that_there_is_more(self):
        for words in ([], ['--interval=100ms', '--count=2'], ['--', 'true']):
            text = on_terminal(24, 80, '--for=200ms', *words)
            self.assertEqual((text.count(HINT), text.splitlines()[-1]), (1, HINT), text)
        for words in (['--all', '--limit=1'], ['memory']):
            self.assertNotIn('details', on_terminal(24, 80, '--for=10ms', *words))
        for words in ([], ['--format=csv'], ['--format=json']):
            self.assertNotIn('details', run('--for=10ms', *words).stdout)
        self.assertIn('\033[2m%s\033[0m\n' % HINT, on_terminal(24, 80, '--for=10ms', NO_COLOR='', TERM='xterm'))

    def test_it_is_appended_to_a_file(self):
        path = os.path.join(self.directory.name, 'table')
        for n in (1, 2):
            done = run('--for=10ms', '--output=' + path)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))
            with open(path, encoding='utf-8') as file:
                self.assertEqual(len(HEADING.findall(file.read())), n)

    def test_a_pipe_that_nobody_reads_is_refused_at_once(self):
        with tempfile.TemporaryDirectory() as directory:
            os.mkfifo(directory + '/pipe')
            done = run('--for=100ms', f'--output={directory}/pipe')
            self.assertEqual((done.returncode, done.stderr),
                             (74, f'bpfpush once: --output={directory}/pipe: is a pipe that nobody reads\n'))

    def test_mistakes(self):
        with open('/dev/full', 'w') as full:
            done = subprocess.run([*ONCE, '--for=1ms'], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (74, 'bpfpush once: standard output: No space left on device\n'))
        done = run('--for=1ms', '--sort=err/s')
        self.assertEqual((done.returncode, done.stdout), (64, ''))
        self.assertIn('--sort: unknown column "err/s": did you mean "errs/s"?', done.stderr)
        done = run('--', '/no/such/command')
        self.assertEqual((done.returncode, done.stdout, done.stderr), (127, '', 'cannot run /no/such/command: No such file or directory\n'))


class IntervalTest(unittest.TestCase):
    def test_what_each_interval_has_is_all_that_there_is(self):
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory:
            script = '; sleep 1; '.join(f'{workload("ask")} {n} "" {n} 1 {directory}/{n} >&2' for n in (1000, 200, 30))
            words = ['--interval=100ms', 'syscalls', '--by=syscall.name', '--where=syscall.name=ftruncate', '--', 'sh', '-c', script]
            text = run(*words).stdout
            tables = re.findall(r'^  ftruncate +(\d+) ', text, re.MULTILINE)
            self.assertEqual(sum(map(int, tables)), 1230, text)
            self.assertGreaterEqual(len(tables), 3)
            self.assertGreaterEqual(len(HEADING.findall(text)), 7)  # also when it slept
            self.assertIn('\n\nbpfpush.syscalls (call)\n', text)
            # Each of the headings but the first stands after an empty line.
            self.assertEqual([text[match.start() - 2:match.start()] for match in HEADING.finditer(text)][1:],
                             ['\n\n'] * (len(HEADING.findall(text)) - 1))

    def test_a_percentile_is_that_of_its_interval(self):
        """A long call is the largest of the interval in which it ends. The last call comes when a table has it."""
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory:
            path = directory + '/tables'
            counted = f"awk '$1 == \"clock_nanosleep\" {{n += $2}} END {{print n + 0}}' {path}"
            script = f'for i in 1 2 3; do sleep 0.0001; done; sleep 2; until [ $({counted}) = 4 ]; do :; done; sleep 0.0001'
            run('--output=' + path, '--interval=500ms', 'syscall.duration', '--duration=clock_nanosleep', '--by=syscall.name',
                '--where=syscall.name=clock_nanosleep', '--', 'sh', '-c', script)
            with open(path, encoding='utf-8') as file:
                text = file.read()
        found = re.findall(r'^  clock_nanosleep +(\d+) (.*)', text, re.MULTILINE)
        self.assertEqual(sum(int(count) for count, _ in found), 5, text)
        self.assertEqual(found[-1][0], '1', text)
        # Of so few calls, the last percentile is next to the largest: rate, sum, mean, p50, p90, p99.
        is_long = [bool(re.fullmatch(r'([2-9]|\d\d+)(\.\d+)?s', figures.split()[5])) for _, figures in found]
        self.assertEqual((is_long.count(True), is_long[-1]), (1, False), text)

    def test_it_ends_after_so_many(self):
        for words in ([], ['memory'], ['--all']):
            text = run('--interval=100ms', '--count=3', *words).stdout
            self.assertEqual(len(HEADING.findall(text)), 3, text)
        points = [json.loads(line) for line in run('--interval=100ms', '--count=3', '--format=json', 'memory').stdout.splitlines()]
        self.assertEqual(len({point['time_ns'] for point in points}), 3)
        # How many intervals fit depends on the machine, but not how long they are together.
        lengths = [float(match.group(1)) * (1e-3 if match.group().endswith('ms') else 1)
                   for match in HEADING.finditer(run('--interval=100ms', '--count=99', '--for=350ms').stdout)]
        self.assertGreater(len(lengths), 1, lengths)
        self.assertLess(len(lengths), 5, lengths)
        self.assertGreaterEqual(sum(lengths), 0.349, lengths)  # each has three digits
        done = subprocess.run([agent(), 'top', '--config=/dev/null', '--interval=100ms', '--count=2'], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        self.assertEqual(len(HEADING.findall(done.stdout)), 2, done.stdout)

    def test_without_an_end_a_signal_ends_it(self):
        with subprocess.Popen([*ONCE, '--interval=100ms', 'memory'], stdout=subprocess.PIPE, text=True) as process:
            headings = 0
            while headings < 3:
                headings += bool(HEADING.match(process.stdout.readline()))
            process.send_signal(signal.SIGINT)
            process.stdout.read()
        self.assertEqual(process.returncode, 0)

    def test_a_reader_that_goes_ends_the_command(self):
        for words, script in (([], ''), (['--whole-machine'], ''), ([], "trap '' TERM; "), (['--format=json', 'memory'], ''),
                              (['--format=csv', 'memory'], ''), (['memory'], '')):
            line = [*ONCE, '--interval=100ms', *words, '--', 'sh', '-c', script + 'echo $$ >&2; while :; do sleep 0.1; done']
            with self.subTest(words), subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                child = int(process.stderr.readline())
                self.assertTrue(process.stdout.readline())
                process.stdout.close()
                self.assertEqual(process.wait(PATIENCE_S), -signal.SIGPIPE)
                self.assertEqual(harness.state_of(child), '')
                self.assertEqual(process.stderr.read(), '')
                self.assertEqual([name for _, names, _ in os.walk(harness.cgroup_root()) for name in names
                                  if name == f'bpfpush-once-{process.pid}'], [])

    def test_mistakes(self):
        for words, said in ((['--count=3'], 'bpfpush once: --count needs an interval: add --interval=TIME\n'),
                            (['--interval=1s', '--heatmap', 'scheduler'], 'bpfpush once: --interval has no effect with --heatmap: remove one of them\n')):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (64, '', said))


if __name__ == '__main__':
    harness.main()
