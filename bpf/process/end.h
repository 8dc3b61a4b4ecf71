/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * A process ends with its last thread. Before 6.16 the hook does not say which thread that is, and
 * if several end at once, each of them finds that none lives. The first of them counts, and leaves
 * a mark for the others.
 */
#include "label.h"

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

static __always_inline struct signal_struct *process_signal(struct task_struct *task)
{
	return BPF_CORE_READ((struct task_struct___process *)task, signal);
}

/* As wait(2) reports it. */
static __always_inline int process_status(struct task_struct *task)
{
	struct signal_struct *signal = process_signal(task);

	if (BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT)
		return BPF_CORE_READ(signal, group_exit_code);
	return BPF_CORE_READ((struct task_struct___process *)task->group_leader, exit_code);
}

/* A mark is made only if other threads may be ending, too. */
static __always_inline bool process_is_counted(struct task_struct *task,
					       struct signal_struct *signal)
{
	u64 id = process_id(task);
	u32 mark = 1;
	int r; /* before 6.4, only the lower half of what comes back is the result */

	if (BPF_CORE_READ(signal, nr_threads) == 1)
		return bpf_map_lookup_elem(&ended, &id);
	r = bpf_map_update_elem(&ended, &id, &mark, BPF_NOEXIST);
	return r == -ALREADY_THERE;
}

/* At the end of a thread: does the process end with it? True once for each process. */
static __always_inline bool process_has_ended(struct task_struct *task)
{
	struct signal_struct *signal = process_signal(task);

	return !BPF_CORE_READ(signal, live.counter) && !process_is_counted(task, signal);
}
