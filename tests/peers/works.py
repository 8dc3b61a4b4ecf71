# SPDX-License-Identifier: Apache-2.0
"""Cgroups of a test, and work of known size in them, while an agent collects."""

import os
import subprocess
import sys

from agent import cgroup2_mount
from patience import PATIENCE_S

WORKLOAD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "workload.py")


class Works:
    """For a test class with a directory, cls.top, and a Follower of the agent's lines, cls.follower."""

    @classmethod
    def make_cgroup(cls, name, inner=""):
        """Its path as the attribute has it; inner: the end of the path, which is that of a cgroup in this one."""
        top = f"/bpfpush-{name}-{os.getpid()}"
        for path in [top, top + inner] if inner else [top]:
            os.mkdir(cgroup2_mount() + path)
            cls.addClassCleanup(os.rmdir, cgroup2_mount() + path)
        return top + inner

    @classmethod
    def work(cls, cgroup, prepare=lambda: None):
        """prepare() comes right before the work."""
        command = [sys.executable, WORKLOAD, cgroup2_mount() + cgroup, os.path.join(cls.top, "file"), "wait"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            prepare()
            process.stdin.close()
            if process.wait(PATIENCE_S):
                raise AssertionError(f"the workload ended with status {process.returncode}")

    @classmethod
    def work_anew(cls, cgroup):
        """A unit that a timer starts: each time it has a new cgroup of the same name, so soon that its series go on."""
        def renew():
            os.rmdir(cgroup2_mount() + cgroup)
            os.mkdir(cgroup2_mount() + cgroup)
        cls.work(cgroup, renew)
        cls.wait_collection()

    @classmethod
    def wait_collection(cls):
        """Until a collection that began after this call has been written."""
        cls.follower.wait_collections(3)
