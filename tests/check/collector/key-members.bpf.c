/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct floating {
	float share;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct floating);
	__type(value, u64);
} floating_counts SEC(".maps");

struct pointing {
	void *task;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct pointing);
	__type(value, u64);
} pointing_counts SEC(".maps");

struct joined {
	union { u32 v4; u64 v6; } address;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct joined);
	__type(value, u64);
} joined_counts SEC(".maps");

struct packed_bits {
	u32 low : 4;
	u32 high : 28;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct packed_bits);
	__type(value, u64);
} packed_bits_counts SEC(".maps");

struct raw {
	u8 bytes[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct raw);
	__type(value, u64);
} raw_counts SEC(".maps");

struct wide {
	__int128 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct wide);
	__type(value, u64);
} wide_counts SEC(".maps");

struct empty {
	struct {} nothing; u32 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct empty);
	__type(value, u64);
} empty_counts SEC(".maps");

struct short_ip {
	struct { u8 byte[8]; } number;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct short_ip);
	__type(value, u64);
} short_ip_counts SEC(".maps");

struct grid {
	u32 cells[2][2];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct grid);
	__type(value, u64);
} grid_counts SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter)
{
	return 0;
}
