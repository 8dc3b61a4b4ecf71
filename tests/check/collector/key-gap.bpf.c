/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keys with gaps inside and at the end; only those of flat tables matter. */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct key {
	u16 kind;
	u8 way;
	u32 port;
	u64 number;
	u32 last;
};

struct whole_key {
	u32 kind;
	u32 unused;
};

TABLE(calls, struct key, u64, 4);
TABLE(whole, struct whole_key, u64, 4);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct key);
	__type(value, u64);
} hashed SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	struct whole_key whole_key = {};
	struct key key = {};

	calls_at(&key);
	whole_at(&whole_key);
	bpf_map_lookup_elem(&hashed, &key);
	return 0;
}
