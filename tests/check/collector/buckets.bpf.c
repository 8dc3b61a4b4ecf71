/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct linear {
	u64 sum;
	u32 bucket[10];
};

struct value {
	u64 calls;
	val_ns time;
	struct linear a, b, c, d, e, f, g, h, i, j, k, l, m;
	struct hist_value known;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct value);
} own SEC(".maps");

struct slot {
	u32 port;
	s32 level;
	u32 bucket;
	u32 unused;
};

#define FOREIGN(name)                            \
	struct {                                 \
		__uint(type, BPF_MAP_TYPE_HASH); \
		__uint(max_entries, 16);         \
		__type(key, struct slot);        \
		__type(value, u64);              \
	} name SEC(".maps")

FOREIGN(no_bounds);
FOREIGN(no_member);
FOREIGN(no_unsigned);
FOREIGN(gauge);
FOREIGN(unaligned);
FOREIGN(named);
FOREIGN(no_bucket);

struct pair {
	u64 first, second;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct slot);
	__type(value, struct pair);
} differs SEC(".maps");

TABLE(flat, struct slot, u64, 4);

SEC("tp_btf/sys_enter")
int enter(void *ctx)
{
	struct slot key = {};

	flat_at(&key);
	return 0;
}
