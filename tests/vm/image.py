# SPDX-License-Identifier: Apache-2.0
"""The file system that all guests start from: busybox, this machine's Python, bpfpush with its collectors, and
the tests and workloads of tests/bpf. It is made again when one of them has changed; a guest writes to a copy
that ends with it."""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig

HERE = os.path.dirname(os.path.realpath(__file__))
TESTS = os.path.dirname(HERE)
BUILD = os.environ.get("BUILD_DIR", os.path.join(TESTS, "..", "build"))
WORKLOADS = os.path.join(BUILD, "tests", "bpf")
IMAGE = os.path.join(BUILD, "tests", "vm", "root.ext4")
SIZE = "512M"  # of which only what is used takes room on this machine

# What this machine must have: {program: Debian's package}. COPIED are put into the image.
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "mke2fs": "e2fsprogs",
          "cpio": "cpio"}
COPIED = {"bash": "bash", "find": "findutils", "lsns": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux",
          "ss": "iproute2", "taskset": "util-linux", "unshare": "util-linux"}
COLLECTORS = "/usr/lib/bpfpush/collectors"
PYTHON_LEAVES_OUT = ("test", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "pydoc_data", "distutils", "dist-packages",
                     "site-packages", "sqlite3", "curses", "dbm", "wsgiref", "xmlrpc", "venv", "config-*", "*.a")
LINKS = {"bin": "usr/bin", "sbin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "usr/sbin": "bin"}
MOUNTED = ("proc", "sys", "dev", "tmp", "run", "result", "var/tmp", "etc", "usr/bin", "usr/lib", "usr/lib64")
TEXTS = {"etc/hosts": "127.0.0.1 localhost\n::1 localhost\n", "etc/group": "root:x:0:\nnogroup:x:65534:\n",
         "etc/passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"}


class Unavailable(Exception):
    """This machine cannot run the guest; the text says what it lacks."""


def find(program, package):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Unavailable(f"{program} is missing: apt-get install {package}")
    return path


def built():
    """{what bpfpush's build made: where the guest has it}"""
    files = {os.path.join(BUILD, "bpfpush"): "/usr/bin/bpfpush"}
    if not os.path.exists(os.path.join(BUILD, "bpfpush")):
        raise Unavailable("bpfpush is not built")
    for name in os.listdir(WORKLOADS):
        if name.startswith("workload-") and "." not in name:
            files[os.path.join(WORKLOADS, name)] = "/usr/bin/" + name
        elif name.endswith(".so"):
            files[os.path.join(WORKLOADS, name)] = "/usr/lib/" + name
    for directory, _, names in os.walk(os.path.join(BUILD, "bpf")):
        files.update({os.path.join(directory, name): f"{COLLECTORS}/{name}" for name in names if name.endswith((".bpf.o", ".conf"))})
    return files


def sources():
    """{what the tree has: where the guest has it}"""
    files = {os.path.join(HERE, "init"): "/init"}
    files.update({os.path.join(TESTS, name): f"/tests/{name}" for name in ("json_lines.py", "leftovers.py", "patience.py", "rights.py")})
    for suite in ("bpf", "vm"):
        for name in os.listdir(os.path.join(TESTS, suite)):
            if name.endswith(".py"):
                files[os.path.join(TESTS, suite, name)] = f"/tests/{suite}/{name}"
    return files


def put(root, source, target):
    target = os.path.join(root, target.lstrip("/"))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy2(source, target)
    return target


def put_libraries(root, program):
    """Its shared libraries and its loader."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for library in [word for word in listed.split() if word.startswith("/")]:
        if not os.path.exists(os.path.join(root, library.lstrip("/"))):
            put(root, library, library)


def put_program(root, source, target):
    path = put(root, source, target)
    if source.startswith(BUILD) and not target.endswith((".bpf.o", ".conf")):
        subprocess.run(["strip", "--strip-debug", path], check=True)
    put_libraries(root, source)


def put_python(root):
    library = sysconfig.get_path("stdlib")
    shutil.copytree(library, os.path.join(root, library.lstrip("/")), symlinks=True, ignore=shutil.ignore_patterns(*PYTHON_LEAVES_OUT))
    program = os.path.realpath(sys.executable)
    put_program(root, program, program)
    for directory, _, names in os.walk(os.path.join(library, "lib-dynload")):
        for name in names:
            put_libraries(root, os.path.join(directory, name))
    if program != "/usr/bin/python3":
        os.symlink(program, os.path.join(root, "usr/bin/python3"))


def put_root(root, files):
    for directory in MOUNTED:
        os.makedirs(os.path.join(root, directory))
    for name, target in LINKS.items():
        os.symlink(target, os.path.join(root, name))
    for name, text in TEXTS.items():
        with open(os.path.join(root, name), "w", encoding="utf-8") as file:
            file.write(text)
    put_python(root)
    for source, target in files.items():
        put_program(root, source, target)
    put(root, find("busybox", "busybox-static"), "/usr/bin/busybox")
    applets = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in applets:
        if not os.path.lexists(os.path.join(root, "usr/bin", applet)):
            os.symlink("busybox", os.path.join(root, "usr/bin", applet))


def is_current(files):
    newest = max(os.path.getmtime(path) for path in [*files, os.path.realpath(__file__)])
    return os.path.exists(IMAGE) and os.path.getmtime(IMAGE) > newest


def image():
    """The path of the file system."""
    files = {**built(), **sources()}
    os.makedirs(os.path.dirname(IMAGE), exist_ok=True)
    with open(IMAGE + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current(files):
            files.update({find(program, package): "/usr/bin/" + program for program, package in COPIED.items()})
            shutil.rmtree(IMAGE + ".d", ignore_errors=True)
            put_root(IMAGE + ".d", files)
            subprocess.run([find("mke2fs", "e2fsprogs"), "-q", "-F", "-t", "ext4", "-E", "root_owner=0:0", "-d", IMAGE + ".d",
                            IMAGE + ".new", SIZE], check=True, stdout=subprocess.DEVNULL)
            shutil.rmtree(IMAGE + ".d")
            os.rename(IMAGE + ".new", IMAGE)
    return IMAGE
