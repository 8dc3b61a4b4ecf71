# SPDX-License-Identifier: Apache-2.0
"""`bpfpush top` in a terminal of tmux: sizes, keys, what is left on the screen, how it ends, and its numbers."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'bpf'))
import harness
from harness import PATIENCE_S, Cgroup, state_of
from scale import working
from screen import Screen, paused_s

SIZES = ((80, 24), (20, 5), (132, 43), (300, 100), (10, 3), (80, 24))
NAMES = ('wide-\u5bbd\u5b57\u7b26', 'e\u0301\u0301\u0301-combining', '\u05e9\u05dc\u05d5\u05dd-rtl', '\u202e-turned', 'x' * 200,
         '<script>&"\'', '[31mred')
BUSY = 'import os\nwhile True: os.getppid()'
DAY_S = 86400
IDLE = 'import os, time\nwhile True: os.getppid(), time.sleep(0.05)'
# Of each metric a few series, of system calls more than a page has.
MANY = """
import os, time
while True:
    os.getppid(), os.getuid(), os.getgid(), os.geteuid(), os.getpriority(0, 0), os.sched_yield(), os.umask(0o22), os.uname()
    os.listdir('/'), os.access('/nowhere', 0), os.getcwd(), os.getrandom(1), open('/etc/passwd').read(), time.sleep(0.01)
"""
# What top sees of this is exact: nobody else makes this call.
CALLS = 'import os, sys\nprint("ready", flush=True)\nsys.stdin.readline()\n' \
    'for i in range(%d): os.getpriority(os.PRIO_PROCESS, 0)\nprint("done", flush=True)\nsys.stdin.readline()'


# What services are known for: failing opens, connections of both ends, bytes written to a file.
DEEDS = """
import os, socket, sys, tempfile
print("ready", flush=True)
sys.stdin.readline()
for i in range(420):
    try: os.open('/nowhere', 0)
    except OSError: pass
with socket.create_server(('127.0.0.1', 0)) as server:
    for i in range(21):
        with socket.create_connection(server.getsockname()) as client, server.accept()[0] as accepted:
            pass
with tempfile.TemporaryFile(buffering=0) as file:
    for i in range(50):
        file.write(bytes(65536))
print("done", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def running(cgroup, script):
    """A Python process inside, which is killed at the end."""
    with cgroup.start([sys.executable, '-c', script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def width(text):
    """In columns of a terminal."""
    return sum(0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in 'WF' else 1 for each in text)


def rows_of(text):
    """[{heading: text}] of the table in the text, by where the headings stand: numbers end below the end of theirs."""
    lines = [line for line in text.split('\n') if line.strip()]
    at = next((i for i, line in enumerate(lines) if 'calls/s' in line), None)
    if at is None:
        return []
    ends = [(match.group(), match.end()) for match in re.finditer(r'\S+', lines[at])][1:]
    rows = []
    for line in lines[at + 1:]:
        words = line.split()[-len(ends):]
        if len(words) == len(ends) and re.match(r'[\d.]+[a-zA-Zµ]*$', words[0]):
            rows.append(dict(zip([name for name, _ in ends], words), line=line))
    return rows


def number(text):
    match = re.match(r'([\d.]+)([kMG]?)$', text)
    return float(match.group(1)) * {'': 1, 'k': 1e3, 'M': 1e6, 'G': 1e9}[match.group(2)]


class SizesTest(unittest.TestCase):
    @staticmethod
    def wait_for_page(screen, n_lines, last, part=''):
        """One that is known by the beginning of its last line, and has the part."""
        def is_there(text):
            lines = text.split('\n')[:-1]
            return len(lines) == n_lines and lines[-1].startswith(last) and part in text
        return screen.wait(is_there, '%d lines up to "%s"' % (n_lines, last))

    def test_it_fits_every_size_at_once(self):
        with Screen(80, 24, '--interval=1s') as screen:
            screen.wait_for('cpu%', 'no unit')
            screen.keys('Space')  # what comes now comes from the resize
            screen.wait_for('paused')
            for columns, lines in SIZES:
                screen.resize(columns, lines)
                text = self.wait_for_page(screen, lines, 'h help  Enter'[:columns], 'cpu%' if lines >= 4 else '')
                for line in text.split('\n'):
                    self.assertLessEqual(width(line), columns)
                screen.keys('Tab', 'Down', 'Enter', 'h')
                self.wait_for_page(screen, lines, 'Esc back')
                for _ in range(3):
                    screen.keys('Escape')
                self.wait_for_page(screen, lines, 'h help  Enter'[:columns])
            screen.resize(60, 24)
            screen.wait(lambda text: re.search(r'\d rows?  ▸ \d+ more columns: →$', text, re.MULTILINE), 'what is left out')
            screen.resize(300, 43)
            self.assertNotIn('more column', screen.wait_for('retrans/s'))

    def test_a_long_problem_is_read_in_full(self):
        built = os.path.join(os.path.dirname(harness.agent()), 'bpf')
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as place:
            for name in 'cgroup.bpf.o', 'hardware.bpf.o', 'cgroup.conf', 'hardware.conf':
                shutil.copy(os.path.join(built, name), place)
            with open(os.path.join(place, 'hardware.conf'), encoding='utf-8') as file:
                text = re.sub(r'(?m)^event = .*\nperiod = .*', 'event = type=99,config=1,period=1000', file.read())
            with open(os.path.join(place, 'hardware.conf'), 'w', encoding='utf-8') as file:
                file.write(text)
            with Screen(80, 24, '--interval=1s', '--collector-directory=' + place, 'cgroup', 'hardware') as screen:
                text = screen.wait_for('cannot run', 'often has no PMU', 'h help')  # not the log before it
                self.assertNotIn('cannot run', text.split('\n')[0])


class KeysTest(unittest.TestCase):
    @staticmethod
    def pause_at(screen, is_there):
        """At numbers of which that holds: in some interval, a busy machine may not let the others run."""
        while True:
            screen.wait(is_there, 'numbers to pause at')
            screen.keys('Space')
            screen.wait_for('paused')
            if is_there('\n'.join(screen.still())):
                return
            screen.keys('Space')
            screen.wait(lambda text: 'paused' not in text, 'newer numbers')

    def test_keys_that_find_nothing_say_so(self):
        with Screen(80, 24, '--interval=1s') as screen:
            screen.wait_for('cpu%', 'no unit')
            screen.keys('Space')
            screen.wait_for('paused')
            for key, note in (('H', 'heat maps are of durations'), ('h', 'what it does'), ('Enter', 'has nothing more to show')):
                screen.keys(key)
                screen.wait_for(note)

    def test_pages_leave_nothing_on_the_screen(self):
        # A key, what is there after it, and what is no longer there.
        pages = (('Enter', 'bpfpush.syscalls', 'p99wait'), ('End', 'scheduler.run_queue.duration', 'bpfpush.syscalls'),
                 ('Escape', 'p99wait', 'scheduler'), ('Tab', 'series', 'p99wait'), ('/', 'only with "_"', 'Esc back'),
                 ('queue', '"queue_"', 'syscall'), ('Enter', '"queue"', 'Enter keeps'), ('Enter', '->', 'series'),
                 ('H', 'logarithmic', '->'), ('h', 'what it does', 'logarithmic'), ('Escape', 'logarithmic', 'what it does'),
                 ('Escape', '"queue"', 'logarithmic'), ('Escape', 'bpfpush.syscalls', 'queue"'), ('Escape', 'p99wait', 'series'))
        with Cgroup('pages') as cgroup, running(cgroup, MANY), \
                Screen(100, 20, '--interval=500ms', '--where=unit=*-test-pages-*') as screen:
            self.pause_at(screen, lambda text: [number(row['calls/s']) > 0 and row['p99wait'] != '-' for row in rows_of(text)] == [True])
            for key, there, gone in pages:
                with self.subTest(key):
                    screen.keys(key)
                    screen.wait(lambda text, there=there, gone=gone: there in text and gone not in text, '%s, not %s' % (there, gone))
                    drawn = screen.still()[1:]
                    screen.resize(10, 20)
                    screen.wait(lambda text: 4 < len(text.split('\n')[-2]) < 11, 'a narrow page')
                    screen.resize(100, 20)
                    screen.wait(lambda text, drawn=drawn: text.split('\n')[1:-1] == drawn, 'the same page, drawn as a whole')

    def test_an_attribute_of_processes_needs_no_option(self):
        with Cgroup('by-number') as cgroup, running(cgroup, BUSY) as busy, \
                Screen(100, 30, '--interval=500ms', '--by=pid', '--where=unit=*-test-by-number-*') as screen:
            screen.wait(lambda text: re.search(r'^%d  ' % busy.pid, text, re.MULTILINE), 'the process')

    def test_columns_sort_the_rows(self):
        with Cgroup('sort-a') as idle, Cgroup('sort-b') as busy, running(idle, IDLE), running(busy, BUSY), \
                Screen(100, 30, '--interval=500ms', '--where=unit=*-test-sort-?-*') as screen:
            by_use, by_name = ['b', 'a'], ['a', 'b']
            for key, order in (('r', by_name), ('r', by_use), ('Left', by_name), ('r', by_use), ('r', by_name), ('Right', by_use)):
                screen.keys(key)
                screen.wait(lambda text, order=order: re.findall('^/bpfpush-.*rt-([ab])-', text, re.MULTILINE) == order, '%s: %s' % (key, order))

    def test_a_key_leads_there_and_back(self):
        with Cgroup('back') as cgroup, running(cgroup, IDLE), \
                Screen(100, 30, '--interval=500ms', '--where=unit=*-test-back-*') as screen:
            screen.wait_for('cpu%', '1 row')
            for key, there, back in (('Tab', 'series', 'cpu%'), ('h', 'what it does', 'cpu%'), ('p', 'pid', '1 row')):
                screen.keys(key)
                screen.wait_for(there)
                screen.keys(key)
                screen.wait(lambda text, there=there, back=back: back in text and there not in text, back)
            screen.keys('Tab', 'p')
            screen.wait_for('pid', '1 row')
            screen.keys('Escape')
            screen.wait_for('series')

    def test_a_metric_opens_its_page(self):
        with Screen(100, 30, '--interval=500ms', '--sort=p99', 'run_queue.duration') as screen:
            screen.wait_for('bpfpush.scheduler.run_queue.duration', 'p99', '->')

    def test_a_limit_says_of_how_many(self):
        with Cgroup('limit-a') as first, Cgroup('limit-b') as second, running(first, BUSY), running(second, BUSY), \
                Screen(100, 30, '--interval=500ms', '--limit=1', '--where=unit=*-test-limit-?-*') as screen:
            screen.wait_for('1 of 2 rows')

    def test_a_heat_map_is_offered_where_there_is_one(self):
        for word, shown, is_there in (('run_queue.duration', '->', True), ('bpfpush.syscalls', 'total', False)):
            with Screen(100, 30, '--interval=500ms', word) as screen:
                screen.wait_for(word, shown)
                self.assertEqual('H heat map' in screen.still()[-1], is_there)

    def test_a_time_is_a_share_of_a_cpu(self):
        with Screen(100, 30, '--interval=500ms', 'scheduler') as screen:
            screen.wait_for('cpu%', 'no unit')
            screen.keys('Tab')
            screen.wait(lambda text: re.search(r'scheduler.cpu.time +\d+ +[\d.]+%', text), 'a share')

    def test_a_metric_is_described_in_full(self):
        with Screen(60, 30, '--interval=500ms') as screen:
            screen.wait_for('cpu%', 'no unit')
            screen.keys('Tab')
            screen.wait_for('series')
            screen.keys('/')
            screen.keys('syscall.duration', 'Enter')
            screen.wait(lambda text: 'Time from the start of a system call to its return' in text, 'the whole sentence')

    def test_processes_are_counted_when_asked_for(self):
        with Cgroup('processes') as cgroup, running(cgroup, BUSY) as busy, \
                Screen(120, 30, '--interval=500ms', '--where=unit=*-test-processes-*') as screen:
            screen.wait_for('cpu%', cgroup.path[:8])
            screen.keys('p')
            screen.wait(lambda text: re.search(r'^%d +python' % busy.pid, text, re.MULTILINE), 'the process')
            screen.keys('Escape')
            screen.wait(lambda text: 'pid' not in text and 'unit' in text, 'the units')

    def test_an_interpreter_is_known_by_its_script(self):
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory:
            path = os.path.join(directory, 'serve\x1b]0;x\x07\r\xff-all.py')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(IDLE)
            with Cgroup('script') as cgroup, cgroup.start([sys.executable, '-u', path, '--secret=x']) as script, \
                    Screen(140, 30, '--interval=500ms', '--by=process', '--where=unit=*-test-script-*') as screen:
                text = screen.wait(lambda text: re.search(r'^%d +python\S* serve\?]0;x\?+.*-all\.py ' % script.pid, text, re.MULTILINE), 'its script')
                self.assertNotIn('secret', text)
                screen.keys('Enter')
                screen.wait(lambda text: re.search(r'^%d python\S* serve\?]0;x\?+.*-all\.py ' % script.pid, text, re.MULTILINE), 'the title of its page')
                script.kill()

    def test_a_pause_keeps_the_numbers(self):
        with Cgroup('pause') as cgroup, Screen(100, 30, '--interval=500ms', '--where=syscall.name=getpriority', '--where=unit=*-test-pause-*') as screen, \
                running(cgroup, CALLS % 500) as calls:
            screen.wait_for('calls/s', '0 rows')
            screen.keys('Space')
            screen.wait_for('paused')
            calls.stdin.write('\n')
            calls.stdin.flush()
            self.assertNotIn('/bpfpush-', screen.wait(lambda text: paused_s(text) >= 2, 'more than an interval'))
            screen.keys('Space')
            screen.wait_for('/bpfpush-', '1 row')

    def test_colours_are_for_those_who_want_them(self):
        for environment, is_coloured in (('', True), ('NO_COLOR=1', False)):
            with Screen(100, 30, '--interval=500ms', environment=environment) as screen:
                screen.wait_for('cpu%', 'no unit')
                self.assertEqual(bool(re.search('\033\\[(?:[0-9;]*;)?3[0-7]', screen.text('-e'))), is_coloured)

    def test_a_heat_map_is_seen_with_any_colours(self):
        for terminal, environment, is_coloured in (('screen', '', False), ('tmux-256color', '', True), ('tmux-256color', 'NO_COLOR=1', False)):
            with self.subTest((terminal, environment)), \
                    Screen(100, 30, '--interval=500ms', '--heatmap', environment=environment, terminal=terminal) as screen:
                screen.wait_for('cpu%', 'no unit')
                for key, there in (('Tab', 'series'), ('/', 'only with'), ('queue', '"queue_"'), ('Enter', 'h help'), ('Enter', 'logarithmic')):
                    screen.keys(key)
                    screen.wait_for(there)
                screen.still()
                map_ = [line for line in screen.text('-e').split('\n') if re.match(r'[^|]{6,}s \|', line)]
                self.assertEqual(any('48;5;' in line for line in map_), is_coloured, map_)
                self.assertEqual(any(re.search('[.:=+*#%@]', line.split('|')[1]) for line in map_), not is_coloured, map_)

    def test_hostile_names_stay_in_their_columns(self):
        groups, children = [], []
        try:
            for name in NAMES:
                groups.append(Cgroup('names-' + name))
                groups[-1].__enter__()
                children.append(groups[-1].start([sys.executable, '-c', BUSY]))
            with Screen(132, 30, '--interval=500ms', '--where=unit=*-test-names-*') as screen:
                screen.wait(lambda text: 'cpu%' in text and len(rows_of(text)) == len(NAMES), 'all of them')
                text = '\n'.join(screen.still())
                self.assertEqual(len(rows_of(text)), len(NAMES), text)
                self.assertNotIn('\u202e', text)
                # The last column stands right, so all lines end where its heading ends.
                headings = next(line for line in text.split('\n') if 'cpu%' in line)
                self.assertEqual({width(row['line']) for row in rows_of(text)}, {width(headings)}, text)
        finally:
            for group in groups:
                group.__exit__()
            for child in children:
                child.wait()


class EndTest(unittest.TestCase):
    def check_restored(self, screen, status):
        screen.wait_for('it has ended')
        self.assertEqual(screen.file('status'), '%d\n' % status)
        self.assertEqual(screen.file('after'), screen.file('before'))
        self.assertEqual((screen.state('alternate_on'), screen.state('cursor_flag')), ('0', '1'))

    def test_the_terminal_is_as_it_was(self):
        ends = {'q': lambda screen: screen.keys('q'), 'Ctrl-C': lambda screen: screen.keys('C-c'),
                'F10': lambda screen: screen.keys('F10'), 'SIGTERM': lambda screen: os.kill(screen.pid(), signal.SIGTERM),
                'SIGHUP': lambda screen: os.kill(screen.pid(), signal.SIGHUP)}
        for name, end in ends.items():
            with self.subTest(name), Screen(80, 24, '--interval=500ms') as screen:
                screen.wait_for('cpu%', 'no unit')
                self.assertEqual((screen.state('alternate_on'), screen.state('cursor_flag')), ('1', '0'))
                end(screen)
                self.check_restored(screen, 0)

    def test_a_mistake_shows_no_screen(self):
        with Screen(80, 24, '--where=no.such=x') as screen:
            screen.wait_for('no.such', 'it has ended')
            self.check_restored(screen, 64)

    def test_nothing_stays_where_there_is_one_screen(self):
        with Screen(80, 24, '--interval=500ms', environment='TERM=vt100') as screen:
            screen.wait_for('cpu%', 'no unit')
            screen.keys('q')
            self.assertNotIn('quit', screen.wait_for('it has ended'))

    def test_a_terminal_without_utf8_gets_none(self):
        with Screen(100, 30, '--interval=500ms', 'run_queue.duration', environment='LC_ALL=C') as screen:
            text = screen.wait(lambda text: '->' in text and re.search(r' \d[.\d]+us ', text), 'a time in us')
            self.assertTrue(text.isascii(), text)

    def test_an_unknown_terminal_gets_plain_tables(self):
        with Screen(80, 24, '--for=1s', '--limit=3', environment='TERM=unheard-of') as screen:
            text = screen.wait_for('TERM=unheard-of', 'it has ended')
            self.assertIn('cpu%', text)
            self.assertEqual(screen.file('status'), '0\n')

    def test_it_ends_with_its_terminal(self):
        with Screen(80, 24, '--interval=500ms') as screen:
            screen.wait_for('cpu%', 'no unit')
            pid = screen.pid()
            screen.tmux('kill-server')
            end = time.monotonic() + PATIENCE_S
            while state_of(pid) and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(state_of(pid), '')

    def test_it_can_be_stopped_and_woken(self):
        with Screen(80, 24, shell='bash --norc --noprofile -i') as screen:
            screen.wait_for('#')
            screen.keys('%s top --interval=500ms' % os.path.realpath(harness.agent()), 'Enter')
            screen.wait_for('cpu%', 'no unit')
            screen.keys('C-z')
            screen.wait_for('Stopped')
            self.assertEqual(screen.state('alternate_on'), '0')
            screen.keys('fg', 'Enter')
            screen.wait_for('cpu%', 'no unit', 'h help')
            self.assertEqual(screen.state('alternate_on'), '1')
            screen.keys('q')
            screen.wait(lambda text: 'cpu%' not in text)

    def test_it_can_be_stopped_while_it_draws(self):
        with Screen(200, 60, shell='bash --norc --noprofile -i') as screen:
            screen.wait_for('#')
            screen.keys("sh -c 'echo $$ > %s; exec %s top --interval=500ms'" % (
                os.path.join(screen.directory.name, 'pid'), os.path.realpath(harness.agent())), 'Enter')
            screen.wait_for('cpu%', 'no unit')
            terminal = int(screen.state('pid'))
            os.kill(terminal, signal.SIGSTOP)
            try:
                self.fill_terminal_of(screen.pid())
                os.kill(screen.pid(), signal.SIGTSTP)
            finally:
                os.kill(terminal, signal.SIGCONT)
            screen.wait_for('Stopped')
            screen.keys('fg', 'Enter')
            screen.wait_for('cpu%', 'no unit', 'h help')
            screen.keys('q')
            screen.wait(lambda text: 'cpu%' not in text)

    def fill_terminal_of(self, pid):
        """Until it waits in write() to a terminal that reads no more."""
        end = time.monotonic() + PATIENCE_S
        n_waits = 0
        while n_waits < 20:
            self.assertLess(time.monotonic(), end)
            with open('/proc/%d/syscall' % pid, encoding='ascii') as file:
                n_waits = n_waits + 1 if re.match(r'\d+ 0x1 ', file.read()) else 0  # a call, on descriptor 1
            if not n_waits:
                os.kill(pid, signal.SIGWINCH)  # it draws all again
            time.sleep(0.02)


def began_s(clock):
    """When a table began, since midnight: its heading says when it ended, to the second, and how long it is."""
    hours, minutes, seconds, length_s = map(float, clock.groups())
    return hours * 3600 + minutes * 60 + seconds - length_s


class NumbersTest(unittest.TestCase):
    def plain(self, *words):
        return subprocess.Popen([harness.agent(), 'top', '--interval=1s', *words], stdout=subprocess.PIPE, text=True)

    def sums(self, text, cgroup, heading):
        """Of all tables: what the rate and the length of each say."""
        total = 0
        for table in text.strip().split('\n\n'):
            elapsed = float(re.search(r', ([\d.]+) s,', table).group(1))
            total += sum(number(row[heading]) * elapsed for row in rows_of(table) if cgroup.path in row['line'])
        return total

    def until_now(self, top):
        """Its tables up to the first that began after this moment."""
        now_s, text = time.time(), ''
        for line in top.stdout:
            clock = re.match(r'(\d+):(\d+):(\d+) UTC, ([\d.]+) s', line)
            if clock and 0 < (began_s(clock) - now_s) % DAY_S < DAY_S / 2:
                break
            text += line
        return text

    def tables_of(self, cgroup, script, where):
        """All that top shows of what the script does between "ready" and "done"."""
        with running(cgroup, script) as process:
            self.assertEqual(process.stdout.readline(), 'ready\n')
            with self.plain('--for=1h', where) as top:
                text = top.stdout.readline()
                process.stdin.write('\n')
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), 'done\n')
                text += self.until_now(top)
                top.terminate()
        return text

    def test_columns_are_what_was_done(self):
        with Cgroup('deeds') as cgroup:
            text = self.tables_of(cgroup, DEEDS, '--where=unit=*-test-deeds-*')
        for heading, expected in (('errs/s', 420), ('conns/s', 2 * 21), ('file-wr', 50 * 65536 / 2**20 * 1e6)):  # its M is 2^20
            self.assertAlmostEqual(self.sums(text, cgroup, heading) / expected, 1, delta=0.02, msg=heading + '\n' + text)

    def test_calls_are_those_that_were_made(self):
        with Cgroup('calls') as cgroup:
            text = self.tables_of(cgroup, CALLS % 700, '--where=syscall.name=getpriority')
        self.assertAlmostEqual(self.sums(text, cgroup, 'calls/s'), 700, delta=7, msg=text)  # three digits are shown

    def test_totals_are_older_than_their_page(self):
        with Cgroup('past') as cgroup, Screen(100, 40, '--interval=500ms', '--where=syscall.name=getpriority', '--where=unit=*-test-past-*') as screen:
            screen.wait_for('calls/s', '0 rows')
            with running(cgroup, CALLS % 700) as calls:
                calls.stdin.write('\n')
                calls.stdin.flush()
                screen.wait(lambda text: [number(row['calls/s']) for row in rows_of(text)] == [0], 'the end of the burst')
                for key in 'Enter', 'Enter':
                    screen.keys(key)
                    screen.wait(lambda text: re.search(r'getpriority +0 ', text), 'none now')
                    screen.keys('s')
                    screen.wait(lambda text: re.search(r'getpriority +700 ', text) and 'since counting began' in text, '700 in all')
                    screen.keys('s')
                    screen.wait(lambda text: re.search(r'getpriority +0 ', text), 'none now')

    def test_time_on_cpus_is_that_of_the_kernel(self):
        with Cgroup('cpu') as cgroup, self.plain('--for=1h') as top:
            text = top.stdout.readline()
            with cgroup.start([sys.executable, '-c', 'import time\nwhile time.process_time() < 1.5: pass']) as busy:
                busy.wait()
                with open(cgroup.path_of('cpu.stat')) as file:
                    expected = int(re.search(r'usage_usec (\d+)', file.read()).group(1)) / 1e6
            text += self.until_now(top)
            top.terminate()
        self.assertAlmostEqual(self.sums(text, cgroup, 'cpu%') / 100, expected, delta=0.03)

    @staticmethod
    def chooses_last(screen):
        """By the key, again if a collection that was under way has changed the rows since."""
        is_chosen = re.search(r'\033\[(0;)?7m', screen.text('-e').split('\n')[-3])  # 0 depends on the row above
        if not is_chosen:
            screen.keys('End')
        return is_chosen

    def test_a_burst_of_units_comes_and_goes(self):
        with Screen(200, 50, '--interval=1s', '--where=unit=bpfpush-test-burst-*') as screen:
            screen.wait_for('cpu%', '0 rows')
            with Cgroup('burst') as cgroup, working('live', cgroup, 500):
                screen.wait(lambda text: re.search(r'^500 rows', text, re.MULTILINE), '500 rows')
                screen.keys('Space')  # the row that is chosen goes where the next interval sorts it
                screen.wait_for('paused')
                screen.wait(lambda _: self.chooses_last(screen), 'the last row, chosen')
                screen.keys('Space')
            screen.wait(lambda text: re.search(r'^0 rows$', text, re.MULTILINE), 'none of them')
            self.assertNotIn('bpfpush-test-burst', screen.text())

    def test_mistakes_have_a_name(self):
        for words, status, message in (('--heatmap', 64, 'needs a terminal'), ('--sort=nothing', 64, 'unknown column "nothing"')):
            done = subprocess.run([harness.agent(), 'top', '--for=1s', words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, status)
            self.assertIn(message, done.stderr)
        with open('/dev/full', 'w') as full:
            done = subprocess.run([harness.agent(), 'top', '--for=1s'], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (74, 'standard output cannot be written: No space left on device\n'))

    def test_options_hold_where_nothing_has_units(self):
        with Cgroup('instead') as cgroup, running(cgroup, IDLE):
            done = subprocess.run([harness.agent(), 'top', '--for=1s', '--limit=1', 'softirq'], stdout=subprocess.PIPE, text=True, check=True)
            self.assertRegex(done.stdout, r'(?m)^  … [1-9]\d* more$')
            self.assertEqual(len(re.findall(r'(?m)^  [a-z]\w* +\d', done.stdout)), 1, done.stdout)

    def test_without_a_terminal_it_is_a_plain_table(self):
        for words in ([], ['scheduler'], ['tcpstate']):
            done = subprocess.run([harness.agent(), 'top', '--for=1s', *words], stdout=subprocess.PIPE, text=True, check=True)
            self.assertNotIn('\033', done.stdout)
            self.assertEqual(len(re.findall(r'UTC, ', done.stdout)), 1, done.stdout)
            if words == ['tcpstate']:  # which says nothing of what an overview shows
                self.assertIn('system.network.connection.count', done.stdout)


if __name__ == '__main__':
    if not shutil.which('tmux'):
        print('skipped: needs tmux')
        sys.exit(harness.SKIP_STATUS)
    harness.main()
