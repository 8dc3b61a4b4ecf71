/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hooks that this machine lacks, and one of which an alternative will do. */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} calls SEC(".maps");

#define PROGRAM(section, name)              \
	SEC(section) int name(void *unused) \
	{                                   \
		return 0;                   \
	}

PROGRAM("uprobe//no/such/file:main", no_file)
PROGRAM("usdt//bin/true:no_provider:no_name", no_mark)
PROGRAM("uprobe", no_symbol)
PROGRAM("kprobe/no_such_function", pair__kprobe)
PROGRAM("tp_btf/sched_switch", pair__btf)
PROGRAM("uprobe//bin/sh:0x1000", at_offset)
PROGRAM("uprobe//bin:main", directory)
PROGRAM("uprobe//bin/true:__libc_start_main", imported)
