/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A level and a tally of 5 each, for test-reading.c. */
#include "label.h"
#include "task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct gauges_value {
	u64 level;
	val_tally tally;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct gauges_value);
} gauges SEC(".maps");

SEC("iter/task")
int count(struct bpf_iter__task *ctx)
{
	struct gauges_value fresh = { 5, 5 }, *value;
	u32 key = 1;

	if (ctx->meta->seq_num)
		return 0;
	value = bpf_map_lookup_elem(&gauges, &key);
	if (value)
		value->tally += 5;
	else
		bpf_map_update_elem(&gauges, &key, &fresh, BPF_NOEXIST);
	return 0;
}
