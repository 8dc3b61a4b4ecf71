# SPDX-License-Identifier: Apache-2.0
"""A service manager for tests: it is told what a service does (sd_notify(3)), and keeps its descriptors.

    with Manager() as manager:
        process = manager.start([harness.agent(), 'run', …])
        manager.wait_for('READY=1')
        process.kill()
        process.wait()
        process = manager.start([…])        # gets what is in manager.store

As in systemd, what a service stores outlives it, and goes to the next one that is started.
"""
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading

from harness import PATIENCE_S

# Puts the descriptors in a row from 3 on and becomes the service, which has the same process id.
LINE_UP = '''
import fcntl, os, sys
fds = [int(fd) for fd in sys.argv[1].split(',') if fd]
for i, fd in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3 + len(fds)) for fd in fds]):
    os.dup2(fd, 3 + i)
os.closerange(3 + len(fds), 4096)
os.environ['LISTEN_PID'] = str(os.getpid())
os.execvp(sys.argv[2], sys.argv[2:])
'''


class Manager:
    def __init__(self):
        self.store = {}  # name: descriptor, in the order in which they came
        self.messages = []  # each is a list of lines
        self.n_read = 0  # messages that wait_for() has gone past
        self.changed = threading.Condition()
        self.directory = tempfile.TemporaryDirectory(prefix='bpfpush-test-')
        self.path = os.path.join(self.directory.name, 'notify')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.processes = []
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self._tell(b'')
        self.thread.join()
        self.socket.close()
        self.drop_all()
        self.directory.cleanup()

    def _tell(self, message):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(message, self.path)

    def _listen(self):
        while True:
            message, fds, _, _ = socket.recv_fds(self.socket, 65536, 16)
            if not message:
                return
            lines = message.decode().rstrip('\n').split('\n')
            with self.changed:
                self._keep(lines, fds)
                self.messages.append(lines)
                self.changed.notify_all()

    def _keep(self, lines, fds):
        name = next((line[len('FDNAME='):] for line in lines if line.startswith('FDNAME=')), 'stored')
        if 'FDSTOREREMOVE=1' in lines:
            self._drop(name)
        for fd in fds:
            if 'FDSTORE=1' not in lines or name in self.store or ('FDPOLL=0' not in lines and is_broken(fd)):
                os.close(fd)
            else:
                self.store[name] = fd

    def _drop(self, name):
        if name in self.store:
            os.close(self.store.pop(name))

    def drop_all(self):
        """As at the stop of a service."""
        for name in list(self.store):
            self._drop(name)

    def start(self, command, env=None, **options):
        """Starts a service, which gets all that is in the store. Returns its subprocess.Popen."""
        environment = dict(os.environ, NOTIFY_SOCKET=self.path, **(env or {}))
        with self.changed:
            names, fds = list(self.store), list(self.store.values())
        if fds:
            environment.update(LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=':'.join(names))
        process = subprocess.Popen([sys.executable, '-c', LINE_UP, ','.join(map(str, fds))] + command, pass_fds=fds,
                                   env=environment, **options)
        self.processes.append(process)
        return process

    def drain(self):
        """Waits until all is read that has been sent."""
        mark = 'DRAINED=' + os.urandom(8).hex()
        self._tell(mark.encode())
        with self.changed:
            if not self.changed.wait_for(lambda: [mark] in self.messages, PATIENCE_S):
                raise AssertionError('the socket is not read any more')

    def wait_for(self, pattern, patience_s=PATIENCE_S):
        """The lines of the next message of which a line matches; what came before it is not looked at again.

        The wait ends early if no service runs any more."""
        def find():
            for i in range(self.n_read, len(self.messages)):
                if any(re.fullmatch(pattern, line) for line in self.messages[i]):
                    return i + 1
            return 0
        for _ in range(patience_s):
            has_ended = all(process.poll() is not None for process in self.processes)
            if has_ended:
                self.drain()
            with self.changed:
                if self.changed.wait_for(find, 0 if has_ended else 1):
                    self.n_read = find()
                    return self.messages[self.n_read - 1]
            if has_ended:
                break
        raise AssertionError('no message with %s, only %s' % (pattern, self.messages[self.n_read:]))

    def ids(self, pattern=''):
        """The kernel's id of each map, program and link in the store whose name matches: {name: id}."""
        with self.changed:
            return {name: object_id(fd) for name, fd in self.store.items() if re.search(pattern, name)}


def is_broken(fd):
    """Then systemd lets it go, unless it was told not to look (FDPOLL=0)."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def object_id(fd, pid='self'):
    """Of a map, a program or a link; None of anything else."""
    with open('/proc/%s/fdinfo/%d' % (pid, fd)) as file:
        found = re.search(r'^(map|prog|link)_id:\s*(\d+)$', file.read(), re.M)
    return found and int(found.group(2))
