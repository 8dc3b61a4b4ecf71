# SPDX-License-Identifier: Apache-2.0
"""What the agent leaves alone while it collects: while one of its bpf() calls looks into a map, the kernel skips classic
tracepoints and kprobes on that CPU."""
import os
import threading
import unittest

import harness
from harness import once
from test_agent import Agent
from test_own import Pair

DEFAULT = 'syscalls, network, fileio, scheduler, memory, tcpstate, usage'
OBJ_GET_INFO_BY_FD, ITER_CREATE = 15, 33  # enum bpf_cmd of linux/bpf.h
N_COLLECTIONS = 3


class QuietTest(Pair):
    def test_a_collection_looks_into_no_map(self):
        self.install_own('commands')
        ready, hold = (os.path.join(self.directory, name) for name in ('ready', 'hold'))
        for path in (ready, hold):
            os.mkfifo(path)
        seen = []
        command = ['sh', '-c', f'echo >{ready}; cat <{hold}']
        observer = threading.Thread(target=lambda: seen.extend(once(['commands'], command, params=self.params())))
        with Agent(collectors=DEFAULT) as agent:
            agent.wait_for_more(1)  # what only the start needs is done
            observer.start()
            with open(ready):
                agent.wait_for_more(N_COLLECTIONS)
            with open(hold, 'w'):
                pass
            observer.join()
            calls = {point['attributes']['commands.command']: point['total'] for point in seen
                     if point['attributes']['commands.process'] == agent.process.pid}
        self.assertEqual(set(calls), {OBJ_GET_INFO_BY_FD, ITER_CREATE})
        self.assertGreaterEqual(calls[ITER_CREATE], N_COLLECTIONS)


if __name__ == '__main__':
    harness.main()
