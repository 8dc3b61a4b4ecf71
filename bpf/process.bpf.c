/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes: how they start, how they end, how long they live. All of it is rare, so this is not a
 * part of task.bpf.c: without the collector, there are not even its maps.
 *
 * A process ends with its last thread. Before 6.16 the hook does not say which thread that is, and
 * if several end at once, each of them finds that none lives. The first of them counts, and leaves
 * a mark for the others.
 */
#include "function.h"
#include "hist.h"
#include "owner.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SIGNAL_MASK	   0x7f
#define ALREADY_THERE	   17 /* EEXIST */
#define SIGNAL_GROUP_EXIT  0x4 /* a thread ended all of them, or a signal did */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;	/* threads that have not begun to end */
	int nr_threads; /* and those that have not ended */
	int group_exit_code;
	unsigned int flags;
};

struct task_struct___process {
	struct signal_struct *signal;
	int exit_code;
};
#pragma clang attribute pop

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
	u32 signal;
	u32 unused;
};

struct process_count {
	u64 count;
};

TABLE(starts, struct start_key, struct process_count, 2);
TABLE(exits, struct code_key, struct process_count, 2);
TABLE(kills, struct signal_key, struct process_count, 1);
TABLE(lifetimes, struct owner, struct hist_time, 1);

/*
 * Processes that are counted, by process_id(). The others end a moment later, so the oldest marks
 * may go.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u32);
} ended SEC(".maps");

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

/* As wait(2) reports it. */
static __always_inline int process_status(struct task_struct *leader, struct signal_struct *signal)
{
	if (BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT)
		return BPF_CORE_READ(signal, group_exit_code);
	return BPF_CORE_READ((struct task_struct___process *)leader, exit_code);
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

/* A mark is made only if other threads may be ending, too. */
static __always_inline bool is_counted(struct task_struct *task, struct signal_struct *signal)
{
	u64 id = process_id(task);
	u32 mark = 1;
	int r; /* before 6.4, only the lower half of what comes back is the result */

	if (BPF_CORE_READ(signal, nr_threads) == 1)
		return bpf_map_lookup_elem(&ended, &id);
	r = bpf_map_update_elem(&ended, &id, &mark, BPF_NOEXIST);
	return r == -ALREADY_THERE;
}

static __always_inline int thread_end(struct task_struct *task)
{
	struct signal_struct *signal = BPF_CORE_READ((struct task_struct___process *)task, signal);
	struct task_struct *leader = task->group_leader;
	struct owner owner;

	if (BPF_CORE_READ(signal, live.counter) || is_counted(task, signal))
		return 0;
	owner_of_task_seldom(&owner, task);
	exit_add(&owner, process_status(leader, signal));
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
