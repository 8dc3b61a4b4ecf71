# SPDX-License-Identifier: Apache-2.0
"""A terminal of tmux with `bpfpush top` in it.

    with Screen(80, 24, '--interval=1s') as screen:
        screen.wait(lambda text: 'cpu%' in text)
        screen.keys('Enter')
"""
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
from patience import PATIENCE_S


def agent():
    return os.path.realpath(os.environ.get('BPFPUSH', 'build/bpfpush'))


def paused_s(text):
    """For how long the heading says that it pauses; each number is there for a second only. 0: it does not say so."""
    match = re.search(r'paused for (\d+) s', text)
    return int(match.group(1)) if match else 0


class Screen:
    """Runs top below a shell that writes its exit status to self.file('status'), and the terminal's settings before and after."""

    def __init__(self, columns, lines, *words, environment='', shell=None, terminal='screen'):
        self.socket = 'bpfpush-' + uuid.uuid4().hex[:12]
        self.directory = tempfile.TemporaryDirectory(prefix='bpfpush-top-')
        top = ' '.join(map(shlex.quote, [agent(), 'top', *words]))
        script = ('cd %s; stty -a > before; env ASAN_OPTIONS=$ASAN_OPTIONS:log_path=fault %s sh -c \'echo $$ > pid; exec "$@"\' sh %s; echo $? > status.new; stty -a > after; '
                  'mv status.new status; echo it has ended; exec sleep 1000' % (shlex.quote(self.directory.name), environment, top))
        self.tmux('start-server', ';', 'set-option', '-g', 'default-terminal', terminal, ';', 'new-session', '-d', '-x', columns, '-y', lines, shell or script)
        self.tmux('set-option', '-g', 'status', 'off')
        self.resize(columns, lines)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pid = self.file('pid')
        subprocess.run(['tmux', '-L', self.socket, 'kill-server'], stderr=subprocess.DEVNULL, check=False)
        end = time.monotonic() + 10
        # It ends with its terminal. LeakSanitizer may not, and would take a CPU for ever.
        while pid and self.runs(int(pid)) and time.monotonic() < end:
            time.sleep(0.02)
        if pid and self.runs(int(pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self.directory.cleanup()

    @staticmethod
    def runs(pid):
        try:
            with open('/proc/%d/cmdline' % pid, 'rb') as file:
                return file.read().startswith(agent().encode() + b'\0')
        except (FileNotFoundError, ProcessLookupError):  # it may end between open() and read()
            return False

    def tmux(self, *words):
        environment = dict(os.environ, LC_ALL='C.UTF-8')
        environment.pop('TMUX', None)
        return subprocess.run(['tmux', '-L', self.socket, '-f', '/dev/null', *map(str, words)], env=environment, check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def resize(self, columns, lines):
        self.tmux('resize-window', '-x', columns, '-y', lines)

    def keys(self, *names):
        self.tmux('send-keys', *names)

    def text(self, *options):
        return self.tmux('capture-pane', '-p', *options)

    def lines(self):
        return self.text().split('\n')[:-1]

    def still(self):
        """The lines when all of them are drawn: top waits for what comes next, and nothing more arrives."""
        before = None
        while True:
            with open('/proc/%d/stat' % self.pid(), encoding='utf-8', errors='replace') as file:
                is_asleep = file.read().rpartition(')')[2].split()[0] == 'S'
            lines = self.lines()
            if is_asleep and lines == before:
                return lines
            before = lines if is_asleep else None
            time.sleep(0.05)

    def state(self, name):
        """A format of tmux: alternate_on, cursor_flag."""
        return self.tmux('display-message', '-p', '#{%s}' % name).strip()

    def file(self, name):
        try:
            with open(os.path.join(self.directory.name, name), encoding='utf-8') as file:
                return file.read()
        except FileNotFoundError:
            return None

    def faults(self):
        """What a sanitizer found: on the screen it is lost."""
        return '\n'.join(self.file(name) for name in os.listdir(self.directory.name) if name.startswith('fault'))

    def pid(self):
        return int(self.file('pid'))

    def wait(self, is_there, what=None):
        """Until is_there(text of the screen); returns the text."""
        end = time.monotonic() + PATIENCE_S
        while True:
            text = self.text()
            if is_there(text):
                return text
            if 'it has ended' in text or time.monotonic() > end:  # after that, nothing comes
                raise AssertionError('%s did not come:\n%s\n%s' % (what or 'what was waited for', text, self.faults()))
            time.sleep(0.02)

    def wait_for(self, *parts):
        return self.wait(lambda text: all(part in text for part in parts), ', '.join(parts))
