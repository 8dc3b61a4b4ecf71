#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: syscall-names.sh HEADER COMPILER...
# Prints C initialisers, [number] = "name", for the system calls in HEADER: asm/unistd.h has those of
# this machine, asm/unistd_32.h those of 32-bit code (x86). Prints nothing if the header is missing.
set -eu
header=$1
shift
printf '#if __has_include(<%s>)\n#include <%s>\n#endif\n' "$header" "$header" | "$@" -E -dM - |
	sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$/[\2] = "\1",/p' | sort -t'[' -k2n
