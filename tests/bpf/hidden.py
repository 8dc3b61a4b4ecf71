# SPDX-License-Identifier: Apache-2.0
"""Events that the kernel hides from programs.

Some kernels of sandboxes run no tracing program while a thread of the init process is current, and count no miss.
That hides interrupts and softirqs on top of such a thread: they serve the disks, timers and sockets of all processes.
It is all that they hide: what ftrace saw less this is how often the kernel ran the program, to the last event.
ftrace sees these events, but not the switch away from such a thread: /proc counts it.
"""
import contextlib
import glob
import os
import re
import subprocess
import tempfile

from harness import leftovers

INIT = 1
BUFFER_KB = 8192  # of each CPU
TIMES = 5
LINE = re.compile(r'.*-(\d+) +\[\d+\] ..([.shHzZ]).*?: \w+: (.*)')


def threads_of_init():
    return {int(thread) for thread in os.listdir('/proc/%d/task' % INIT)}


def write(path, text):
    with open(path, 'w') as file:
        file.write(text)


class Events:
    """What ftrace sees of some tracepoints, such as 'sock/inet_sock_set_state', until it is closed."""

    def __init__(self, tracefs, events):
        self.directory = os.path.join(tracefs, 'instances', 'bpfpush-test-%d' % os.getpid())
        os.mkdir(self.directory)
        write(self.directory + '/buffer_size_kb', str(BUFFER_KB))
        self.threads = threads_of_init()
        for event in events:
            write(os.path.join(self.directory, 'events', event, 'enable'), '1')

    def n_lost(self):
        """Ends the trace. -> how many events later ones have overwritten"""
        write(self.directory + '/tracing_on', '0')
        total = 0
        for path in glob.glob(self.directory + '/per_cpu/cpu*/stats'):
            with open(path) as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith('overrun:'))
        return total

    def lines(self):
        if self.n_lost():
            raise AssertionError('what was hidden is not known: ftrace lost %d events' % self.n_lost())
        with open(os.path.join(self.directory, 'trace')) as file:
            return [match for match in map(LINE.match, file) if match]

    def of_others(self, pid):
        """What those say that did not come while this process was current."""
        return [line[3] for line in self.lines() if int(line[1]) != pid]

    def hidden(self):
        """What those say that came in an interrupt or a softirq on top of the init process."""
        threads = self.threads | threads_of_init()
        return [line[3] for line in self.lines() if int(line[1]) in threads and line[2] != '.']

    def close(self):
        os.rmdir(self.directory)


@contextlib.contextmanager
def tracefs():
    """Its directory; None: it cannot be mounted."""
    with tempfile.TemporaryDirectory(prefix='bpfpush-test-', suffix='-%d' % os.getpid()) as place:
        if subprocess.run(['mount', '-t', 'tracefs', 'tracefs', place], stderr=subprocess.DEVNULL).returncode:
            yield None
            return
        try:
            leftovers.remove_instances(place)
            yield place
        finally:
            subprocess.run(['umount', place], check=True)


def run_unhidden(run, *events, about=''):
    """What run() returns, which is called again if one of these events was hidden or lost meanwhile, at most TIMES times.
    about: how the text of the events begins that matter."""
    with tracefs() as place:
        for _ in range(TIMES if place else 0):
            with contextlib.closing(Events(place, events)) as seen:
                result = run()
                if not seen.n_lost() and not any(text.startswith(about) for text in seen.hidden()):
                    return result
    return run()


def run_and_find_hidden(run, event, pattern):
    """What run() returns, and the matches of pattern in the texts of the events that were hidden meanwhile."""
    with tracefs() as place:
        if not place:
            return run(), []
        with contextlib.closing(Events(place, [event])) as seen:
            result = run()
            return result, [match for match in (re.search(pattern, text) for text in seen.hidden()) if match]


def run_and_count_others(run, event, pattern):
    """
    What run() returns, whose workload printed its pid, and the most events that match the pattern that others had
    meanwhile: some of the workload's own may be among them, if another process was current.
    """
    with tracefs() as place:
        if not place:
            return run(), 0
        with contextlib.closing(Events(place, [event])) as seen:
            result = run()
            return result, sum(bool(re.search(pattern, text)) for text in seen.of_others(result.expected['pid']))


def switches_of_init():
    """How many switches away from each thread of the init process there were."""
    total = 0
    for thread in threads_of_init():
        with open('/proc/%d/task/%d/status' % (INIT, thread)) as file:
            total += sum(int(line.split()[1]) for line in file if 'ctxt_switches' in line)
    return total


def run_and_count_switches(run):
    """What run() returns, and how many switches away from the init process there were."""
    before = switches_of_init()
    return run(), switches_of_init() - before
