# SPDX-License-Identifier: Apache-2.0
"""The agent in a container: what it can name, and what it says about the rest."""
import contextlib
import os
import subprocess
import tempfile
import unittest

import harness
from harness import Cgroup, OWNER, PATIENCE_S, Points

CREATED = 'bpfpush.cgroup.created'
HEAD = 'the container in which bpfpush runs hides a part of the machine: '
CGROUP = 'not all units and containers outside of it have their names (--cgroupns=host)'
PID = ('CPU time, page faults and I/O of a process outside of it are counted when it ends, and with per_process it seems to have ended '
       '(--pid=host)')
UTS = 'host.name is its own name (--uts=host)'
# Only the part of the tree below this cgroup is mounted, and process 1 of the machine is out of sight.
CONTAINER = ['unshare', '--cgroup', '--mount', '--pid', '--fork', '--mount-proc', 'sh', '-c', r'''
    while read -r device directory type rest; do
        [ "$type" != cgroup2 ] || umount -l "$directory"
    done </proc/self/mounts
    mount -t cgroup2 none /sys/fs/cgroup && exec "$@"''', 'sh']

# Makes as many cgroups as the number says in a directory, and removes them.
MAKE = """
import os, sys
with open(sys.argv[2], "w") as file:
    file.write("0")
for i in range(int(sys.argv[1])):
    os.mkdir("%s/made-%d" % (os.path.dirname(sys.argv[2]), i))
    os.rmdir("%s/made-%d" % (os.path.dirname(sys.argv[2]), i))
"""


# Touches as many new pages as the number says.
FAULT = """
import mmap, sys
pages = mmap.mmap(-1, %d * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
pages.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, len(pages), mmap.PAGESIZE):
    pages[at] = 1
print("touched", flush=True)
sys.stdin.read()
"""
N_PAGES = 20000


def make(n, directory):
    subprocess.run(['python3', '-c', MAKE, str(n), os.path.join(directory, 'cgroup.procs')], check=True)


@contextlib.contextmanager
def counting(cgroup):
    """The agent in a container in this cgroup, until the end of the block; then the Points that it yields hold what it saw."""
    seen = Points()
    with tempfile.NamedTemporaryFile('r', prefix='bpfpush-test-', encoding='utf-8') as output:
        line = CONTAINER + [harness.agent(), 'once', '--format=json', '--output=' + output.name, '--whole-machine', 'cgroup', '--', 'cat']
        with cgroup.start(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdin.write('is it counting?\n')
            process.stdin.flush()
            process.stdout.readline()
            yield seen
            seen.stderr = process.communicate(timeout=PATIENCE_S)[1]
            seen.status = process.returncode
        seen.add(output.read())


class NamespaceTest(unittest.TestCase):
    def say(self, line):
        with Cgroup('said') as cgroup:
            done = cgroup.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False)
        return [text for text in done.stdout.split('\n') if HEAD in text]

    def test_what_each_hides_is_said_once(self):
        commands = (['check', '--config=/dev/null', 'syscalls'], ['list', '--config=/dev/null', 'cgroup'],
                    ['once', '--config=/dev/null', 'cgroup', '--', 'true'])
        kinds = {UTS: ['unshare', '--uts', '--pid', '--fork', '--mount-proc'], PID: ['unshare', '--pid', '--fork', '--mount-proc'], CGROUP: CONTAINER}
        for hidden, container in kinds.items():
            for command in commands:
                with self.subTest(hidden, command=command[0]):
                    said = self.say(container + [harness.agent(), *command])
                    self.assertEqual(len(said), 1, said)
                    self.assertIn(hidden, said[0])

    def test_a_service_with_a_host_name_of_its_own_hides_nothing(self):
        self.assertEqual(self.say(['unshare', '--uts', harness.agent(), 'check', '--config=/dev/null', 'syscalls']), [])

    def test_what_is_hidden_has_nobody_elses_name(self):
        with Cgroup('container') as container, Cgroup('old') as old, Cgroup('new') as new:
            inside = container.path_of('inside')
            os.rmdir(new.directory)
            with counting(container) as seen:
                os.mkdir(inside)
                os.mkdir(new.directory)
                for n, directory in ((3, container.directory), (4, inside), (5, old.directory), (6, new.directory)):
                    make(n, directory)
            os.rmdir(inside)
        self.assertEqual(seen.status, 0, seen.stderr)
        self.assertEqual(seen.stderr.count(CGROUP), 1, seen.stderr)
        owners = seen.by(OWNER, CREATED)
        self.assertEqual((owners['/.'], owners['/inside']), (3, 4))
        self.assertGreaterEqual(owners['unknown'], 5 + 6)
        self.assertFalse([owner for owner in owners if owner and 'bpfpush-test' in owner])

    def test_what_the_kernel_counts_in_tasks_outside_comes_when_they_end(self):
        for is_over in (False, True):
            with self.subTest(is_over=is_over), Cgroup('outside') as outside, tempfile.NamedTemporaryFile('r', prefix='bpfpush-test-') as output:
                line = ['unshare', '--pid', '--fork', '--mount-proc', harness.agent(), 'once', '--config=/dev/null', '--format=json',
                        '--output=' + output.name, '--whole-machine', 'memory', '--', 'cat']
                with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
                    print('is it counting?', file=agent.stdin, flush=True)
                    agent.stdout.readline()
                    with outside.start(['python3', '-c', FAULT % N_PAGES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as faulting:
                        faulting.stdout.readline()
                        if is_over:
                            faulting.stdin.close()
                            faulting.wait(PATIENCE_S)
                        agent.communicate(timeout=PATIENCE_S)
                        faulting.kill()
                seen = Points()
                seen.add(output.read())
            owners = seen.by(OWNER, 'process.paging.faults')
            n = sum(n for owner, n in owners.items() if owner and os.path.basename(outside.directory) in owner)
            self.assertEqual(n >= N_PAGES, is_over, n)


if __name__ == '__main__':
    harness.main()
