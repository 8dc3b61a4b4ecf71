/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls that do not exist: CALL | key. Maps of all kinds count them by key. */
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CALL 0x200000
#define KEYS 1024

#define MAP(NAME, TYPE)                                                                            \
	struct {                                                                                   \
		__uint(type, TYPE);                                                                \
		__uint(max_entries, KEYS);                                                         \
		__type(key, u64);                                                                  \
		__type(value, u64);                                                                \
	} NAME SEC(".maps")

MAP(hash, BPF_MAP_TYPE_HASH);
MAP(lru, BPF_MAP_TYPE_LRU_HASH);
MAP(percpu, BPF_MAP_TYPE_PERCPU_HASH);
MAP(kept, BPF_MAP_TYPE_HASH);
TABLE(flat, u64, u64, KEYS);
TABLE_PERCPU(columns, u64, u64, KEYS);

static void count(void *map, u64 key)
{
	u64 *value = bpf_map_lookup_elem(map, &key), one = 1;

	if (value)
		__sync_fetch_and_add(value, 1);
	else
		bpf_map_update_elem(map, &key, &one, BPF_NOEXIST);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	u64 key = number - CALL, *value;
	bool is_own;

	if (number < CALL || key >= KEYS)
		return 0;
	count(&hash, key);
	count(&lru, key);
	count(&percpu, key);
	count(&kept, key);
	value = flat_at(&key);
	if (value)
		table_add(value, 1);
	value = columns_at(&key, &is_own);
	if (value)
		table_count(value, 1, is_own);
	return 0;
}
