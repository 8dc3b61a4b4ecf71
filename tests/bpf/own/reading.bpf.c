/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls that do not exist, whose numbers say what to count: CALL | kind << 8 | value. */
#include "kernel.h"
#include "label.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CALL 0x100000

enum kind { KIND_SPLIT, KIND_SET, KIND_ENUM, N_KINDS };
enum color { COLOR_RED, COLOR_GREEN, COLOR_BLUE, COLOR_N };

struct call_key {
	u32 value;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 64);
	__type(key, struct call_key);
	__type(value, u64);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} totals SEC(".maps");

struct level_value {
	u64 sum, max, last;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct level_value);
} levels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COLOR_N);
	__type(key, enum color);
	__type(value, u64);
} colors SEC(".maps");

struct no_key {
	u32 unused;
};

struct copied_value {
	u64 start, zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, struct no_key);
	__type(value, struct copied_value);
} copied SEC(".maps");

static void count_split(u32 value)
{
	struct call_key key = { value };
	u64 *count, one = 1;
	u32 only = 0;

	count = bpf_map_lookup_elem(&calls, &key);
	if (count)
		++*count;
	else
		bpf_map_update_elem(&calls, &key, &one, BPF_NOEXIST);
	count = bpf_map_lookup_elem(&totals, &only);
	if (count)
		++*count;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	u32 kind = (number - CALL) >> 8, value = number & 255, only = 0;
	struct level_value level = { value, value, value };
	u64 *count;

	if (number < CALL || kind >= N_KINDS)
		return 0;
	if (kind == KIND_SPLIT)
		count_split(value);
	if (kind == KIND_SET) {
		struct level_value *levels_of_cpu = bpf_map_lookup_elem(&levels, &only);

		if (levels_of_cpu)
			*levels_of_cpu = level;
		else
			bpf_map_update_elem(&levels, &only, &level, BPF_NOEXIST);
	}
	if (kind == KIND_ENUM) {
		count = bpf_map_lookup_elem(&colors, &value);
		if (count)
			__sync_fetch_and_add(count, 1);
	}
	return 0;
}

struct bpf_iter_meta {
	u64 seq_num;
} __attribute__((preserve_access_index));

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	void *map;
	void *key;
	void *value;
};

u64 n_runs;

/* As a number that the kernel has counted since it booted. */
SEC("iter/bpf_map_elem")
int copy(struct bpf_iter__bpf_map_elem *ctx)
{
	struct copied_value *value = ctx->value;

	if (!value)
		return 0;
	value->start = value->zero = 1000000 + 5 * n_runs;
	n_runs++;
	return 0;
}
