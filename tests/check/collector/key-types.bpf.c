/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

typedef u32 lbl_cgroup32;typedef u64 lbl_unknown;

struct narrow {
	lbl_cgroup32 cgroup;
	lbl_unknown thing;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct narrow);
	__type(value, u64);
} counts SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter)
{
	return 0;
}
