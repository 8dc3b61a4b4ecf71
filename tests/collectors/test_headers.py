# SPDX-License-Identifier: Apache-2.0
"""Each header of bpf/include compiles alone, and after a vmlinux.h of the running kernel, which bpftool writes."""
import glob
import os
import shlex
import shutil
import subprocess
import tempfile
import unittest

HEADERS = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'bpf', 'include')
TYPES = '/sys/kernel/btf/vmlinux'


class HeadersTest(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix='bpfpush-headers.'))

    def compile_all(self, first):
        """first: the lines before the header."""
        headers = sorted(glob.glob(os.path.join(HEADERS, '*.h')))
        self.assertGreater(len(headers), 5)
        for header in headers:
            with self.subTest(os.path.basename(header)):
                line = [*shlex.split(os.environ['BPF_COMPILE']), '-fsyntax-only', '-I' + self.directory, '-xc', '-']
                text = '%s\n#include "%s"\nstruct pt_regs *registers;\n' % (first, os.path.basename(header))
                done = subprocess.run(line, input=text, stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_alone(self):
        self.compile_all('#include <stdbool.h>')  # preempt.h has one variable and includes nothing

    @unittest.skipUnless(shutil.which('bpftool', path=os.environ['PATH'] + ':/usr/sbin') and os.path.exists(TYPES),
                         'needs bpftool, and a kernel with its types')
    def test_after_a_vmlinux_h(self):
        bpftool = shutil.which('bpftool', path=os.environ['PATH'] + ':/usr/sbin')
        with open(os.path.join(self.directory, 'vmlinux.h'), 'w', encoding='ascii') as file:
            subprocess.run([bpftool, 'btf', 'dump', 'file', TYPES, 'format', 'c'], stdout=file, check=True)
        self.compile_all('#include "vmlinux.h"')


if __name__ == '__main__':
    unittest.main(verbosity=2)
