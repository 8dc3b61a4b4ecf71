/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile u32 counts_slots = 16;

struct slot {
	u64 state;
	u64 key;
	u64 value;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct slot);
} counts SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter)
{
	return counts_slots;
}
