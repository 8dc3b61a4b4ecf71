# SPDX-License-Identifier: Apache-2.0
"""What `bpfpush events` shows of a cgroup while a workload runs."""
import subprocess
import sys

from harness import PATIENCE_S, agent


def show(collector, cgroup, options, *words):
    """-> (stdout, stderr) while the words run, of that cgroup"""
    done = subprocess.run([agent(), 'events', '--config=/dev/null', collector, '--where=unit=' + cgroup.path, *options,
                           '--whole-machine', '--', sys.executable, '-c', *words],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=True)
    return done.stdout.decode(), done.stderr.decode()
