# SPDX-License-Identifier: Apache-2.0
"""Events that the kernel hides from programs.

Some kernels of sandboxes run no tracing program while a thread of the init process is current, and count no miss.
That hides what softirqs do on top of such a thread: they serve timers and the sockets of all processes. ftrace sees
these events. The switch away from such a thread is hidden from ftrace too, but not the switch to it before.
"""
import contextlib
import os
import re
import subprocess
import tempfile

INIT = 1
TIMES = 5
LINE = re.compile(r'.*-(\d+) +\[\d+\] ..([.shHzZ])')


def threads_of_init():
    return {int(thread) for thread in os.listdir('/proc/%d/task' % INIT)}


class Events:
    """What ftrace sees of some tracepoints, such as 'sock/inet_sock_set_state', until it is closed."""

    def __init__(self, tracefs, events, filter_=None):
        self.directory = os.path.join(tracefs, 'instances', 'bpfpush-test-%d' % os.getpid())
        os.mkdir(self.directory)
        for event in events:
            if filter_:
                self.write(event, 'filter', filter_)
            self.write(event, 'enable', '1')

    def write(self, event, file, text):
        with open(os.path.join(self.directory, 'events', event, file), 'w') as file:
            file.write(text)

    def lines(self):
        with open(os.path.join(self.directory, 'trace')) as file:
            return [match for match in map(LINE.match, file) if match]

    def n_hidden(self):
        """How many came in a softirq on top of the init process."""
        threads = threads_of_init()
        return sum(int(line[1]) in threads and line[2] != '.' for line in self.lines())

    def close(self):
        os.rmdir(self.directory)


@contextlib.contextmanager
def tracefs():
    """Its directory; None: it cannot be mounted."""
    with tempfile.TemporaryDirectory(prefix='bpfpush-test-') as place:
        if subprocess.run(['mount', '-t', 'tracefs', 'tracefs', place], stderr=subprocess.DEVNULL).returncode:
            yield None
            return
        try:
            yield place
        finally:
            subprocess.run(['umount', place], check=True)


def run_unhidden(run, *events):
    """What run() returns, which is called again if one of these events was hidden meanwhile, at most TIMES times."""
    with tracefs() as place:
        for _ in range(TIMES if place else 0):
            with contextlib.closing(Events(place, events)) as seen:
                result = run()
                if not seen.n_hidden():
                    return result
    return run()


def run_and_count_switches(run):
    """What run() returns, and how many switches away from the init process there were at most: the switches to it."""
    with tracefs() as place:
        if not place:
            return run(), 0
        to_init = ' || '.join('next_pid == %d' % thread for thread in threads_of_init())
        with contextlib.closing(Events(place, ['sched/sched_switch'], to_init)) as seen:
            return run(), len(seen.lines())
