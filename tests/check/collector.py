#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every pair of collector/ is wrong in some way: `bpfpush check` must say how, and exit with 78.

    collector.py DIRECTORY

NAME.conf is a descriptor and NAME.expect all that is said of it, in its order. Its object is compiled from
NAME.bpf.c, or of A-B from A.bpf.c, or made by objects[NAME] below, or that of sound.bpf.c; NAME.config, if there is one, is the
configuration, and NAME.other the descriptor of a second collector that is on. "sound" itself must pass. GOLDEN_UPDATE=1 writes NAME.expect anew, for a person to read.

Run with a binary under AddressSanitizer this finds what wrong input reads, writes and leaks, too.
"""

import os
import platform
import shlex
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from patience import PATIENCE_S

BPFPUSH = os.environ["BPFPUSH"]
EXIT_SETTINGS = 78
TRUNCATIONS = 60

directory = sys.argv[1]


def compile_object(source, to):
    subprocess.run([*shlex.split(os.environ["BPF_COMPILE"]), "-c", source, "-o", to], check=True)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def not_elf(to, sound):
    write(to, b"this is no object\n" * 100)


def empty(to, sound):
    write(to, b"")


def other_machine(to, sound):
    write(to, read("/proc/self/exe")[:4096])


def truncated(to, sound):
    data = read(sound)
    write(to, data[:len(data) // 2])


def without_btf(to, sound):
    subprocess.run([os.environ["LLVM_STRIP"], "--remove-section=.BTF", "--remove-section=.BTF.ext", "-o", to, sound],
                   check=True)


def broken_btf(to, sound):
    data = bytearray(read(sound))
    at = data.find(b"\x9f\xeb\x01\x00\x18\x00\x00\x00")  # struct btf_header: magic, version, flags, hdr_len
    data[at + 12:at + 16] = b"\xff\xff\xff\x7f"  # type_len
    write(to, data)


def lost_reference(to, sound):
    """The type of the first member of the first structure is one that is not there."""
    data = bytearray(read(sound))
    btf = data.find(b"\x9f\xeb\x01\x00\x18\x00\x00\x00")
    header_length, type_offset, type_length = (int.from_bytes(data[btf + at:btf + at + 4], "little") for at in (4, 8, 12))
    at, end = btf + header_length + type_offset, btf + header_length + type_offset + type_length
    sizes = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0), 15: (0, 12), 17: (4, 0)}
    while at < end:
        info = int.from_bytes(data[at + 4:at + 8], "little")
        kind, length = info >> 24 & 31, info & 0xffff
        if kind == 4:
            data[at + 16:at + 20] = b"\xff\xff\xff\x00"
            break
        fixed, each = sizes.get(kind, (0, 0))
        at += 12 + fixed + each * length
    write(to, data)


def escape(to, sound):
    """A member's name makes a terminal blue."""
    write(to, read(sound).replace(b"\0duration\0", b"\0\x1b[34mxyz\0"))


def escape_program(to, sound):
    """The same with the names of a program and of its section."""
    write(to, read(sound).replace(b".reltp_btf/sys_enter\0", b".reltp_btf/sys_\x1b[34m\0"))


def is_directory(to, sound):
    os.mkdir(to)


def absent(to, sound):
    pass


objects = {
    "object-not-elf": not_elf,
    "object-empty": empty,
    "object-other-machine": other_machine,
    "object-truncated": truncated,
    "object-without-btf": without_btf,
    "object-broken-btf": broken_btf,
    "object-lost-reference": lost_reference,
    "object-escape": escape,
    "object-escape-program": escape_program,
    "object-directory": is_directory,
    "object-missing": absent,
}


def file_of(name, suffix):
    path = os.path.join(directory, name + suffix)
    return path if os.path.exists(path) else None


def check(names, place, config=None):
    """-> exit status and what is said, the place taken out of it"""
    result = subprocess.run([BPFPUSH, "check", f"--config={config or '/dev/null'}", f"--collector-directory={place}",
                             *names], capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S)
    text = result.stderr.decode(errors="replace").replace(place + "/", "")
    return result.returncode, text.replace(f"{config}:", "config:") if config else text


def make_object(name, to, sound):
    if name in objects:
        objects[name](to, sound)
    else:
        source = file_of(name, ".bpf.c") or file_of(name.split("-")[0], ".bpf.c")
        if source:
            compile_object(source, to)
        else:
            os.link(sound, to)


def run_case(name, sound):
    """-> what is not as it should be, or None"""
    names = [name]
    with tempfile.TemporaryDirectory(dir=os.path.dirname(sound)) as place:
        make_object(name, f"{place}/{name}.bpf.o", sound)
        if name != "descriptor-missing":
            write(f"{place}/{name}.conf", read(file_of(name, ".conf")))
        if file_of(name, ".other"):
            write(f"{place}/other.conf", read(file_of(name, ".other")))
            names.append("other")
        status, text = check(names, place, file_of(name, ".config"))
    if name == "sound":
        return None if status == 0 else f"exit {status}\n{text}"
    text = text.replace(platform.machine() + "-linux-gnu", "MACHINE-linux-gnu")
    expect = os.path.join(directory, name + ".expect")
    if os.environ.get("GOLDEN_UPDATE"):
        write(expect, text.encode())
    expected = read(expect).decode()
    if file_of(name, ".newer") and text == read(file_of(name, ".newer")).decode():  # what a newer libbpf makes of it
        expected = text
    if status != EXIT_SETTINGS:
        return f"exit {status} instead of {EXIT_SETTINGS}\n{text}"
    if not expected or text != expected:
        return f"expected\n{expected}but it says\n{text}"
    return None


def run_truncations(sound):
    """Wherever a file was cut off: refused, never a crash."""
    data, wrong = read(sound), []
    with tempfile.TemporaryDirectory(dir=os.path.dirname(sound)) as place:
        write(f"{place}/sound.conf", read(file_of("sound", ".conf")))
        for i in range(TRUNCATIONS):
            size = i * len(data) // TRUNCATIONS
            write(f"{place}/sound.bpf.o", data[:size])
            status, text = check(["sound"], place)
            if status != EXIT_SETTINGS:
                wrong.append(f"cut to {size} of {len(data)} bytes: exit {status}\n{text}")
    return wrong


def main():
    names = sorted({name.rsplit(".", 1)[0] for name in os.listdir(directory) if name.endswith(".conf")} |
                   {"descriptor-missing"})
    n_wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        sound = f"{scratch}/sound.bpf.o"
        compile_object(os.path.join(directory, "sound.bpf.c"), sound)
        for name in names:
            wrong = run_case(name, sound)
            if wrong:
                n_wrong += 1
                print(f"{name}: {wrong}")
        for wrong in run_truncations(sound):
            n_wrong += 1
            print(wrong)
    print(f"{len(names)} pairs and {TRUNCATIONS} cut objects, {n_wrong} not as expected")
    sys.exit(n_wrong != 0)


main()
