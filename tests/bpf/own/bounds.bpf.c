/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/ptrace.h>
#include "hist.h"
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAGIC 0x62706675	/* no other process calls syscall() with it */

struct linear {
	u64 sum;
	u32 bucket[4];
};

struct fixed {
	u64 sum;
	u64 bucket[5];
};

struct powers {
	u64 sum;
	u32 bucket[6];
};

/* More than one histogram, and members that are none. */
struct own_value {
	u64 calls;
	struct linear linear;
	struct linear scaled;
	struct fixed fixed;
	struct powers powers;
	struct hist_value known;
	s64 last;
};

struct no_key {
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, struct no_key);
	__type(value, struct own_value);
} shared SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, struct no_key);
	__type(value, struct own_value);
} percpu SEC(".maps");

/* As ebpf_exporter keeps histograms: the number of the bucket is the last member of the key. */
struct slot {
	u32 parity;
	u32 bucket;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__type(key, struct slot);
	__type(value, u64);
} powers_by_key SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u32);
} linear_by_key SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u64);
} zero_by_key SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u64);
} floor_by_key SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, u64);
	__type(value, u64);
} fixed_by_key SEC(".maps");

static const u64 bounds[] = { 1, 2, 5, 1000 };

#define ADD(map, key, n)                                                                           \
	({                                                                                         \
		__typeof__(key) key_ = (key);                                                      \
		__typeof__(*(map).value) none_ = 0, *value_;                                       \
		bpf_map_update_elem(&map, &key_, &none_, BPF_NOEXIST);                             \
		value_ = bpf_map_lookup_elem(&map, &key_);                                         \
		if (value_)                                                                        \
			__sync_fetch_and_add(value_, n);                                           \
	})

static u32 key_of_power(u64 v)
{
	return v > 1 ? hist_log2(v - 1) + 1 : 0;
}

SEC("uprobe/libc.so.6:syscall")
int BPF_KPROBE(called, long number, u64 v, u64 magic)
{
	struct own_value *atomic, *own;
	struct no_key key = {};

	atomic = bpf_map_lookup_elem(&shared, &key);
	own = bpf_map_lookup_elem(&percpu, &key);
	if (magic != MAGIC || !atomic || !own)
		return 0;
	__sync_fetch_and_add(&atomic->calls, 1);
	atomic->last = v;
	hist_linear_add_atomic(&atomic->linear, v, 50, 50);
	hist_linear_add_atomic(&atomic->scaled, v, 50, 50);
	hist_fixed_add_atomic(&atomic->fixed, v, bounds, 4);
	hist_exp2_add_atomic(&atomic->powers, v, 3);
	hist_value_add_atomic(&atomic->known, v);
	hist_linear_add(&own->linear, v, 50, 50);
	hist_fixed_add(&own->fixed, v, bounds, 4);
	hist_exp2_add(&own->powers, v, 3);

	ADD(powers_by_key, ((struct slot){ v % 2, key_of_power(v) }), 1);
	ADD(powers_by_key, ((struct slot){ v % 2, 100 }), v);
	ADD(linear_by_key, (u32)(v / 50), 1);
	ADD(zero_by_key, (u32)(v ? key_of_power(v) + 1 : 0), 1);
	ADD(floor_by_key, (u32)(v ? hist_log2(v) : 0), 1);
	ADD(floor_by_key, 100, v);
	ADD(fixed_by_key, (v <= 10 ? 10ull : v <= 100 ? 100ull : 5000ull), 1);
	return 0;
}
