/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Page faults are the kernel's own sums in each task (task.h). Whether a fault was major is known only
 * after it, so a hook at its start could not count it. The sums are final at sched_process_exit.
 *
 * A reclaim stall is the time that a task itself spends freeing memory before it gets a page, because the
 * machine is short of memory (direct reclaim) or because its cgroup has reached a limit (memcg reclaim).
 * The work of kswapd does not stall anybody.
 */
#include "owner.h"
#include "hist.h"
#include "table.h"
#include "task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct fault_sums {
	u64 minor;
	u64 major;
};

struct faults_seen {
	struct task_mark mark;
	struct fault_sums sums;
};

TABLE(fault_counts, struct owner, struct fault_sums, 512);
TASK_SUMS(faults, struct fault_sums);

static __always_inline void faults_read(struct task_struct *task, struct fault_sums *ret_sums)
{
	ret_sums->minor = task->min_flt;
	ret_sums->major = task->maj_flt;
}

static __always_inline void faults_add(struct task_struct *task, const struct fault_sums *grown)
{
	struct fault_sums *total;
	struct owner owner;

	owner_of_task_seldom(&owner, task);
	total = fault_counts_at(&owner);
	if (!total)
		return;
	table_add(&total->minor, grown->minor);
	table_add(&total->major, grown->major);
}

SEC("iter/task")
int task_walk(struct bpf_iter__task *ctx)
{
	struct task_struct *task = task_walk_step(ctx);

	if (task)
		faults_walk(task);
	return 0;
}

/* ------ OOM kills ------ */

struct oom_value {
	u64 kills;
};

TABLE(oom, struct owner, struct oom_value, 64);

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
	struct oom_value *value;
	struct owner owner;

	owner_of_task_seldom(&owner, task);
	value = oom_at(&owner);
	if (value)
		table_add(&value->kills, 1);
}

/* Since 6.9 the argument is the task. Earlier kernels refuse this program, and the next one is used. */
SEC("tp_btf/mark_victim")
int BPF_PROG(mark_victim__task, struct task_struct *task)
{
	oom_count(task);
	return 0;
}

SEC("tp_btf/mark_victim")
int BPF_PROG(mark_victim__pid, int thread)
{
	u32 key = thread, one = 1;

	if (!bpf_map_update_elem(&victims, &key, &one, BPF_ANY))
		table_add(&victims_pending, 1);
	return 0;
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

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	faults_end(task);
	if (victims_pending)
		victim_end(task);
	return 0;
}

/* ------ reclaim ------ */

TABLE(reclaim, struct owner, struct hist_time, 128);

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} reclaim_began SEC(".maps");

static __always_inline int reclaim_begin(void)
{
	u64 *began = bpf_task_storage_get(&reclaim_began, bpf_get_current_task_btf(), NULL,
					  BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (began)
		*began = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int reclaim_end(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *began = bpf_task_storage_get(&reclaim_began, task, NULL, 0);
	struct hist_time *stalls;
	struct owner owner;
	u64 stall_ns;

	if (!began || !*began)
		return 0;
	stall_ns = bpf_ktime_get_ns() - *began;
	*began = 0;
	owner_of_task_seldom(&owner, task);
	stalls = reclaim_at(&owner);
	if (stalls)
		hist_time_add_atomic(stalls, stall_ns);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(direct_reclaim_begin)
{
	return reclaim_begin();
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(direct_reclaim_end)
{
	return reclaim_end();
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(memcg_reclaim_begin)
{
	return reclaim_begin();
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(memcg_reclaim_end)
{
	return reclaim_end();
}
