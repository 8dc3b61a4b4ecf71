/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An object of two collectors: what begins with another's name is not a setting of this one. */
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool object_own_on, other_on;
const volatile u8 object_own_limit = 1, other_limit = 1, everybodys_limit = 1;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} calls SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	u32 at = object_own_limit + other_limit + everybodys_limit + object_own_on + other_on;

	bpf_map_lookup_elem(&calls, &at);
	return 0;
}
