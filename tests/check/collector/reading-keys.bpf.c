/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum color { COLOR_RED, COLOR_GREEN };

struct call_key {
	enum color color;
	u32 number;
};

struct call_value {
	u64 count;
	s64 level;
	val_tally tally;
};

TABLE_PERCPU(calls, struct call_key, struct call_value, 4);

#define MAP(NAME, TYPE, KEY, VALUE)                                                                \
	struct {                                                                                   \
		__uint(type, TYPE);                                                                \
		__uint(max_entries, 16);                                                           \
		__type(key, KEY);                                                                  \
		__type(value, VALUE);                                                              \
	} NAME SEC(".maps")

MAP(hash, BPF_MAP_TYPE_HASH, struct call_key, u64);
MAP(split, BPF_MAP_TYPE_PERCPU_HASH, enum color, struct call_value);
MAP(twice, BPF_MAP_TYPE_PERCPU_HASH, enum color, u64);
MAP(joined, BPF_MAP_TYPE_PERCPU_HASH, enum color, struct call_value);
MAP(array, BPF_MAP_TYPE_PERCPU_ARRAY, enum color, u64);

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	struct call_key key = { .number = 1 };
	bool is_own;

	return !calls_at(&key, &is_own) + !bpf_map_lookup_elem(&hash, &key) + !bpf_map_lookup_elem(&twice, &key) + !bpf_map_lookup_elem(&split, &key) +
	       !bpf_map_lookup_elem(&joined, &key) + !bpf_map_lookup_elem(&array, &key);
}
