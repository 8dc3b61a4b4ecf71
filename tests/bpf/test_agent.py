# SPDX-License-Identifier: Apache-2.0
"""The agent itself while it runs: what it leaves alone, and what it says about itself."""
import datetime
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import harness
import held
import json_lines
import patience
from harness import PATIENCE_S, Points


class Agent:
    """`bpfpush run` with a collection each second, exporting to a file of its own."""

    def __init__(self, environment=None, more='', collectors='memory', before=(), owner=0):
        self.directory = tempfile.TemporaryDirectory(prefix='bpfpush-test-')
        self.output = os.path.join(self.directory.name, 'points.json')
        self.log = os.path.join(self.directory.name, 'log')
        config = os.path.join(self.directory.name, 'agent.conf')
        with open(config, 'w') as file:
            file.write('[agent]\ninterval = 1s\ncollectors = %s\n%s[exporter file]\ntype = json\npath = %s\n'
                       % (collectors, more, self.output))
        os.chown(self.directory.name, owner, -1)
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen([*before, harness.agent(), 'run', '--config=' + config], stderr=log,
                                            env=dict(os.environ, **(environment or {})))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)
        self.directory.cleanup()

    def messages(self):
        with open(self.log) as file:
            return file.read()

    def collections(self):
        """The points of each collection so far, in the order in which they were written."""
        found = []
        for point in json_lines.points(json_lines.read(self.output)):
            if not found or found[-1][0]['time_ns'] != point['time_ns']:
                found.append(Points())
            found[-1].append(point)
        return found[:-1]  # the last one may not be whole yet

    def wait(self, condition):
        """The collections as soon as condition(collections) holds."""
        for _ in range(PATIENCE_S * 10):
            collections = self.collections()
            if condition(collections):
                return collections
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError('did not happen; the agent said:\n' + self.messages())

    def wait_for_more(self, n):
        """The next n collections."""
        before = len(self.collections())
        return self.wait(lambda collections: len(collections) >= before + n)[before:]


class MemoryTest(unittest.TestCase):
    def test_a_page_that_a_debugger_changed_stays_changed(self):
        """Breakpoints and uprobes live in private copies of pages of the program."""
        with Agent() as agent:
            agent.wait(lambda _: os.path.exists(agent.output) and os.path.getsize(agent.output))
            with open('/proc/%d/maps' % agent.process.pid) as maps:
                start = int(re.search(r'^([0-9a-f]+)-\S+ r\S+ 0+ .*/bpfpush$', maps.read(), re.M).group(1), 16)
            with open('/proc/%d/mem' % agent.process.pid, 'r+b', buffering=0) as memory:
                memory.seek(start + 12)  # padding in the ELF header
                memory.write(b'mark')
                agent.wait_for_more(4)
                memory.seek(start + 12)
                self.assertEqual(memory.read(4), b'mark')

    def test_what_only_the_start_used_leaves_memory(self):
        """A copy of a library that reads objects: nobody else has its pages."""
        libelf = re.search(r'(libelf\S+) => (\S+)', subprocess.check_output(['ldd', harness.agent()], text=True))
        with tempfile.TemporaryDirectory(dir=os.path.dirname(harness.agent())) as directory:
            if not os.major(os.stat(directory).st_dev):
                self.skipTest('the build directory is on no disk, so its files stay in memory')
            copy = os.path.join(directory, libelf.group(1))
            shutil.copy(libelf.group(2), copy)
            with open(copy, 'rb') as file:
                os.fsync(file.fileno())  # the kernel can drop only what is on the disk

            def pages_kib(smaps):
                return sum(map(int, re.findall(r'^\S+-\S+ r-.*%s\n(?:.*\n)*?Rss: +(\d+)' % re.escape(copy), smaps, re.M)))

            # `once` keeps what its start used, and is looked at by what it runs.
            look = [harness.agent(), 'once', '--config=/dev/null', 'memory', '--', 'sh', '-c', 'cat /proc/$PPID/smaps']
            used_kib = pages_kib(subprocess.check_output(look, env=dict(os.environ, LD_LIBRARY_PATH=directory), text=True))
            self.assertGreater(used_kib, 0)
            with Agent({'LD_LIBRARY_PATH': directory}) as agent:
                def is_most_gone(collections):
                    with open('/proc/%d/smaps' % agent.process.pid) as smaps:
                        return collections and pages_kib(smaps.read()) < used_kib / 2

                agent.wait(is_most_gone)


class CountTest(unittest.TestCase):
    def test_it_ends_after_so_many_collections(self):
        """And counts a probe of the command line."""
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory:
            config, output = os.path.join(directory, 'agent.conf'), os.path.join(directory, 'points')
            with open(config, 'w') as file:
                file.write('[exporter file]\ntype = json\npath = %s\n' % output)
            for count in 1, 3:
                with self.subTest(count):
                    subprocess.run([harness.agent(), 'run', '--config=' + config, '--interval=200ms', '--count=%d' % count,
                                    '--probe=count tracepoint:sched:sched_switch', 'memory'], check=True, timeout=PATIENCE_S)
                    points = list(json_lines.points(json_lines.read(output)))
                    os.unlink(output)
                    self.assertEqual(len({point['time_ns'] for point in points}), count)
                    self.assertIn('sched_switch', {point['collector'] for point in points})


HOUR_NS = 3600 * 10**9


class ClockTest(unittest.TestCase):
    def setUp(self):
        self.module = os.environ.get('BPFPUSH_CLOCK', 'build/tests/bpf/clock.so')
        with open(harness.agent(), 'rb') as file:
            if b'__asan_init' in file.read():
                self.skipTest('a library cannot be preloaded into an agent with a sanitizer')
        ahead = tempfile.NamedTemporaryFile('w', prefix='bpfpush-test-')
        self.addCleanup(ahead.close)
        self.file = ahead.name

    def set_ahead(self, seconds):
        """In one step: the agent never reads half a number."""
        with open(self.file + '.new', 'w') as file:
            file.write('%d' % seconds)
        os.rename(self.file + '.new', self.file)

    def start(self):
        return Agent({'LD_PRELOAD': self.module, 'CLOCK_AHEAD': self.file}, more='[collector memory]\nper_process = yes\n')

    def step(self, first, then):
        """The collections before and after the clock is set, and what the agent said."""
        self.set_ahead(first)
        with self.start() as agent:
            before = agent.wait(lambda collections: len(collections) >= 3)
            self.set_ahead(then)
            after = agent.wait(lambda collections: len(self.at_clock(then, collections[len(before):])) >= 3)[len(before):]
            return before, after, agent.messages()

    def at_clock(self, ahead, collections):
        """Those with a clock that is ahead by so many seconds, or about so many: one may have begun before it was set."""
        now_ns = time.time_ns() + ahead * 10**9
        return [collection for collection in collections if abs(collection[0]['time_ns'] - now_ns) < HOUR_NS // 2]

    def check_order(self, collections):
        times = [collection[0]['time_ns'] for collection in collections]
        self.assertEqual(times, sorted(set(times)))
        for point in [point for collection in collections for point in collection if point['kind'] != 'gauge']:
            self.assertLess(point['start_time_ns'], point['time_ns'])

    def test_a_clock_that_is_set_back_starts_every_series_once(self):
        before, after, messages = self.step(3600, 0)
        new = self.at_clock(0, after)
        self.check_order(new)
        first_ns = min(point['start_time_ns'] for point in new[0] if 'start_time_ns' in point)
        self.assertLess(abs(new[0][0]['time_ns'] - first_ns), HOUR_NS // 2)
        for point in [point for collection in new for point in collection if point['kind'] != 'gauge']:
            self.assertGreaterEqual(point['start_time_ns'], first_ns)
        for point in new[0]:
            if point['kind'] == 'sum':
                self.assertEqual(point['total'], point['delta'])
        self.assertEqual(messages.count('the clock was set back by 3'), 1, messages)
        self.check_creation_times(before[-1], new[-1])

    def check_creation_times(self, before, after):
        created = [{point['attributes']['process.pid']: point['attributes']['process.creation.time']
                    for point in collection if 'process.creation.time' in point['attributes']}
                   for collection in (before, after)]
        both = set(created[0]) & set(created[1])
        self.assertTrue(both)
        for pid in both:
            moved = parse_time(created[0][pid]) - parse_time(created[1][pid])
            self.assertAlmostEqual(moved, 3600, delta=2)

    def test_small_steps_back_and_any_step_forward_leave_the_series_alone(self):
        for first, then in ((1, 0), (0, 3600)):
            before, after, messages = self.step(first, then)
            self.check_order(before + after)
            self.assertNotIn('set back', messages)
            starts = {json.dumps([point['name'], point['attributes']]): point['start_time_ns']
                      for point in before[-1] if 'start_time_ns' in point}
            for point in after[0]:
                key = json.dumps([point['name'], point['attributes']])
                self.assertEqual(starts.get(key, point.get('start_time_ns')), point.get('start_time_ns'))

    def test_events_follow_the_clock(self):
        with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as directory:
            path = os.path.join(directory, 'events')
            self.set_ahead(0)
            with Agent({'LD_PRELOAD': self.module, 'CLOCK_AHEAD': self.file}, collectors='exec',
                       more='[collector exec]\nrate_limit = 0\n[exporter events]\ntype = json\nsignals = events\npath = %s\n' % path) as agent:
                agent.wait(lambda collections: collections)
                for ahead in (0, 3600, -3600):
                    self.set_ahead(ahead)
                    word = 'ahead=%d' % ahead
                    now_ns = time.time_ns() + ahead * 10**9
                    subprocess.run(['/bin/true', word], check=True)

                    def times_ns():
                        return [event['time_ns'] for event in json_lines.points(json_lines.read(path))
                                if event['attributes'].get('process.command_args') == ['/bin/true', word]]
                    agent.wait(lambda _: times_ns())
                    self.assertLess(abs(times_ns()[0] - now_ns), 60 * 10**9, word)


RUNS, RUN_TIME = 'bpfpush.bpf.program.runs', 'bpfpush.bpf.program.time'


class RunsTest(unittest.TestCase):
    """Runs of programs are known only while the kernel counts them."""

    def setUp(self):
        self.file = self.enterContext(held.statistics_locked())
        self.addCleanup(self.set_kept, self.file.read())
        self.set_kept('0')

    def set_kept(self, digit):
        self.file.seek(0)
        self.file.write(digit)
        self.file.flush()

    def test_runs_are_absent_while_the_kernel_does_not_count_them(self):
        def has_runs(collections):
            return bool(collections[-1].select(RUNS))

        with Agent() as agent:
            for collection in agent.wait(lambda collections: len(collections) >= 3):
                self.assertEqual(collection.select(RUNS) + collection.select(RUN_TIME), [])
            for _ in range(2):
                self.set_kept('1')
                agent.wait(has_runs)
                self.assertTrue(agent.wait_for_more(2)[-1].select(RUN_TIME))
                self.set_kept('0')
                seen = agent.wait(lambda collections: not has_runs(collections))
            reported = sum(point['delta'] for collection in seen for point in collection.select(RUNS))
            self.assertGreater(reported, 0)
            # Somebody else's statistics may make it count in between; a jump would count the first runs twice.
            self.assertLessEqual(reported, held.runs_of(agent.process.pid).total())


class WalkTest(unittest.TestCase):
    def test_a_walk_that_cannot_begin_leaves_gauges_as_they_were(self):
        def listening(points):
            return points.total('system.network.connection.count', **{'network.connection.state': 'listen'})

        with socket.create_server(('127.0.0.1', 0)), Agent(collectors='tcpstate') as agent:
            agent.wait(lambda seen: seen and listening(seen[-1]) >= 1)
            files = resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (3, files[1]))
            agent.wait(lambda _: 'could not be read' in agent.messages())
            for points in agent.wait_for_more(3):
                self.assertGreaterEqual(listening(points), 1)


class InstanceTest(unittest.TestCase):
    def test_a_second_agent_of_the_same_instance_is_warned_of(self):
        warning = 'another bpfpush with service.instance.id twin-%d' % os.getpid()
        same = '[resource]\nservice.instance.id = twin-%d\n' % os.getpid()
        with Agent(more=same) as first, Agent() as other:
            first.wait(lambda collections: collections)
            other.wait(lambda collections: collections)
            with Agent(more=same) as second:
                second.wait(lambda collections: collections)
                self.assertIn(warning, second.messages())
            self.assertNotIn('another bpfpush', first.messages() + other.messages())


class NotifyTest(unittest.TestCase):
    """The service manager's socket, which may be full: then the agent goes on, and says the latest when it can."""

    def setUp(self):
        directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-'))
        self.path = os.path.join(directory, 'notify')
        self.manager = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.manager.bind(self.path)
        self.manager.settimeout(PATIENCE_S)

    def fill(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            with self.assertRaises(BlockingIOError):
                while True:
                    sender.sendto(b'full', self.path)

    def next_message(self, line):
        """The next message with that line; those that filled the socket are read too."""
        while True:
            lines = self.manager.recv(4096).decode().split('\n')
            if line in lines:
                return lines

    def start(self, more='', **environment):
        return self.enterContext(Agent(dict(environment, NOTIFY_SOCKET=self.path), more=more))

    def test_a_manager_that_does_not_read_stops_neither_collections_nor_the_end(self):
        self.fill()
        agent = self.start()
        agent.wait_for_more(3)
        self.assertRegex(self.next_message('READY=1')[1], r'^STATUS=1 collector, [1-9][0-9]* series')
        self.fill()
        agent.process.send_signal(signal.SIGTERM)
        self.assertEqual(agent.process.wait(PATIENCE_S), 0)

    def test_it_is_told_of_the_start_the_work_and_the_end(self):
        agent = self.start()
        self.assertEqual(self.next_message('READY=1'), ['READY=1', 'STATUS=1 collector attached'])
        self.assertRegex(self.manager.recv(4096).decode(), r'^STATUS=1 collector, .*; file: delivered \d s ago$')
        agent.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.next_message('STOPPING=1'), ['STOPPING=1', 'STATUS=sending the last collection'])

    def wait_for_status(self, pattern):
        """The status that has the pattern."""
        while True:
            status = re.search('STATUS=(.*)', self.manager.recv(4096).decode())
            if status and re.search(pattern, status.group(1)):
                return status.group(1)

    def test_it_is_told_how_each_exporter_fares(self):
        """An exporter that cannot be opened stops neither the agent nor the other, and is opened as soon as it can be."""
        pipe = os.path.join(os.path.dirname(self.path), 'pipe')
        os.mkfifo(pipe)
        agent = self.start('[exporter pipe]\ntype = json\npath = %s\n' % pipe)
        self.wait_for_status(r'; pipe: failing for \d+ s: path: %s is a pipe that nobody reads; file: delivered \d+ s ago$' % pipe)
        self.wait_for_status('pipe: failing for [1-9]')
        self.assertEqual(agent.messages().count('exporter pipe: path'), 1)
        with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:
            self.wait_for_status(r'; pipe: delivered \d+ s ago; file: delivered \d+ s ago$')
            self.assertIn('"time_ns"', reader.read())
        self.assertIn('exporter pipe: is open now', agent.messages())

    def test_its_watchdog_hears_from_the_loop(self):
        self.start(WATCHDOG_USEC='100000')
        for _ in range(20):
            self.assertIn('WATCHDOG=1', self.next_message('WATCHDOG=1'))

    def test_a_manager_that_is_started_again_is_found(self):
        agent = self.start()
        self.next_message('READY=1')
        os.unlink(self.path)
        self.manager.close()
        agent.wait_for_more(2)
        self.manager = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.manager.bind(self.path)
        self.manager.settimeout(PATIENCE_S)
        self.assertRegex(self.manager.recv(4096).decode(), '^STATUS=')


class RightsTest(unittest.TestCase):
    """What is needed to attach is given up for good, by every thread; counting and exporting go on."""

    USER = 65534
    CAPABILITIES = '+bpf,+perfmon,+dac_read_search'  # the last one to find the program and its collectors
    ORDINARY = ['setpriv', '--reuid=%d' % USER, '--regid=%d' % USER, '--clear-groups', '--inh-caps=' + CAPABILITIES,
                '--ambient-caps=' + CAPABILITIES, '--bounding-set=-all,' + CAPABILITIES]

    def kept(self, agent):
        """The capability sets of all threads that are not empty."""
        sets = set()
        for thread in os.listdir('/proc/%d/task' % agent.process.pid):
            try:
                with open('/proc/%d/task/%s/status' % (agent.process.pid, thread)) as status:
                    sets.update(re.findall('^(Cap(?:Inh|Prm|Eff|Amb):)\\t(?!0{16}$)', status.read(), re.M))
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended meanwhile
        return sets

    def check(self, **options):
        # Nobody answers for this name, so a thread looks it up for as long as the test takes.
        more = '[exporter named]\ntype = statsd\nendpoint = name.invalid:8125\n'
        with Agent(more=more, **options) as agent:
            agent.wait(lambda _: 'started: ' in agent.messages())
            agent.wait(lambda _: not self.kept(agent))
            growth = agent.wait_for_more(3)[-1].total('process.paging.faults')
            agent.wait(lambda seen: seen[-1].total('process.paging.faults') > growth)
            self.assertNotIn('apabilit', agent.messages())

    def test_by_the_user_of_a_service(self):
        self.check(before=self.ORDINARY, owner=self.USER)

    def test_by_root(self):
        self.check()


class StatusTest(unittest.TestCase):
    """`bpfpush status`."""

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-'))

    def ask(self, *options, command='status'):
        return subprocess.run([harness.agent(), command, *options], capture_output=True, text=True, check=False,
                              env=dict(os.environ, RUNTIME_DIRECTORY=self.directory))

    def ask_json(self):
        return json.loads(self.ask('--json').stdout)

    def test_an_agent_that_does_not_run(self):
        answer = self.ask()
        self.assertEqual((answer.returncode, answer.stdout), (3, ''))
        self.assertIn('the service is not running', answer.stderr)

    def test_its_page_has_what_happens_to_the_points(self):
        nobody = '[exporter nobody]\ntype = otlp\nendpoint = http://user:secret@127.0.0.1:9\n'
        with Agent({'RUNTIME_DIRECTORY': self.directory}, more=nobody) as agent:
            agent.wait(lambda collections: collections and self.ask_json()['exporters'][0]['state'] == 'failing')
            status, page = self.ask_json(), self.ask()
            nobody, file = status['exporters']
            self.assertEqual(page.returncode, 1)
            self.assertEqual((status['pid'], status['interval_s']), (agent.process.pid, 1))
            self.assertEqual((nobody['endpoint'], nobody['delivered']), ('http://127.0.0.1:9', 0))
            self.assertIn("onnect", nobody['problem'])
            self.assertGreater(min(nobody['waiting'], nobody['queue']), 0)
            self.assertEqual((file['state'], file['endpoint'], file['waiting']), ('delivered', agent.output, 0))
            self.assertEqual(file['delivered'], file['pushed'])
            self.assertEqual(sum(each['series'] for each in status['collectors']), status['series'])
            self.assertEqual([(each['name'], each['attached'] == each['hooks'] > 0) for each in status['collectors']],
                             [('memory', True), ('cgroup', True)])
            self.assertRegex(page.stdout, r'(?m)^exporter nobody \(otlp\) to http://127.0.0.1:9\n  failing for \d+ s, \d+ KiB waiting: .+$')
        self.assertEqual(self.ask().returncode, 3)

    def test_its_page_has_what_cannot_run(self):
        with Agent({'RUNTIME_DIRECTORY': self.directory}, more='[probe none]\nhook = usdt:/bin/sh:no:mark\n') as agent:
            agent.wait(lambda collections: collections)
            self.assertEqual(self.ask_json()['problems'], 'cannot run: none (the log says why)\n')
            self.assertIn('agent.conf:5: hook: /bin/sh has no USDT no:mark\n', agent.messages())

    def test_a_receiver_that_never_answers_fails_when_its_time_is_up(self):
        with socket.create_server(('127.0.0.1', 0)) as silent:
            more = 'shutdown_timeout = 1s\n' + ''.join('[exporter %s]\ntype = otlp\nendpoint = http://127.0.0.1:%d\ntimeout = %s\n'
                           % (name, silent.getsockname()[1], timeout) for name, timeout in (('patient', '1h'), ('hasty', '2s')))
            with Agent({'RUNTIME_DIRECTORY': self.directory}, more=more) as agent:
                agent.wait(lambda _: re.search(r'\n  not delivered yet, no answer for [1-9]\d* \w+, \d+ KiB waiting\n', self.ask().stdout))
                agent.wait(lambda _: self.ask_json()['exporters'][1]['state'] == 'failing')
                patient, hasty = self.ask_json()['exporters'][:2]
            self.assertEqual((patient['name'], patient['state']), ('patient', 'waiting'))
            self.assertGreater(patient['no_answer_s'], hasty['failing_s'] + 1)
            self.assertIn('timed out', hasty['problem'])

    def end(self, agent):
        """Sends SIGTERM; returns when it has been read."""
        agent.process.send_signal(signal.SIGTERM)

        def is_read():
            with open('/proc/%d/status' % agent.process.pid, encoding='utf-8', errors='replace') as file:
                (pending,) = re.findall(r'^ShdPnd:\t(\w+)$', file.read(), re.MULTILINE)
            return not int(pending, 16) >> signal.SIGTERM - 1 & 1
        patience.wait(is_read, 'the signal is read')

    def end_twice(self, more):
        """Did both signals come at once?"""
        with Agent({'RUNTIME_DIRECTORY': self.directory}, more=more) as agent:
            agent.wait(lambda collections: collections)
            begin = time.monotonic()
            self.end(agent)
            self.end(agent)
            is_at_once = time.monotonic() - begin < 0.4
            if is_at_once:
                self.assertEqual(self.ask_json()['pid'], agent.process.pid)  # the loop goes on
            time.sleep(0.6)
            agent.process.send_signal(signal.SIGTERM)
            self.assertEqual(agent.process.wait(PATIENCE_S), 0)
            self.assertRegex(agent.messages(), r'exporter never: stopped with \d+ points unsent')
        return is_at_once

    def test_a_signal_that_comes_with_the_first_changes_nothing_and_a_later_one_ends_it(self):
        """timeout(1) signals the process, and then its group."""
        with socket.create_server(('127.0.0.1', 0)) as silent:
            more = ('shutdown_timeout = 5m\n[exporter never]\ntype = otlp\nendpoint = http://127.0.0.1:%d\ntimeout = 5m\n'
                    % silent.getsockname()[1])
            patience.wait(lambda: self.end_twice(more), 'two signals come at once')

    def test_all_is_well_where_everything_is_delivered(self):
        with Agent({'RUNTIME_DIRECTORY': self.directory}) as agent:
            agent.wait(lambda collections: collections)
            self.assertEqual((self.ask().returncode, self.ask().stderr), (0, ''))
            with Agent({'RUNTIME_DIRECTORY': self.directory}) as other:
                other.wait(lambda collections: collections)
                self.assertIn('Address already in use', other.messages())
                self.assertEqual(self.ask_json()['pid'], agent.process.pid)
            self.assertEqual(self.ask_json()['pid'], agent.process.pid)
            self.assertNotIn('reloading', agent.messages())
            for words in (['--config=/dev/null'], ['--collector-directory=/'], ['memory']):
                self.assertEqual(self.ask(*words, command='reload').returncode, 64)
            self.assertEqual(self.ask(command='reload').returncode, 0)
            agent.wait(lambda _: 'reloading the configuration' in agent.messages())


def parse_time(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


if __name__ == '__main__':
    harness.main()
