/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes: how they start, how they end, how long they live. All of it is rare, so this is not a
 * part of task.bpf.c: without the collector, there are not even its maps.
 */
#include "function.h"
#include "hist.h"
#include "owner.h"
#include "table.h"

#include "process/end.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum process_start { PROCESS_START_FORK, PROCESS_START_EXEC };

struct start_key {
	struct owner owner;
	enum process_start type;
	u32 unused;
};

struct code_key {
	struct owner owner;
	u32 code;
	u32 unused;
};

struct signal_key {
	struct owner owner;
	lbl_signal signal;
	u32 unused;
};

struct process_count {
	u64 count;
};

TABLE(starts, struct start_key, struct process_count, 2);
TABLE(exits, struct code_key, struct process_count, 2);
TABLE(kills, struct signal_key, struct process_count, 1);
TABLE(lifetimes, struct owner, struct hist_time, 1);

static __always_inline int start_add(struct task_struct *task, enum process_start type)
{
	struct start_key key = { .type = type };

	owner_of_task_seldom(&key.owner, task);
	table_add_to(starts, &key, count, 1);
	return 0;
}

static __always_inline int process_fork(struct task_struct *task)
{
	return task->pid == task->tgid ? start_add(task, PROCESS_START_FORK) : 0;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask__btf, struct task_struct *task)
{
	return process_fork(task);
}

AT_TRACEPOINT(task_newtask, task_newtask)
{
	return process_fork(cast_to(struct task_struct, function_argument_2(ctx)));
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec__btf, struct task_struct *task)
{
	return start_add(task, PROCESS_START_EXEC);
}

AT_TRACEPOINT(sched_process_exec, sched_process_exec)
{
	return start_add(bpf_get_current_task_btf(), PROCESS_START_EXEC);
}

static __always_inline void exit_add(const struct owner *owner, int status)
{
	struct signal_key killed = { *owner, status & SIGNAL_MASK };
	struct code_key left = { *owner, status >> 8 & 0xff };

	if (killed.signal)
		table_add_to(kills, &killed, count, 1);
	else
		table_add_to(exits, &left, count, 1);
}

static __always_inline int thread_end(struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	struct owner owner;

	if (!process_has_ended(task))
		return 0;
	owner_of_task_seldom(&owner, task);
	exit_add(&owner, process_status(task));
	hist_time_add_to(lifetimes, &owner,
			 bpf_ktime_get_boot_ns() - BPF_CORE_READ(leader, start_boottime));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit__btf, struct task_struct *task)
{
	return thread_end(task);
}

AT_TRACEPOINT(sched_process_exit, sched_process_exit)
{
	return thread_end(bpf_get_current_task_btf());
}
