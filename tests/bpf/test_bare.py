# SPDX-License-Identifier: Apache-2.0
"""bpfpush where there is less than usual: no standard streams, few files, an older kernel."""
import json
import os
import resource
import subprocess
import tempfile
import unittest

import harness
import test_agent

ONCE = ['once', '--config=/dev/null', '--format=json', '--for=10ms', 'memory']


class BareTest(unittest.TestCase):
    def run_bpfpush(self, *arguments, before):
        return subprocess.run([harness.agent(), *ONCE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, preexec_fn=before)

    def test_without_streams_no_message_gets_into_a_file(self):
        for first in (2, 1, 0):
            with self.subTest(first), tempfile.NamedTemporaryFile('r') as output:
                done = self.run_bpfpush('--output=' + output.name, '--log-level=debug',
                                        before=lambda first=first: os.closerange(first, 3))
                lines = output.read().splitlines()
                self.assertEqual(done.returncode, 0)
                self.assertTrue([line for line in lines if json.loads(line)])

    def test_too_few_files_are_one_sentence(self):
        done = self.run_bpfpush(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (
            69, '', 'not started: only 100 files may be open, and bpfpush may need 256: raise the limit (ulimit -n, LimitNOFILE=)\n'))

    def test_a_low_limit_that_may_be_raised_is_raised(self):
        done = self.run_bpfpush(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 4096)))
        self.assertEqual((done.returncode, done.stderr), (0, ''))


class OldKernelTest(unittest.TestCase):
    """The kernel's types do not name the walk over cgroups, as before Linux 6.1."""
    REASON = ('the kernel refused all programs that count, such as groups_walk (iter/cgroup): load: No such process '
              '(this kernel has no walk of that name)\n')
    LEFT_OUT, REFUSED = 'collector usage is left out: ' + REASON, 'collector usage cannot run: ' + REASON
    STRICT = 'not started: hooks are missing for collector usage (strict = yes)\n'

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-test-'))
        with open('/sys/kernel/btf/vmlinux', 'rb') as file:
            types = file.read()
        self.assertEqual(types.count(b'\0bpf_iter_cgroup\0'), 1)
        with open(self.directory + '/types', 'wb') as file:
            file.write(types.replace(b'\0bpf_iter_cgroup\0', b'\0bpf_iter_hidden\0'))
        self.before = ['unshare', '-m', 'sh', '-c', 'mount --bind "$0" /sys/kernel/btf/vmlinux && exec "$@"',
                       self.directory + '/types']

    def count(self, config, *words):
        """(exit status, collectors that counted, what was said)"""
        with open(self.directory + '/conf', 'w', encoding='utf-8') as file:
            file.write(config)
        done = subprocess.run([*self.before, harness.agent(), 'once', f'--config={self.directory}/conf', '--format=json', '--for=100ms', *words],
                              capture_output=True, text=True, timeout=harness.PATIENCE_S, check=False)
        return done.returncode, {json.loads(line)['collector'] for line in done.stdout.splitlines()}, done.stderr

    def test_a_default_collector_is_left_out(self):
        for config in ('', '[agent]\nstrict = yes\n', '[collector block]\n', '[collector tcpstate]\nenabled = no\n'):
            with self.subTest(config):
                status, seen, said = self.count(config)
                self.assertEqual((status, said), (0, self.LEFT_OUT))
                self.assertLessEqual({'syscalls', 'scheduler', 'memory'}, seen)
                self.assertNotIn('usage', seen)

    def test_one_that_the_user_names_is_an_error(self):
        for config, words in (('', ['usage', 'memory']), ('', ['cgroup.tasks', 'memory']), ('[collector usage]\n', []),
                              ('[agent]\ncollectors = usage, memory\n', [])):
            with self.subTest(config, words=words):
                status, seen, said = self.count(config, *words)
                self.assertEqual((status, said), (0, self.REFUSED))
                self.assertIn('memory', seen)
        self.assertEqual(self.count('', 'usage'), (69, set(), self.REFUSED + 'not started: no collector runs, so nothing can be counted\n'))
        self.assertEqual(self.count('[agent]\nstrict = yes\n', 'usage', 'memory'), (69, set(), self.REFUSED + self.STRICT))

    def test_the_service_is_well(self):
        with test_agent.Agent({'RUNTIME_DIRECTORY': self.directory}, collectors='', before=self.before) as agent:
            agent.wait(lambda collections: collections)
            status = subprocess.run([harness.agent(), 'status'], capture_output=True, text=True, check=False,
                                    env=dict(os.environ, RUNTIME_DIRECTORY=self.directory))
            self.assertEqual((status.returncode, status.stderr), (0, ''), status.stdout)
            self.assertNotIn('cannot run', status.stdout)
            self.assertEqual(agent.messages().count(self.LEFT_OUT), 1)


if __name__ == '__main__':
    harness.main()
