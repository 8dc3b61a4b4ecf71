/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct odd {
	u64 count;
	double mean;
};

enum state { STATE_A, STATE_B };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct odd);
} means SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, enum state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct hist_value *);
} bytes SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter)
{
	return 0;
}
