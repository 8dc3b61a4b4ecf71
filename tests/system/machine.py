# SPDX-License-Identifier: Apache-2.0
"""A container as in container.py that a test drives command by command, and that keeps its disk over reboots.

    with Machine(binds=[(DIRECTORY, "/payload")]) as machine:
        machine.run("systemctl start bpfpush")          fails the test if it fails
        machine.until("bpfpush.service is active", "systemctl is-active bpfpush")
        machine.reboot()

Commands run under bash, as root, in all namespaces of the container, and in a cgroup that is not of the container's
systemd. It shares the network of this machine.
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time

from container import PATIENCE_S, OwnCgroup, RIGHTS, rootfs

# The disk is a layer in memory above the container's root, which lives as long as this mount namespace does. With
# --keep-unit, nspawn leaves with 133 where the container wants to start again.
START = """\
set -e
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
shift 2
set +e
while true; do
	"$@"
	status=$?
	[ $status = 133 ] || exit $status
done
"""


class CommandFailed(AssertionError):
    pass


class Machine:
    def __init__(self, binds=()):
        self.root, self.binds = rootfs(), binds
        self.name = f"bpfpush-test-{os.getpid()}"
        self.cgroup = OwnCgroup(self.name)
        self.process = self.work = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.work = stack.enter_context(tempfile.TemporaryDirectory(prefix="bpfpush-machine."))
            stack.enter_context(self.cgroup)
            stack.callback(self.power_off)
            disk = os.path.join(self.work, "disk")
            os.mkdir(disk)
            with open(os.path.join(self.work, "console"), "wb") as console:
                self.process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "bash", "-c", START, "start", disk, self.root,
                                                 *self.command(os.path.join(disk, "root"))], stdin=subprocess.DEVNULL, stdout=console,
                                                stderr=console, preexec_fn=self.cgroup.enter_child, start_new_session=True)
            self.wait_booted()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def command(self, root):
        words = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", f"--directory={root}", f"--machine={self.name}",
                 "--console=pipe", *RIGHTS]
        return words + [f"--bind={source}:{target}" for source, target in self.binds]

    def console(self):
        with open(os.path.join(self.work, "console"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def first_process(self):
        """The process id of the container's systemd on this machine, or None while there is none."""
        found = [self.process.pid]
        for pid in found:  # grows: all descendants
            try:
                with open(f"/proc/{pid}/status", encoding="ascii") as status:
                    fields = dict(line.split(":", 1) for line in status)
                if fields["NSpid"].split()[1:] == ["1"] and fields["Name"].strip() == "systemd":
                    return pid
                with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
                    found += map(int, children.read().split())
            except OSError:
                pass  # it has just ended
        return None

    def wait_booted(self):
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            if self.first_process() and self.run("systemctl is-system-running --wait", check=False).stdout.strip() in ("running", "degraded"):
                return
            time.sleep(0.05)
        raise RuntimeError(f"the container did not boot:\n{self.console()[-3000:]}")

    def run(self, command, check=True, timeout_s=PATIENCE_S):
        """The result of a bash command; its stdout and stderr are one text. Fails if it does, unless check is False."""
        pid = self.first_process()
        if not pid:
            raise CommandFailed(f"the container has ended:\n{self.console()[-3000:]}")
        done = subprocess.run(["nsenter", f"--target={pid}", "--all", "--", "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin", "LC_ALL=C.UTF-8",
                               "bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=timeout_s, check=False)
        if check and done.returncode:
            raise CommandFailed(f"status {done.returncode} of {command}:\n{done.stdout}")
        return done

    def out(self, command):
        return self.run(command).stdout.strip()

    def until(self, what, command, timeout_s=PATIENCE_S):
        """Waits until a command succeeds, and returns what it said."""
        deadline = time.monotonic() + timeout_s
        while True:
            done = self.run(command, check=False)
            if done.returncode == 0:
                return done.stdout.strip()
            if time.monotonic() > deadline:
                raise CommandFailed(f"not within {timeout_s} s: {what}: {command}:\n{done.stdout}")
            time.sleep(0.1)

    def outer(self, pid):
        """The id on this machine of a process of the container."""
        namespace = os.readlink(f"/proc/{self.first_process()}/ns/pid")
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/status", encoding="ascii", errors="replace") as status:
                if re.search(rf"^NSpid:.*\t{pid}$", status.read(), re.MULTILINE) and os.readlink(f"/proc/{name}/ns/pid") == namespace:
                    return int(name)
        raise ProcessLookupError(f"the container has no process {pid}")

    def reboot(self):
        before = self.first_process()
        self.run("systemctl --no-block reboot")
        deadline = time.monotonic() + PATIENCE_S
        while os.path.exists(f"/proc/{before}"):
            if time.monotonic() > deadline:
                raise CommandFailed(f"the container does not end:\n{self.console()[-3000:]}")
            time.sleep(0.05)
        self.wait_booted()

    def power_off(self):
        """Not orderly: what is in the container ends with its first process."""
        pid = self.process and self.first_process()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process:
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:  # it was between two boots
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
