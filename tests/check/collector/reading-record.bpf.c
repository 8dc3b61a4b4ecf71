/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel.h"
#include "label.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct call {
	u64 number;
	u32 part;
};

struct pointer {
	void *pointer;
};

struct call *call;
struct pointer *pointer;

#define RING(NAME)                                                                                 \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_RINGBUF);                                                \
		__uint(max_entries, 4096);                                                         \
	} NAME SEC(".maps")

RING(silent);
RING(unknown);
RING(unreadable);
RING(members);
RING(kinds);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} hash SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	u32 key = 0;

	bpf_ringbuf_output(&silent, &number, 8, 0);
	bpf_ringbuf_output(&unknown, &number, 8, 0);
	bpf_ringbuf_output(&unreadable, &number, 8, 0);
	bpf_ringbuf_output(&members, &number, 8, 0);
	bpf_ringbuf_output(&kinds, &number, 8, 0);
	return !bpf_map_lookup_elem(&hash, &key);
}
