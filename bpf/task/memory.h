/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Page faults are the kernel's own sums in each task (sums.h). Whether a fault was major is known
 * only after it, so a hook at its start could not count it.
 *
 * A reclaim stall is the time that a task itself spends freeing memory before it gets a page,
 * because the machine is short of memory (direct reclaim) or because its cgroup has reached a limit
 * (memcg reclaim). The work of kswapd does not stall any task.
 */
#include "sums.h"
#include "victim.h"

struct oom_value {
	u64 kills;
};

TABLE(fault_counts, struct owner, struct faults, 1);
TABLE(oom, struct owner, struct oom_value, 1);
TABLE(reclaim, struct owner, struct hist_time, 1);

static __always_inline void faults_read(struct task_struct *task, struct faults *ret_faults)
{
	ret_faults->minor = task->min_flt;
	ret_faults->major = task->maj_flt;
}

static __always_inline void faults_add(const struct owner *any, const struct faults *grown)
{
	struct owner owner = owner_for(any, memory_per_process);

	sums_add_to(fault_counts, &owner, grown);
}

static __always_inline struct owner memory_owner(struct task_struct *task)
{
	struct owner owner;

	owner_of_task_seldom(&owner, task);
	return owner_for(&owner, memory_per_process);
}

/* ------ OOM kills ------ */

/* On kernels that report only the victim's id: the victims, until their exit shows the owner. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u32);
} victims SEC(".maps");

u32 victims_pending;

static __always_inline void oom_count(struct task_struct *task)
{
	struct owner owner = memory_owner(task);

	table_add_to(oom, &owner, kills, 1);
}

static __always_inline void victim_note(u32 thread)
{
	u32 one = 1;

	if (!bpf_map_update_elem(&victims, &thread, &one, BPF_ANY))
		table_add(&victims_pending, 1);
}

static __noinline int victim_end(struct task_struct *task)
{
	u32 key = task->pid;

	if (!bpf_map_delete_elem(&victims, &key)) {
		table_add(&victims_pending, -1);
		oom_count(task);
	}
	return 0;
}

/* ------ reclaim ------ */

static __always_inline int reclaim_begin(void)
{
	struct task_seen *seen = task_seen_make(bpf_get_current_task_btf());

	if (seen)
		seen->reclaim_began_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int reclaim_end(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_seen *seen = bpf_task_storage_get(&tasks_seen, task, NULL, 0);
	struct owner owner;
	u64 stall_ns;

	if (!seen || !seen->reclaim_began_ns)
		return 0;
	stall_ns = bpf_ktime_get_ns() - seen->reclaim_began_ns;
	seen->reclaim_began_ns = 0;
	owner = memory_owner(task);
	hist_time_add_to(reclaim, &owner, stall_ns);
	return 0;
}
