/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "label.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct key {
	lbl_cgroup from;
	lbl_cgroup to;
	lbl_process parent;
	lbl_process child;
	u64 path;
	u32 number[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct key);
	__type(value, u64);
} counts SEC(".maps");

struct frames {
	lbl_errno first, second, third, fourth;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct frames);
	__type(value, u64);
} errors SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter)
{
	return 0;
}
