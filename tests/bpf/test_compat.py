# SPDX-License-Identifier: Apache-2.0
"""A 32-bit program, not merely a 32-bit call: its calls by their names, and its files."""
import errno
import platform
import subprocess
import unittest

import harness
from harness import ANY, Cgroup, once, workload

CALLS, NAME = 'bpfpush.syscalls', 'bpfpush.syscall.name'
FILES, OPERATION = 'bpfpush.file.operations', 'bpfpush.file.operation'


def refusal():
    """Why this kernel does not run the program, or None."""
    if platform.machine() != 'x86_64':
        return 'a kernel for x86-64'
    try:
        subprocess.run([workload('compat')], stdout=subprocess.PIPE, check=True)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return 'a kernel that runs 32-bit code'
    return None


class CompatTest(unittest.TestCase):
    def test_calls_and_files_are_exact(self):
        needed = refusal()
        if needed:
            self.skipTest('needs ' + needed)
        with Cgroup('compat') as cgroup:
            seen = once(['syscalls', 'fileio'], cgroup.command([workload('compat')]))
        mine, expected = seen.of(cgroup), seen.expected
        self.assertEqual(mine.total(CALLS, **{NAME: 'compat_getpgid', 'error.type': 'ESRCH'}), expected['getpgid'])
        self.assertEqual(mine.total(CALLS, **{NAME: 'compat_getpriority', 'error.type': None}), expected['getpriority'])
        self.assertEqual(mine.total(CALLS, **{NAME: 'compat_fsync'}), 1)
        for name in ('read', 'write'):
            self.assertEqual(mine.total(FILES, **{OPERATION: name, 'error.type': None}), expected[name])
            self.assertEqual(mine.total('bpfpush.file.io', **{'disk.io.direction': name}), expected[name] * expected[name + '_size'])
        self.assertEqual(mine.total(FILES, **{OPERATION: 'open', 'error.type': None}), 1)
        self.assertEqual(mine.total(FILES, **{OPERATION: 'open', 'error.type': ANY}), 1)
        self.assertEqual(mine.total(FILES, **{OPERATION: 'fsync', 'error.type': None}), 1)


if __name__ == '__main__':
    harness.main()
