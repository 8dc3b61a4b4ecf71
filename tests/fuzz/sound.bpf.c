/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A small object with one of each: table, hash, histogram, parameters, an enum in the key. For fuzz-object.c. */
#include "hist.h"
#include "table.h"

enum way { WAY_NONE, WAY_IN };

struct call_key {
	lbl_cgroup cgroup;
	enum way way;
	u32 number;
};

struct call_value {
	u64 count;
	val_ns time;
};

const volatile u32 limit = 1;

TABLE(calls, struct call_key, struct call_value, 4);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct hist_value);
} sizes SEC(".maps");

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("raw_tp/sys_enter")
int enter(void *ctx)
{
	struct call_key key = { .cgroup = 1, .way = WAY_IN };
	struct call_value *value = calls_at(&key);
	u32 at = limit;

	if (value)
		table_add(&value->count, 1);
	bpf_map_lookup_elem(&sizes, &at);
	return 0;
}
