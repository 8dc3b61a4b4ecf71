/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shrinkers that ran, by the command that ran them: ebpf_exporter's example regexp, with a type for its keys. */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct shrink_key {
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct shrink_key);
	__type(value, u64);
} shrinks SEC(".maps");

SEC("tp_btf/mm_shrink_slab_end")
int shrink_end(void *ctx)
{
	struct shrink_key key = {};
	u64 *count, one = 1;

	bpf_get_current_comm(key.comm, sizeof(key.comm));
	count = bpf_map_lookup_elem(&shrinks, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&shrinks, &key, &one, BPF_NOEXIST);
	return 0;
}
