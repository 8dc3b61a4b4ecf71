/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Nothing is wrong with this one: what most wrong descriptors are laid over. */
#include "hist.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum direction { DIRECTION_NONE, DIRECTION_READ, DIRECTION_WRITE };

struct call_key {
	lbl_cgroup cgroup;
	enum direction direction;
	lbl_errno error;
};

struct call_value {
	u64 calls;
	val_ns time;
	val_tally open;
	char note[8];
	struct hist_time duration;
};

const volatile bool is_wide = false;
const volatile u32 limit = 5;
const volatile u8 small = 1;
const volatile s32 offset = -1;
const volatile enum direction only = DIRECTION_NONE;
const volatile char prefix[8] = "a";
const volatile prm_syscalls chosen = {};
const volatile u32 several[2] = { 1, 2 };

TABLE(calls, struct call_key, struct call_value, 4);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} switches SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	struct call_key key = { .cgroup = 1, .direction = only };
	struct call_value *value = calls_at(&key);
	u32 at = (u32)number + limit + small + (u32)offset + prefix[0] + several[1];

	if (value && is_wide && chosen.word[0])
		table_add(&value->calls, 1);
	bpf_map_lookup_elem(&switches, &at);
	return 0;
}
