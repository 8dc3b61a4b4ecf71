# SPDX-License-Identifier: Apache-2.0
"""Events of calls: signals, files that are opened, processes that lack memory and names that are looked up, equal to the list of the
workload that did it."""
import errno
import json
import os
import re
import signal
import sys
import tempfile
import unittest

import harness
from harness import OWNER, Cgroup
from shown import show
from test_memory import LIMIT_BYTES, Memory2, limits

NAME = os.path.basename(sys.executable)[:15]  # of the workload's thread
NO_LIMIT = '--set=%s.rate_limit=0'  # others of this machine may do as much as they like

# Sends signals to a process outside of a cgroup, and has children that the kernel sends some, and writes all to a file:
# [signal, target, result, the process that sent it].
SIGNALS = '''
import ctypes, json, mmap, os, resource, signal, sys, tempfile, threading, time
libc = ctypes.CDLL(None)
done = []
READY, ready = os.pipe()
target = os.fork()
if not target:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, 40, 41, 42, signal.SIGTERM])
    resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0) if sys.argv[3] == 'full' else (99, 99))
    os.write(ready, b'x')
    while True:
        signal.pause()
os.read(READY, 1)
with open(sys.argv[1], 'w') as procs:
    procs.write('0')
me = os.getpid()

def note(number, to, result, sender):
    done.append([number, to, result, sender])

def send(call, number, result, to=target):
    note(number, to, result, me)
    call()

def die(end, *numbers):
    child = os.fork()
    if not child:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        end()
        os._exit(0)
    for number in numbers:
        note(number, child, 'delivered', child if number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGABRT) else None)
    os.waitpid(child, 0)

def bus():
    file = tempfile.TemporaryFile()
    file.truncate(4096)
    memory = mmap.mmap(file.fileno(), 4096)
    file.truncate(0)
    memory[0]

def pipe():
    reader, writer = os.pipe()
    os.close(reader)
    os.write(writer, b'x')

def large():
    file = tempfile.TemporaryFile()
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    os.write(file.fileno(), b'x')

def alarm():
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    signal.pause()

if sys.argv[3] == 'full':
    send(lambda: os.kill(target, 40), 40, 'without_information')
    libc.sigqueue(target, 41, ctypes.c_void_p(1))
    note(41, target, 'queue_full', me)
elif sys.argv[3] == 'everyday':
    die(alarm, signal.SIGALRM)
    note(signal.SIGCHLD, me, 'ignored', None)  # of that child
    signal.signal(signal.SIGURG, lambda *_: None)
    send(lambda: signal.pthread_kill(threading.get_ident(), signal.SIGURG), signal.SIGURG, 'delivered', me)
else:
    for i in range(int(sys.argv[3])):
        send(lambda: os.kill(target, signal.SIGUSR1), signal.SIGUSR1, 'ignored')
        os.kill(target, 0)
        send(lambda: libc.tgkill(target, target, signal.SIGUSR2), signal.SIGUSR2, 'already_pending' if i else 'delivered')
        send(lambda: libc.sigqueue(target, 40, ctypes.c_void_p(1)), 40, 'delivered')
        send(lambda: signal.pidfd_send_signal(os.pidfd_open(target), signal.SIGTERM), signal.SIGTERM,
             'already_pending' if i else 'delivered')
        die(bus, signal.SIGBUS)
        die(lambda: ctypes.string_at(8), signal.SIGSEGV)
        die(pipe, signal.SIGPIPE)
        die(large, signal.SIGXFSZ)
        die(os.abort, signal.SIGABRT)
        die(alarm)
        signal.pthread_kill(threading.get_ident(), signal.SIGURG)
with open('/proc/%d/cgroup' % target) as file:
    cgroup = [line.split(':', 2)[2].strip() for line in file if line.startswith('0:')][0]
send(lambda: os.kill(target, signal.SIGKILL), signal.SIGKILL, 'delivered')
os.waitpid(target, 0)
if sys.argv[3] == 'everyday':
    note(signal.SIGCHLD, me, 'ignored', None)
json.dump({'done': done, 'me': me, 'target': target, 'cgroup': cgroup}, open(sys.argv[2], 'w'))
'''

# Opens files in all ways N times, and writes to a file [path in hexadecimal digits, flags, descriptor, errno] of each call.
OPENS = '''
import ctypes, json, os, signal, sys, tempfile
libc = ctypes.CDLL(None, use_errno=True)
O_NOFOLLOW, O_DIRECTORY = os.O_NOFOLLOW, os.O_DIRECTORY
CREAT = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
AT_FDCWD = -100
place = os.fsencode(tempfile.mkdtemp())
directory = os.open(place, os.O_RDONLY)
os.mkfifo(place + b'/fifo')
with open(place + b'/secret', 'w') as file:
    os.fchmod(file.fileno(), 0o600)
os.chmod(place, 0o755)
signal.signal(signal.SIGALRM, lambda *_: None)
result = open(sys.argv[2], 'w')
done = []

def note(path, flags, fd):
    done.append([path.hex(), flags, fd, ctypes.get_errno() if fd < 0 else 0])
    if fd >= 0:
        os.close(fd)

def opened(path, flags, at=AT_FDCWD):
    note(path, flags, libc.openat(at, path, flags, 0o644))

def openat2(path, flags):
    how = (ctypes.c_uint64 * 3)(flags, 0o600 if flags & os.O_CREAT else 0, 0)
    note(path, flags, libc.syscall(437, AT_FDCWD, path, how, ctypes.sizeof(how)))

with open(sys.argv[1], 'w') as procs:
    procs.write('0')
for i in range(int(sys.argv[3])):
    opened(place + b'/new', os.O_CREAT | os.O_RDWR | os.O_APPEND)
    opened(b'new', os.O_RDONLY | os.O_CLOEXEC, directory)
    note(place + b'/other', CREAT, libc.creat(place + b'/other', 0o600))
    openat2(place + b'/third', os.O_CREAT | os.O_WRONLY)
    opened(place, os.O_PATH | O_DIRECTORY | O_NOFOLLOW)
    opened(place + b'/nothing', os.O_RDONLY)
    opened(place + b'/new', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    opened(b'', os.O_RDONLY)
    opened(b'/' + b'./' * 2047, os.O_RDONLY)
    opened(b'/' + b'./' * 2500, os.O_RDONLY)
    opened(place + '/a "ü"\\n'.encode(), os.O_CREAT | os.O_WRONLY)
    opened(place + b'/\\xff\\x1b[31m', os.O_CREAT | os.O_WRONLY)
    os.seteuid(65534)
    opened(place + b'/secret', os.O_RDWR)
    os.seteuid(0)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
opened(place + b'/fifo', os.O_WRONLY)
signal.setitimer(signal.ITIMER_REAL, 0)
json.dump({'done': done, 'me': os.getpid()}, result)
result.close()
for name in os.listdir(directory):
    os.unlink(name, dir_fd=directory)
os.rmdir(place)
'''

# Children of a cgroup, and of one with a limit, of which one takes memory until it is killed: writes their ids, that one's last.
TAKES = '''
import json, os, sys, time
ready, READY = os.pipe()
children = []
for i in range(int(sys.argv[4])):
    children.append(os.fork())
    if not children[-1]:
        for path in (sys.argv[1], sys.argv[3]):
            with open(path, 'w') as procs:
                procs.write('0')
        os.write(READY, b'x')
        if i + 1 < int(sys.argv[4]):
            time.sleep(9999)
        for i in range(int(sys.argv[4])):
            os.read(ready, 1)
        bytearray(os.urandom(4096) * (64 << 8))
        os._exit(0)
killed = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9 for child in children[::-1]]
json.dump({'children': children, 'are_killed': all(killed)}, open(sys.argv[2], 'w'))
'''

# Looks up names N times, where it is its own server of names, and writes [name in hexadecimal digits, error, s at least, s at most].
LOOKUPS = '''
import ctypes, fcntl, json, os, socket, struct, sys, threading, time
libc = ctypes.CDLL(None)
NEW_MOUNTS, NEW_NETWORK, PRIVATE, UP = 0x20000, 0x40000000, 0x44000, 0x8914
assert not libc.unshare(NEW_MOUNTS | NEW_NETWORK) and not libc.mount(None, b'/', None, PRIVATE, None)
result = open(sys.argv[2], 'w')
procs = open(sys.argv[1], 'w')
assert not libc.mount(b'none', b'/etc', b'tmpfs', 0, None)
for name, text in ('nsswitch.conf', 'hosts: dns'), ('resolv.conf', 'nameserver 127.0.0.1'):
    with open('/etc/' + name, 'w') as file:
        print(text, file=file)
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(server, UP, struct.pack('16sH14x', b'lo', 0x41))
server.bind(('127.0.0.1', 53))
PAUSE_S = 0.05

def serve():
    while True:
        query, peer = server.recvfrom(512)
        is_known = b'unknown' not in query
        if b'slow' in query:
            time.sleep(PAUSE_S)
        end = query.index(b'\\0', 12) + 5  # of the question
        answer = b'\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\0\\0\\4\\xc0\\0\\2\\1' if is_known else b''
        server.sendto(query[:2] + (b'\\x81\\x80' if is_known else b'\\x81\\x83') + b'\\0\\1\\0' + bytes([is_known]) + b'\\0\\0\\0\\0' +
                      query[12:end] + answer, peer)

threading.Thread(target=serve, daemon=True).start()
procs.write('0')
procs.close()
done = []

def look(call, name, error, at_least_s=0):
    begin = time.monotonic()
    call(name)
    done.append([(name or b'').hex(), error, at_least_s, time.monotonic() - begin])

def ask(name):
    try:
        socket.getaddrinfo(name, 80, socket.AF_INET)
    except socket.gaierror:
        pass

def parse(name):
    try:
        socket.getaddrinfo(name, None, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass

for i in range(int(sys.argv[3])):
    look(ask, b'known%d.example' % i, None)
    look(ask, b'slow%d.example' % i, None, PAUSE_S)
    look(ask, b'unknown%d.example' % i, 'EAI_NONAME')
    look(ask, None, None)
    look(parse, b'127.0.0.%d' % (i + 1), None)
    look(parse, b'x' * 300, 'EAI_NONAME')
    look(libc.gethostbyname, b'10.0.0.%d' % i, None)
    look(libc.gethostbyname2, b'1.2.3.4.5', 'failed')
    look(parse, '"ü\\n'.encode(), 'EAI_NONAME')
json.dump({'done': done, 'me': os.getpid()}, result)
result.close()
'''


def called(number):
    return signal.Signals(number).name if number < 32 else str(number)


def events(collector, cgroup, options, *words):
    """-> (attributes of each event, what the workload wrote)"""
    with tempfile.NamedTemporaryFile() as file:
        output, errors = show(collector, cgroup, ['--format=json', NO_LIMIT % collector, *options], words[0], cgroup.procs,
                              file.name, *words[1:])
        if errors:
            raise AssertionError(errors)
        return [json.loads(line)['attributes'] for line in output.splitlines()], json.load(file)


class SignalTest(unittest.TestCase):
    def check(self, kind, options=()):
        """-> [[signal, target, result, the process that sent it]], twice: as shown, and as the workload has it"""
        with Cgroup('signal') as cgroup:
            shown, truth = events('signal', cgroup, options, SIGNALS, kind)
            for event in shown:
                is_target = event['bpfpush.signal.target_pid'] == truth['target']
                self.assertEqual((event[OWNER], event['bpfpush.signal.target_cgroup']),
                                 (cgroup.path, truth['cgroup'] if is_target else cgroup.path))
                self.assertEqual(event['bpfpush.signal.target_name'], NAME)
                self.assertEqual(event.get('thread.name'), NAME if 'process.pid' in event else None)
        return ([[event['bpfpush.signal.name'], event['bpfpush.signal.target_pid'], event['bpfpush.signal.result'],
                  event.get('process.pid')] for event in shown],
                [[called(one[0]), *one[1:]] for one in truth['done']])

    def test_each_signal_is_there_with_sender_target_and_result(self):
        shown, truth = self.check('20')
        self.assertEqual(shown, truth)
        self.assertEqual(len(truth), 9 * 20 + 1)

    def test_a_queue_that_is_full(self):
        shown, truth = self.check('full')
        self.assertEqual(shown, truth)

    def test_everyday_signals_are_there_on_request(self):
        shown, truth = self.check('everyday', ['--set=signal.everyday=yes'])
        self.assertEqual(shown, truth)

    def test_one_signal_alone(self):
        shown, truth = self.check('3', ['--set=signal.signal=11'])
        self.assertEqual(shown, [one for one in truth if one[0] == 'SIGSEGV'])
        self.assertEqual(len(shown), 3)


class OpenTest(unittest.TestCase):
    ACCESS = ['read', 'write', 'read_write']

    def check(self, n, options=()):
        """-> [access, flags, descriptor, error] of each, twice: as shown, and as the workload has it; paths are compared"""
        with Cgroup('open') as cgroup:
            shown, truth = events('open', cgroup, options, OPENS, str(n))
        wanted = [one for one in truth['done'] if one[3] or '--set=open.only_failed=yes' not in options]
        self.assertEqual(len(shown), len(wanted))
        for event, one in zip(shown, wanted):
            path = bytes.fromhex(one[0])[:4095].decode(errors='replace')
            if path.isprintable() and '\ufffd' not in path:
                self.assertEqual(event.get('file.path', ''), path)
            else:
                self.assertRegex(event['file.path'], '^/[^\ufffd]*/(\ufffd\ufffd\\[31m|a "ü"\ufffd)~[0-9a-f]{8}$')
            self.assertEqual([event[name] for name in (OWNER, 'process.pid', 'thread.name')], [cgroup.path, truth['me'], NAME])
        return ([[event['bpfpush.file.access'], event['bpfpush.file.flags'], event['bpfpush.file.descriptor'],
                  event.get('error.type')] for event in shown],
                [['path' if flags & os.O_PATH else self.ACCESS[flags & os.O_ACCMODE], hex(flags), fd,
                  errno.errorcode[error] if error else None] for _, flags, fd, error in wanted])

    def test_each_call_is_there_with_its_result(self):
        shown, truth = self.check(80)
        self.assertEqual(shown, truth)
        self.assertEqual(len(truth), 80 * 13 + 1)
        self.assertEqual({one[3] for one in truth}, {None, 'ENOENT', 'EEXIST', 'ENAMETOOLONG', 'EACCES', 'EINTR'})

    def test_failed_calls_alone(self):
        shown, truth = self.check(3, ['--set=open.only_failed=yes'])
        self.assertEqual(shown, truth)
        self.assertEqual(len(truth), 3 * 5 + 1)


class Messages:
    """Of the kernel, from now on."""

    def __init__(self):
        self.fd = os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def __iter__(self):
        while True:
            try:
                yield os.read(self.fd, 8192).decode(errors='replace')
            except BlockingIOError:
                return
            except BrokenPipeError:  # some were overwritten
                pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self.fd)


@unittest.skipIf(limits() is None, 'needs limits of memory for cgroups')
class OomTest(unittest.TestCase):
    def take(self, n, collector='oom', is_group=False):
        """-> (the cgroup, that with the limit, attributes of each event, what is said, what the workload wrote)"""
        with Cgroup('oom') as cgroup, limits()(cgroup) as memory, tempfile.NamedTemporaryFile() as file:
            if is_group:
                with open(memory.directory + '/memory.oom.group', 'w') as group:
                    group.write('1')
            output, errors = show(collector, cgroup, ['--format=json', NO_LIMIT % collector], TAKES, cgroup.procs, file.name,
                                  memory.directory + '/cgroup.procs', str(n))
            lines = [json.loads(line) for line in output.splitlines()]
            self.assertTrue(all(line['severity'] == 'ERROR' for line in lines) or collector != 'oom')
            truth = json.load(file)
            self.assertTrue(truth['are_killed'])
            return cgroup, memory, [line['attributes'] for line in lines], errors, truth['children']

    def check_limit(self, event, cgroup, memory, errors):
        """Where functions cannot be hooked, it is not known."""
        is_known = 'collector oom is partial' not in errors
        has_path = is_known and memory.directory == cgroup.directory
        self.assertEqual([event.get('bpfpush.oom.limit'), event['bpfpush.oom.limit_bytes'], event.get('bpfpush.oom.limit_cgroup')],
                         ['cgroup' if is_known else None, LIMIT_BYTES if is_known else 0, cgroup.path if has_path else None])

    def test_a_victim_with_the_limit_and_its_memory_as_the_kernel_says(self):
        with Messages() as messages:
            cgroup, memory, shown, errors, [child] = self.take(1)
            killed = re.compile(r'.*Killed process %d \(.*anon-rss:(\d+)kB, file-rss:(\d+)kB, shmem-rss:(\d+)kB' % child)
            said = [found for found in map(killed.match, messages) if found]
        self.assertEqual(len(shown), 1)
        self.assertEqual([shown[0][name] for name in ('process.pid', 'thread.name', OWNER)], [child, NAME, cgroup.path])
        self.assertEqual([shown[0][name] for name in ('bpfpush.oom.trigger_pid', 'bpfpush.oom.trigger_name')], [child, NAME])
        self.check_limit(shown[0], cgroup, memory, errors)
        resident = sum(map(int, said[0].groups())) << 10
        # For each of the three, the kernel may leave out, or not, what a CPU has not added up yet.
        margin = 3 * max(32, 2 * os.cpu_count()) * os.cpu_count() * os.sysconf('SC_PAGE_SIZE')
        self.assertAlmostEqual(shown[0]['bpfpush.oom.resident_bytes'], resident, delta=margin)
        self.assertGreater(resident, LIMIT_BYTES // 2)

    @unittest.skipIf(limits() is not Memory2, 'needs cgroup2 with memory')
    def test_each_victim_of_a_group(self):
        cgroup, memory, shown, errors, children = self.take(4, is_group=True)
        self.assertEqual(sorted(event['process.pid'] for event in shown), sorted(children))
        for event in shown:
            self.assertEqual((event[OWNER], event['bpfpush.oom.trigger_pid']), (cgroup.path, children[-1]))
            self.check_limit(event, cgroup, memory, errors)

    def test_its_signal(self):
        _, _, shown, errors, [child] = self.take(1, 'signal')
        self.assertEqual(errors, '')
        self.assertEqual([[event.get('process.pid'), event['bpfpush.signal.target_pid'], event['bpfpush.signal.name']]
                          for event in shown], [[None, child, 'SIGKILL']])


class LookupTest(unittest.TestCase):
    def look(self, n, options=()):
        with Cgroup('lookup') as cgroup:
            shown, truth = events('lookup', cgroup, options, LOOKUPS, str(n))
            for event in shown:
                self.assertEqual([event[name] for name in (OWNER, 'process.pid', 'thread.name')], [cgroup.path, truth['me'], NAME])
        return shown, truth['done']

    def test_each_lookup_is_there_with_error_and_duration(self):
        shown, truth = self.look(20)
        self.assertEqual(len(shown), 20 * 9)
        for event, (name, error, at_least_s, at_most_s) in zip(shown, truth, strict=True):
            name = bytes.fromhex(name)[:255].decode()
            if name.isprintable():
                self.assertEqual(event.get('dns.question.name', ''), name)
            else:
                self.assertRegex(event.get('dns.question.name', ''), '^"ü\ufffd~[0-9a-f]{8}$')
            self.assertEqual(event.get('error.type'), error)
            self.assertTrue(at_least_s < event['bpfpush.dns.duration'] < at_most_s, (event, at_least_s, at_most_s))

    def test_slow_ones_alone(self):
        shown, truth = self.look(3, ['--set=lookup.min_duration=40ms'])
        names = {event.get('dns.question.name', '') for event in shown}
        self.assertGreaterEqual(names, {'slow%d.example' % i for i in range(3)})
        # On a machine that has much to do, others may be slow, too.
        self.assertLessEqual(names, {bytes.fromhex(one[0])[:255].decode() for one in truth if one[3] > 0.04})
        self.assertGreaterEqual(min(event['bpfpush.dns.duration'] for event in shown), 0.04)


if __name__ == '__main__':
    harness.main()
