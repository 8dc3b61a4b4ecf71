/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct large {
	u64 numbers[2];
};

#define HASH(NAME, KEY, VALUE)                                                                     \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, 16);                                                           \
		__type(key, KEY);                                                                  \
		__type(value, VALUE);                                                              \
	} NAME SEC(".maps")

HASH(counts, u64, u64);
HASH(narrow, u32, u64);
HASH(wide, u64, struct large);
HASH(sound, u64, u8);

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	u64 key = 0;

	return !bpf_map_lookup_elem(&counts, &key) + !bpf_map_lookup_elem(&narrow, &key) +
	       !bpf_map_lookup_elem(&wide, &key) + !bpf_map_lookup_elem(&sound, &key);
}
