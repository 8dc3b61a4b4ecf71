# SPDX-License-Identifier: Apache-2.0
"""bpfpush where a process has less than usual: no standard streams, few files."""
import json
import os
import resource
import subprocess
import tempfile
import unittest

import harness

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


if __name__ == '__main__':
    harness.main()
