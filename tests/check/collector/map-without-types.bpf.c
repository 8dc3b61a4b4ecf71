/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__uint(key_size, 8);
	__uint(value_size, 8);
} counts SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter)
{
	return 0;
}
