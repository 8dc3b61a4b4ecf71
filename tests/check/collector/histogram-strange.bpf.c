/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "label.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Buckets of a width of 50, say: nothing in the type tells. */
struct linear {
	u64 sum;
	u32 bucket[10];
};

struct value {
	u64 calls;
	struct linear sizes;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct value);
} inner SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct linear);
} whole SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, val_level);
} levels SEC(".maps");

SEC("tp_btf/sys_enter")
int enter(void *ctx)
{
	return 0;
}
