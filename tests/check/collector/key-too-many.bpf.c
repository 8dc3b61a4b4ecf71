/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct wide {
	u32 a0;
	u32 a1;
	u32 a2;
	u32 a3;
	u32 a4;
	u32 a5;
	u32 a6;
	u32 a7;
	u32 a8;
	u32 a9;
	u32 a10;
	u32 a11;
	u32 a12;
	u32 a13;
	u32 a14;
	u32 a15;
	u32 a16;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct wide);
	__type(value, u64);
} counts SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter)
{
	return 0;
}
