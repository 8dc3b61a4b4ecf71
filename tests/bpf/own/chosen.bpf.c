/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls that do not exist, in chosen cgroups and in others. */
#include "owner.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CALL 0x400000
#define CGROUPS 3
#define CGRP_STORAGE 32 /* BPF_MAP_TYPE_CGRP_STORAGE, which older headers lack */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CGROUPS);
	__type(key, u64);
	__type(value, u8);
} by_id SEC(".maps");

struct {
	__uint(type, CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u64);
} in_cgroup SEC(".maps");

struct call_value {
	u64 by_id, in_cgroup, all;
};

TABLE(calls, struct owner, struct call_value, 4);

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, void *registers, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct call_value *value;
	struct owner owner;
	u64 *is_chosen;

	if (number != CALL)
		return 0;
	owner_of_task(&owner, task);
	value = calls_at(&owner);
	if (!value)
		return 0;
	table_add(&value->all, 1);
	if (bpf_map_lookup_elem(&by_id, &owner.cgroup))
		table_add(&value->by_id, 1);
	is_chosen = bpf_cgrp_storage_get(&in_cgroup, task->cgroups->dfl_cgrp, NULL, 0);
	if (is_chosen && *is_chosen == 1)
		table_add(&value->in_cgroup, 1);
	return 0;
}
