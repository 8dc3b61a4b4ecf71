# SPDX-License-Identifier: Apache-2.0
"""ebpf_exporter's examples, compiled and imported into one directory, from which bpfpush can run them.

    directory = examples.prepare(["biolatency", ...])

The sources are compiled as they are, with the compiler and the libbpf of this machine. The sources and
configurations come from the cache (tests/judge/examples-fetch)."""

import glob
import multiprocessing.pool
import os
import platform
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
IMPORTER = os.path.join(HERE, "..", "..", "contrib", "import-ebpf-exporter")
ARCH = {"x86_64": "x86", "aarch64": "arm64"}.get(platform.machine(), "")
# Examples that make spans, and the structures of theirs that the compiler would forget.
SPANS = {"bio-trace": ["disk_span_t"], "cfs-throttling-trace": ["cfs_throttle_span_t"], "exec-trace": ["exec_span_t"],
         "sched-trace": ["sched_wakeup_span_t", "sched_migrate_span_t", "sched_switch_span_t"],
         "sock-trace": ["stitch_span_t", "sock_release_span_t", "sk_span_t", "sk_error_report_span_t"]}
RENAMED = {"cgroup": "ebpf-cgroup", "syscalls": "ebpf-syscalls"}  # as the importer does
# What a pair of tests/judge/pairs does instead, because the object has no types of its keys.
PAIRS = {"regexp"}
# Newer than the version in the cache, and done by a pair.
NEWER = {"unix-accept-latency": "unix-accept-latency"}
WRONG_ARGUMENTS = dict.fromkeys(("icmp-ip", "pci"), ["-DKPROBE_ARGUMENTS"])


def fetched():
    """Where the sources are. None: not in the cache."""
    done = subprocess.run([os.path.join(HERE, "examples-fetch"), "--cached"], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def names():
    return sorted(os.path.basename(path)[:-len(".bpf.c")] for path in glob.glob(os.path.join(fetched(), "examples", "*.bpf.c")))


def compile_example(name, target, keep=None):
    """The example's own source, unchanged, after amend.h, and before lines that keep types of records."""
    directory = os.path.join(fetched(), "examples")
    source = f'#include "{directory}/{name}.bpf.c"\n' + "".join(f"const struct {each} *keep_{each};\n" for each in (SPANS.get(name, ()) if keep is None else keep))
    words = [word for word in shlex.split(os.environ["BPF_COMPILE"]) if not word.startswith("-I")]
    include = os.path.join(fetched(), "include", ARCH)
    subprocess.run([*words, *WRONG_ARGUMENTS.get(name, []), "-I" + include, "-include", os.path.join(HERE, "amend.h"), "-I" + directory,
                    "-x", "c", "-c", "-", "-o", target], input=source, text=True, check=True)


def import_examples(directory, chosen):
    """What the importer said."""
    done = subprocess.run([IMPORTER, "--force", "-o", directory, "--objects", os.path.join(directory, "objects"),
                           *[os.path.join(fetched(), "examples", name + ".yaml") for name in chosen]], capture_output=True, text=True, check=False)
    return done


def prepare(directory, chosen):
    """Fills the directory with collectors: the chosen examples, and pairs where there is one."""
    objects = os.path.join(directory, "objects")
    os.makedirs(objects)
    own = [name for name in chosen if name not in PAIRS and name not in NEWER]
    with multiprocessing.pool.ThreadPool(os.cpu_count()) as pool:
        pool.map(lambda name: compile_example(name, os.path.join(objects, name + ".bpf.o")), own)
    done = import_examples(directory, own)
    if done.returncode:
        raise RuntimeError(done.stderr)
    for name in set(chosen) - set(own):
        prepare_pair(directory, name)
    shutil.rmtree(objects)


def prepare_pair(directory, name):
    source = os.path.join(HERE, "pairs", name)
    shutil.copy(source + ".conf", directory)
    subprocess.run([*shlex.split(os.environ["BPF_COMPILE"]), "-c", source + ".bpf.c", "-o", os.path.join(directory, name + ".bpf.o")], check=True)


def amend(directory, name, text):
    """Adds sections to an imported descriptor."""
    with open(os.path.join(directory, name + ".conf"), "a", encoding="utf-8") as file:
        file.write(text)


def missing():
    """What this machine lacks. None: nothing."""
    try:
        import yaml  # noqa: F401
    except ImportError:
        return "PyYAML (Debian: python3-yaml)"
    if not ARCH:
        return "x86-64 or arm64"
    return None if fetched() else "the examples of ebpf_exporter: tests/judge/examples-fetch"


def skip_if_missing():
    lacks = missing()
    if lacks:
        print(f"skipped: needs {lacks}")
        sys.exit(77)
