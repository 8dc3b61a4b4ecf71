# SPDX-License-Identifier: Apache-2.0
"""Collectors as if the kernel skipped some of their programs, or some runs of them."""
import os
import re
import shutil

from test_own import compile_object

BPF = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'bpf')


def install(place, names, without):
    """The descriptors of these collectors; these programs are never loaded."""
    section = r'(?m)^\[program (?:%s)\]\n(?:.+\n)*' % '|'.join(without)
    backup = r'(?m)^backup = (?:%s)\n' % '|'.join(without)
    for name in names:
        with open(os.path.join(BPF, name + '.conf'), encoding='utf-8') as file:
            text = re.sub(backup, '', re.sub(section, '', file.read()))
        with open(os.path.join(place, name + '.conf'), 'w', encoding='utf-8') as file:
            file.write(text)


def install_task(place, names, without):
    install(place, names, without)
    shutil.copy(os.path.join(os.path.dirname(os.environ.get('BPFPUSH', 'build/bpfpush')), 'bpf', 'task.bpf.o'), place)


def install_socket(place, states, without=('state_change_again',)):
    """Its program is skipped when a socket changes to one of these states."""
    install(place, ['network', 'tcpstate'], without)
    with open(os.path.join(BPF, 'socket.bpf.c'), encoding='utf-8') as file:
        before, condition, after = file.read().partition('|| from == to')
    assert condition
    source = os.path.join(place, 'socket.bpf.c')
    with open(source, 'w', encoding='utf-8') as file:
        file.write(before + condition + ''.join(' || to == STATE_' + state for state in states) + after)
    compile_object(source, os.path.join(place, 'socket.bpf.o'), '-I' + BPF)
