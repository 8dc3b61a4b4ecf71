# SPDX-License-Identifier: Apache-2.0
"""A Debian with a real systemd as PID 1, in a container on this kernel; what it changes is thrown away.

    result = run_container(SCRIPT, payload=DIRECTORY)
    result.status, result.output, result.file("name")

SCRIPT runs under bash as a service once the system is up, with DIRECTORY read-only at /payload and a
place for files that outlive the container at /result; options=[...] go to systemd-nspawn, and environment={...} with them;
which=[...] are options of rootfs-build. A boot takes half a second. It waits with until_true COMMAND.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import leftovers
import rights
from patience import PATIENCE_S

HERE = os.path.dirname(os.path.realpath(__file__))

SERVICE = """\
[Unit]
Description=the test's script
After=multi-user.target
DefaultDependencies=no
[Service]
Type=exec
ExecStart=/bin/bash -c 'bash /payload.sh >/result/output 2>&1 </dev/null; echo $? >/result/status; systemctl --no-block poweroff'
"""

# What BPF needs inside: nspawn takes both away by default.
RIGHTS = ["--capability=all", "--system-call-filter=bpf perf_event_open"]

UNTIL_TRUE = f"""\
until_true() {{ # COMMAND
	local end=$((SECONDS + {PATIENCE_S}))
	until eval "$1"; do
		[ $SECONDS -lt $end ] || {{ echo "not true within {PATIENCE_S} s: $1"; exit 100; }}
		sleep 0.1
	done
}}
"""


class Unavailable(Exception):
    """This machine cannot run the container; the text says what it lacks."""


def rootfs(*which):
    """which: options of rootfs-build"""
    lacking = rights.container_refusal() or rights.bpf_refusal()
    if lacking:
        raise Unavailable(f"needs {lacking}")
    if not shutil.which("systemd-nspawn"):
        raise Unavailable("systemd-nspawn is missing: apt-get install systemd-container")
    found = subprocess.run([os.path.join(HERE, "rootfs-build"), "--cached", *which], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable(f"the container's root is not made: run {' '.join(['tests/system/rootfs-build', *which])}")
    return found.stdout.strip()


class Result:
    def __init__(self, status, output, files, console):
        self.status, self.output, self.files, self.console = status, output, files, console

    def file(self, name):
        """What the script left in /result, or an empty text."""
        return self.files.get(name, "")


class OwnCgroup:
    """A cgroup for the container where no systemd of this machine gives it one: nspawn would put its
    own two into the root."""

    HIERARCHIES = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup"]

    def __init__(self, name, below=""):
        """below: where the container is within it."""
        self.paths, self.below = [], below
        if os.path.isdir("/run/systemd/system"):
            return
        for hierarchy in self.HIERARCHIES:
            if os.path.exists(os.path.join(hierarchy, "cgroup.procs")):
                self.paths.append(os.path.join(hierarchy, name))

    def __enter__(self):
        for path in self.paths:
            leftovers.remove_cgroups(os.path.dirname(path))
            os.mkdir(path)
            os.makedirs(os.path.join(path, self.below), exist_ok=True)
        return self

    def enter_child(self):
        for path in self.paths:
            with open(os.path.join(path, self.below, "cgroup.procs"), "w", encoding="ascii") as procs:
                procs.write("0")

    def __exit__(self, *_):
        for path in self.paths:
            leftovers.remove(path)


def nspawn_command(root, work, payload, name, options):
    arguments = ["systemd-nspawn", "--quiet", "--boot", "--register=no", f"--directory={root}", f"--machine={name}",
                 "--volatile=overlay", "--console=pipe", *RIGHTS,
                 f"--bind={work}/result:/result",
                 f"--bind-ro={work}/script:/payload.sh",
                 f"--bind-ro={work}/test-script.service:/etc/systemd/system/test-script.service"]
    if not os.path.isdir("/run/systemd/system"):
        arguments.append("--keep-unit")
    if payload:
        arguments.append(f"--bind-ro={payload}:/payload")
    return arguments + [*options, "--", "systemd.wants=test-script.service"]


def wait_process(process, timeout_s):
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # nspawn passes it on as an orderly power-off
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def read_files(directory):
    files = {}
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                files[name] = file.read()
    return files


def run_container(script, payload=None, timeout_s=1800, options=(), below="", which=(), environment=None):
    root = rootfs(*which)
    with tempfile.TemporaryDirectory(prefix="bpfpush-system.") as work:
        os.mkdir(os.path.join(work, "result"))
        for name, text in (("script", UNTIL_TRUE + script), ("test-script.service", SERVICE)):
            with open(os.path.join(work, name), "w", encoding="utf-8") as file:
                file.write(text)
        name = f"bpfpush-test-{os.getpid()}"
        console = os.path.join(work, "console")
        with OwnCgroup(name, below) as cgroup, open(console, "wb") as output:
            process = subprocess.Popen(nspawn_command(root, work, payload, name, options), stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, preexec_fn=cgroup.enter_child,
                                       env=dict(os.environ, **(environment or {})))
            wait_process(process, timeout_s)
        files = read_files(os.path.join(work, "result"))
        with open(console, encoding="utf-8", errors="replace") as file:
            console_text = file.read()
    status = files.pop("status", "").strip()
    output = files.pop("output", "")
    if not status:
        raise RuntimeError(f"the container ended without its script's status (limit {timeout_s} s)\n{output}\n{console_text[-3000:]}")
    return Result(int(status), output, files, console_text)
