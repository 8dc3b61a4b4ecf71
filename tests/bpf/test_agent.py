# SPDX-License-Identifier: Apache-2.0
"""The agent itself while it runs: what it leaves alone, and what it says about itself."""
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

    def __init__(self, environment=None, name='agent'):
        self.directory = tempfile.TemporaryDirectory(prefix='bpfpush-test-')
        self.output = os.path.join(self.directory.name, 'points.json')
        self.log = os.path.join(self.directory.name, 'log')
        config = os.path.join(self.directory.name, name + '.conf')
        with open(config, 'w') as file:
            file.write('[agent]\ninterval = 1s\ncollectors = memory\n'
                       '[exporter file]\ntype = json\npath = %s\n' % self.output)
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


if __name__ == '__main__':
    harness.main()
