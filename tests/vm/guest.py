# SPDX-License-Identifier: Apache-2.0
"""Another kernel, booted by QEMU without KVM, with what image.py puts together.

    result = run_guest(SCRIPT, kernel="6.1", append="preempt=full", memory_mb=256, cpus="2,maxcpus=128")
    result.status, result.output, result.file("name"), result.kernel_log

SCRIPT runs under bash as root, with bpfpush, the workloads and Python in PATH, the collectors where
bpfpush looks for them, and tests/ in /tests; files that it leaves in /result come back. The root file system is
ext4 on an NVMe disk that has paths, /tmp is in memory. A boot takes about four seconds. Times in the guest say nothing about a real
machine; counts are exact.
"""

import io
import os
import platform
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from image import HERE, NEEDED, Unavailable, find, image, put, put_program
from patience import PATIENCE_S

PORTS = ("kernel_log", "output", "archive", "status")  # as in init
# For the kernel. Warnings and worse are to be seen, of which "quiet" alone would leave out the first. Without no_timer_check, it
# refuses to boot where interrupts of its timer come late, as they do on a machine that is busy. A kernel that hangs ends
# itself, but not one whose machine is so busy that a task waits for minutes.
WORDS = "console=ttyS0 quiet loglevel=5 panic=-1 oops=panic sysctl.kernel.hung_task_panic=1 tsc=unstable no_timer_check " \
    "rcupdate.rcu_cpu_stall_timeout=300 sysctl.kernel.panic_on_rcu_stall=1 sysctl.kernel.softlockup_panic=1 " \
    "sysctl.kernel.watchdog_thresh=60 sysctl.kernel.hung_task_timeout_secs=600"
# Emulated, copies byte by byte and page tables of five levels cost a fifth of the whole time, and what keeps the kernel
# from what belongs to programs another part.
CPU = "max,-erms,-la57,-smap,-smep,-umip,-pku"
KERNEL = "6.1"  # where a test does not ask for another; tests/vm/kernel-fetch lists them
# In a kernel's log. A call trace alone is none: it also prints one where it ends a program for its memory.
COMPLAINT = r"BUG:|WARNING:|UBSAN:|Oops|cut here|[Uu]nable to handle|protection fault|rcu.*stall|rcu.*starved|blocked for more than"
# Linux 6.12, when CPUs come and go: the books of its own deadline servers, which no BPF program writes. Seen once.
KNOWN = re.compile(r".*cut here.*\n.*dl_rq->running_bw > old\n(?:.*\n)*?.*end trace.*")
LIMIT_S = (10 if os.environ.get("BPFPUSH_TEST_NIGHT") else 5) * PATIENCE_S  # for a guest; by night, one does twice as much


def kernel_path(kernel):
    if platform.machine() != "x86_64":
        raise Unavailable("the guest is an x86-64 machine")
    for program, package in NEEDED.items():
        find(program, package)
    found = subprocess.run([os.path.join(HERE, "kernel-fetch"), "--cached", kernel], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable(f"the guest's kernel is not fetched: run tests/vm/kernel-fetch {kernel}")
    return found.stdout.strip()


# QEMU before 8.1 can run an instruction that the kernel is changing at this moment, for example where it attaches a program.
HALF_PATCHED = "Oops: int3"


class Result:
    def __init__(self, work):
        texts = {}
        for port in PORTS:
            with open(os.path.join(work, port), "rb") as file:
                texts[port] = file.read()
        self.output, log = (texts[port].decode(errors="replace").replace("\r", "") for port in ("output", "kernel_log"))
        self.kernel_log = KNOWN.sub("(a known fault)", log)
        status = texts["status"].strip()
        self.status = int(status) if status else None
        self.files = {}
        if status:
            with tarfile.open(fileobj=io.BytesIO(texts["archive"])) as archive:
                self.files = {os.path.basename(member.name): archive.extractfile(member).read().decode(errors="replace")
                              for member in archive if member.isfile()}

    def file(self, name):
        """What the script left in /result, or an empty text."""
        return self.files.get(name, "")


def pack(archive, put_own):
    """The initramfs: what brings the disk's file system up, and what this guest alone has, which put_own(DIRECTORY) puts there."""
    with tempfile.TemporaryDirectory(prefix="bpfpush-vm.") as root:
        put(root, find("busybox", "busybox-static"), "/bin/busybox")
        put(root, os.path.join(HERE, "init"), "/init")
        os.makedirs(root + "/own")
        put_own(root + "/own")
        names = "\n".join(os.path.relpath(os.path.join(directory, name), root)
                          for directory, directories, files in os.walk(root) for name in directories + files)
        with open(archive, "wb") as file:
            subprocess.run(["cpio", "--create", "--format=newc", "--owner=0:0", "--quiet"], input=names.encode(), stdout=file,
                           cwd=root, check=True)


def command(work, disk, kernel, append, memory_mb, cpus, threads):
    words = ["qemu-system-x86_64", "-accel", f"tcg,thread={threads},tb-size=256", "-cpu", CPU, "-M", "q35", "-nodefaults", "-no-user-config",
             "-display", "none", "-no-reboot", "-smp", cpus, "-m", str(memory_mb), "-kernel", kernel_path(kernel),
             "-initrd", os.path.join(work, "initramfs"), "-append", f"{WORDS} {append}",
             "-drive", f"if=none,id=root,format=raw,snapshot=on,file={disk}", "-device", "nvme-subsys,id=root",
             "-device", "nvme,serial=root,subsys=root", "-device", "nvme-ns,drive=root"]
    for port in PORTS:
        words += ["-serial", f"file:{os.path.join(work, port)}"]
    return words


def boot(work, put_own, *machine):
    """What QEMU said."""
    pack(os.path.join(work, "initramfs"), put_own)
    for port in PORTS:
        with open(os.path.join(work, port), "wb"):
            pass
    with subprocess.Popen(command(work, *machine), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        try:
            return process.communicate(timeout=LIMIT_S)[0]
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            return process.communicate()[0]


def run_guest(script, kernel=KERNEL, append="", memory_mb=512, cpus="2", threads="multi", programs=None):
    """append: more of the kernel's command line; cpus: QEMU's -smp; threads: "single" runs the guest's CPUs in turn,
    which cannot leave a HALF_PATCHED instruction, and is the last resort where one was left; programs: further ones of this
    machine, {path: path in the guest}"""
    def put_own(directory):
        for source, target in (programs or {}).items():
            put_program(directory, source, target)
        with open(os.path.join(directory, "script"), "w", encoding="utf-8") as file:
            file.write(script)

    return run_disk(image(), put_own, kernel, append, memory_mb, cpus, threads)


def last_line(text):
    return (text.splitlines() or ["none"])[-1]


def run_disk(disk, put_own, *machine):
    *machine, wanted = machine
    for threads in (wanted, wanted, "single"):
        with tempfile.TemporaryDirectory(prefix="bpfpush-vm.") as work:
            said = boot(work, put_own, disk, *machine, threads)
            result = Result(work)
        if HALF_PATCHED not in result.kernel_log:
            break
    if result.status is None:
        raise RuntimeError(f"the guest ended without its script's status (limit {LIMIT_S} s); its last words: "
                           f"{last_line(result.output)}; the kernel's: {last_line(result.kernel_log)}\n"
                           f"{said}\n{result.output}\n{result.kernel_log[-30000:]}")
    return result


def main(kernel=KERNEL, **programs):
    """Runs the tests, or skips them where the guest cannot run or one of these programs, NAME="package", is missing."""
    try:
        kernel_path(kernel)
        image()
        for program, package in programs.items():
            find(program, package)
    except Unavailable as lacking:
        print(f"skipped: needs {lacking}")
        sys.exit(77)
    unittest.main(verbosity=2)
