#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: syscall-names.sh COMPILER...   Prints C initialisers [number] = "name" for this machine's system calls.
set -eu
echo '#include <asm/unistd.h>' | "$@" -E -dM - |
	sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$/[\2] = "\1",/p' | sort -t'[' -k2n
