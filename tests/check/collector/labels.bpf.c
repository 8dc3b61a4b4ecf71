/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "label.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct key {
	u32 number;
	u64 address;
	u8 bytes[6];
	u16 kind;
	lbl_hex digits[4];
	lbl_cgroup owner;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct key);
	__type(value, u64);
} counts SEC(".maps");

struct other_key {
	u32 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct other_key);
	__type(value, u64);
} others SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter)
{
	return 0;
}
