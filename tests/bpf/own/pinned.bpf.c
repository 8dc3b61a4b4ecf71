/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A map that outlives the run that made it. */
#include "owner.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, struct owner);
	__type(value, u64);
} forks SEC(".maps");

SEC("tp_btf/sched_process_fork")
int BPF_PROG(count_fork, struct task_struct *task)
{
	struct owner owner;
	u64 one = 1, *value;

	owner_of_task(&owner, task);
	value = bpf_map_lookup_elem(&forks, &owner);
	if (value)
		__sync_fetch_and_add(value, 1);
	else
		bpf_map_update_elem(&forks, &owner, &one, BPF_NOEXIST);
	return 0;
}
