/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps as authors of ebpf_exporter's objects write them: what the importer reads is in their types alone. */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum sample_reason { SAMPLE_REASON_NONE, SAMPLE_REASON_FULL };

struct inner {
	u32 dev;
	u8 op;
};

struct wide_key {
	struct inner disk;
	enum sample_reason reason;
	u16 port;
	bool flag;
	u64 cgroup;
	u64 stack[3];
	char comm[16];
	u8 address[16];
	u64 bucket;
};

struct event {
	u32 pid;
	char comm[16];
};

struct padded {
	u32 pid;
	u32 pad;
	u64 id;
};

struct call_span {
	struct {
		u64 trace_high, trace_low, parent;
	} base;
	u64 id, start, duration;
	char name[16];
	u32 cpu;
	u32 rest;
};

const volatile u64 kaddr_jiffies;
const struct event *event_anchor __attribute__((unused));
const struct padded *padded_anchor __attribute__((unused));
const struct call_span *call_span_anchor __attribute__((unused));

#define MAP(name, map_type, entries, key_type)                                                     \
	struct {                                                                                   \
		__uint(type, map_type);                                                            \
		__uint(max_entries, entries);                                                      \
		__type(key, key_type);                                                             \
		__type(value, u64);                                                                \
	} name SEC(".maps")

MAP(wide_seconds, BPF_MAP_TYPE_HASH, 64, struct wide_key);
MAP(calls_total, BPF_MAP_TYPE_HASH, 64, u64);
MAP(signed_total, BPF_MAP_TYPE_HASH, 64, s64);
MAP(softirqs_total, BPF_MAP_TYPE_PERCPU_ARRAY, 10, u32);
MAP(percpu_total, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32);
MAP(plain_total, BPF_MAP_TYPE_ARRAY, 1, u32);
MAP(several_total, BPF_MAP_TYPE_ARRAY, 4, u32);
MAP(pages, BPF_MAP_TYPE_ARRAY, 1, u32);
MAP(disks_total, BPF_MAP_TYPE_HASH, 64, struct inner);
MAP(more_disks_total, BPF_MAP_TYPE_HASH, 64, struct inner);
MAP(wanted, BPF_MAP_TYPE_HASH, 64, u64);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__uint(key_size, 16);
	__uint(value_size, 8);
} untyped_total SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} events_total SEC(".maps");

SEC("tp_btf/sched_process_exec")
int sample(void *ctx)
{
	struct event event = {};
	u64 key = kaddr_jiffies + (u64)event_anchor + (u64)padded_anchor + (u64)call_span_anchor;

	bpf_map_update_elem(&calls_total, &key, &key, BPF_ANY);
	bpf_perf_event_output(ctx, &events_total, BPF_F_CURRENT_CPU, &event, sizeof(event));
	return 0;
}
