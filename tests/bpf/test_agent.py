# SPDX-License-Identifier: Apache-2.0
"""The agent itself while it runs: what it leaves alone, and what it says about itself."""
import datetime
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import harness
from harness import Points

PATIENCE_S = 90


class Agent:
    """`bpfpush run` with one collector and a collection each second, exporting to a file of its own."""

    def __init__(self, environment=None, more=''):
        self.directory = tempfile.TemporaryDirectory(prefix='bpfpush-test-')
        self.output = os.path.join(self.directory.name, 'points.json')
        self.log = os.path.join(self.directory.name, 'log')
        config = os.path.join(self.directory.name, 'agent.conf')
        with open(config, 'w') as file:
            file.write('[agent]\ninterval = 1s\ncollectors = memory\n'
                       '%s[exporter file]\ntype = json\npath = %s\n' % (more, self.output))
        with open(self.log, 'w') as log:
            self.process = subprocess.Popen([harness.agent(), 'run', '--config=' + config], stderr=log,
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
        if not os.path.exists(self.output):
            return found
        with open(self.output) as file:
            for line in file:
                if not line.endswith('\n'):
                    break
                point = json.loads(line)
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
            return before, agent.wait_for_more(3), agent.messages()

    def check_order(self, collections):
        times = [collection[0]['time_ns'] for collection in collections]
        self.assertEqual(times, sorted(set(times)))
        for point in [point for collection in collections for point in collection if point['kind'] != 'gauge']:
            self.assertLess(point['start_time_ns'], point['time_ns'])

    def test_a_clock_that_is_set_back_starts_every_series_once(self):
        before, after, messages = self.step(3600, 0)
        now_ns = time.time_ns()
        new = [collection for collection in after if collection[0]['time_ns'] < now_ns]
        self.assertGreaterEqual(len(new), 2)
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


RUNS, RUN_TIME = 'bpfpush.bpf.program.runs', 'bpfpush.bpf.program.run_time'


class RunsTest(unittest.TestCase):
    """Runs of programs are known only while the kernel counts them."""

    def setUp(self):
        self.path = '/proc/sys/kernel/bpf_stats_enabled'
        with open(self.path) as file:
            self.addCleanup(self.set_kept, file.read())
        self.set_kept('0')

    def set_kept(self, digit):
        with open(self.path, 'w') as file:
            file.write(digit)

    @staticmethod
    def kernel_runs(agent):
        """What the kernel says of all programs of the agent."""
        runs, directory = {}, '/proc/%d/fdinfo' % agent.process.pid
        for name in os.listdir(directory):
            with open(os.path.join(directory, name)) as file:
                info = dict(line.split(':', 1) for line in file if ':' in line)
            if 'run_cnt' in info:
                runs[int(info['prog_id'])] = int(info['run_cnt'])
        return sum(runs.values())

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
            self.assertLessEqual(reported, self.kernel_runs(agent))


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


def parse_time(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


if __name__ == '__main__':
    harness.main()
