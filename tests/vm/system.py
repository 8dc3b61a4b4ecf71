# SPDX-License-Identifier: Apache-2.0
"""The Debian of tests/system under another kernel: systemd is its first process.

    result = run_system(SCRIPT, kernel="6.12", {path on this machine: path there}, "trixie")

SCRIPT runs under bash as a service once the system is up; files that it leaves in /result come back. The result is that of
guest.py. Without a suite, it is this machine's Debian. A boot takes some 15 seconds.
"""

import os
import subprocess

from guest import run_disk
from image import BUILD, TESTS, Unavailable, find, put

ROOTFS_BUILD = os.path.join(TESTS, "system", "rootfs-build")
SIZE = "700M"  # of which only what is used takes room on this machine

INIT = "#!/bin/sh\nexec /lib/systemd/systemd\n"
SERVICE = """\
[Unit]
After=multi-user.target
DefaultDependencies=no
[Service]
Type=exec
ExecStart=/bin/bash /run-script
"""
RUN = """\
for port in 1 2 3; do stty -F /dev/ttyS$port raw -echo; done
mkdir -p /result
bash /script >/dev/ttyS1 2>&1 </dev/null
status=$?
tar -cz -C /result . | cat >/dev/ttyS2
echo $status >/dev/ttyS3
systemctl poweroff --force --force
"""
# Devices of a machine that is not this one.
MASKED = ("getty@tty1.service", "serial-getty@ttyS0.service", "systemd-remount-fs.service", "e2scrub_reap.service")


def disk(*suite):
    """The path of a file system with that Debian."""
    found = subprocess.run([ROOTFS_BUILD, "--cached", *suite], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable(f"the Debian of tests/system: run {' '.join(['tests/system/rootfs-build', *suite])}")
    root = found.stdout.strip()
    path = os.path.join(BUILD, "tests", "vm", os.path.basename(root) + ".ext4")
    if not os.path.exists(path):
        new = f"{path}.{os.getpid()}"
        subprocess.run([find("mke2fs", "e2fsprogs"), "-q", "-F", "-t", "ext4", "-E", "root_owner=0:0", "-d", root, new, SIZE], check=True,
                       stdout=subprocess.DEVNULL)
        os.rename(new, path)
    return path


def write(directory, name, text):
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def run_system(script, kernel, files, *suite, memory_mb=768):
    def put_own(directory):
        for source, target in files.items():
            put(directory, source, target)
        write(directory, "init", INIT)
        write(directory, "script", script)
        write(directory, "run-script", RUN)
        write(directory, "etc/systemd/system/test-script.service", SERVICE)

    masks = " ".join(f"systemd.mask={unit}" for unit in MASKED)
    return run_disk(disk(*suite), put_own, kernel, f"systemd.wants=test-script.service {masks}", memory_mb, "2", "single")
