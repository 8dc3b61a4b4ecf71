/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * What tasks have used, without a hook on the way: the kernel keeps exact sums in every task, from
 * zero at its fork on, so they are read at each collection and at the task's end, and what has
 * grown since they were last read is added up.
 *
 *     struct fault_sums { u64 minor, major; };               any number of u64, nothing else
 *     struct faults_seen { struct task_mark mark; struct fault_sums sums; };     more may follow
 *     TASK_SUMS(faults, struct fault_sums);
 *     faults_read(task, &sums), faults_add(task, &grown)     written by the collector
 *
 *     SEC("iter/task")                faults_walk(task_walk_step(ctx)), if that is not NULL
 *     at the task's end               faults_end(task), once, after PF_EXITING is set
 *     before it, if the end is late   faults_now(task)
 *
 * - The first walk is the start of counting: a task that is older begins at what it had when it was
 *   first seen, a younger one at zero. Nothing is counted before.
 * - Walk and end may meet on two CPUs. Whoever comes first counts; a task that ends while a walk is
 *   at it leaves its last growth to that walk.
 * - Growth is given to the owner that the task has when it is read: a task that moves to another
 *   cgroup takes with it what it has used since the last collection.
 * - Storage is made by walks (and by a collector's hook in process context), never under a run
 *   queue's lock: an allocation there may wake kswapd, which takes such a lock.
 * - Before 6.2 storage is out of reach while a task on the same CPU is preempted in the midst of its
 *   own: with preempt=full, which no such kernel has by default, an end may then go uncounted.
 */

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_iter_meta {
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task; /* NULL in the call that ends a walk */
};
#pragma clang attribute pop

#define TASK_EXITING 0x4 /* PF_EXITING: never cleared, set before the end is told to anybody */

enum task_turn { TASK_IDLE, TASK_TAKEN, TASK_ENDED };

struct task_mark {
	u32 turn; /* enum task_turn */
	u32 known;
};

u64 task_first_walk_ns; /* since boot: when counting began; 0: not yet */
u64 task_walk_ns;	/* when the walk under way began */
u64 task_walked_ns;	/* when the last complete walk began: who is older has storage */

/* The task to look at, or NULL where a walk ends. To be called in each call of the iterator. */
static __always_inline struct task_struct *task_walk_step(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (ctx->meta->seq_num == 0) {
		task_walk_ns = bpf_ktime_get_boot_ns();
		if (!task_first_walk_ns) {
			task_walked_ns = task_walk_ns;
			task_first_walk_ns = task_walk_ns;
		}
	}
	if (!task)
		task_walked_ns = task_walk_ns;
	return task;
}

/* True in the switch away from a task that will never run again: all its sums are final there. */
static __always_inline bool task_is_dead(struct task_struct *task)
{
	const u32 task_dead = 0x80; /* TASK_DEAD */

	if (bpf_core_field_exists(task->__state))
		return task->__state & task_dead;
	return ((struct task_struct___before_5_14 *)task)->state & task_dead;
}

#define TASK_SUMS(NAME, SUMS)                                                                      \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE);                                           \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                              \
		__type(key, int);                                                                  \
		__type(value, struct NAME##_seen);                                                 \
	} NAME SEC(".maps");                                                                       \
	_Static_assert(sizeof(SUMS) % 8 == 0, "sums are u64");                                     \
                                                                                                   \
	static __always_inline void NAME##_read(struct task_struct *task, SUMS *ret_sums);         \
	static __always_inline void NAME##_add(struct task_struct *task, const SUMS *grown);       \
                                                                                                   \
	static __always_inline void NAME##_count(struct task_struct *task,                         \
						 struct NAME##_seen *seen)                         \
	{                                                                                          \
		u64 *last = (u64 *)&seen->sums, *word, any = 0, now;                               \
		SUMS sums;                                                                         \
                                                                                                   \
		NAME##_read(task, &sums);                                                          \
		if (!seen->mark.known) {                                                           \
			seen->mark.known = 1;                                                      \
			if (task->start_boottime < task_first_walk_ns)                             \
				seen->sums = sums;                                                 \
		}                                                                                  \
		word = (u64 *)&sums;                                                               \
		_Pragma("unroll") for (u32 i = 0; i < sizeof(SUMS) / 8; i++)                       \
		{                                                                                  \
			now = word[i];                                                             \
			word[i] = now - last[i];                                                   \
			any |= word[i];                                                            \
			last[i] = now;                                                             \
		}                                                                                  \
		if (any)                                                                           \
			NAME##_add(task, &sums);                                                   \
	}                                                                                          \
                                                                                                   \
	static __always_inline void NAME##_take(struct task_struct *task,                          \
						struct NAME##_seen *seen)                          \
	{                                                                                          \
		u32 *turn = &seen->mark.turn;                                                      \
                                                                                                   \
		if (__sync_val_compare_and_swap(turn, TASK_IDLE, TASK_TAKEN) != TASK_IDLE)         \
			return;                                                                    \
		NAME##_count(task, seen);                                                          \
		if (__sync_val_compare_and_swap(turn, TASK_TAKEN, TASK_IDLE) == TASK_ENDED)        \
			NAME##_count(task, seen);                                                  \
	}                                                                                          \
                                                                                                   \
	/* The flag is read after the storage was made: while clear, the end finds storage. */     \
	static __always_inline void NAME##_walk(struct task_struct *task)                          \
	{                                                                                          \
		struct NAME##_seen *seen;                                                          \
                                                                                                   \
		seen = bpf_task_storage_get(&NAME, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);    \
		if (seen && !(*(volatile u32 *)&task->flags & TASK_EXITING))                       \
			NAME##_take(task, seen);                                                   \
	}                                                                                          \
                                                                                                   \
	static __always_inline __attribute__((unused)) void NAME##_now(struct task_struct *task)   \
	{                                                                                          \
		struct NAME##_seen *seen = bpf_task_storage_get(&NAME, task, NULL, 0);             \
                                                                                                   \
		if (seen && task_first_walk_ns)                                                    \
			NAME##_take(task, seen);                                                   \
	}                                                                                          \
                                                                                                   \
	/* Without storage: counted never, unless a complete walk must have met it. */             \
	static __noinline int NAME##_end(struct task_struct *task)                                 \
	{                                                                                          \
		struct NAME##_seen fresh = {}, *seen;                                              \
                                                                                                   \
		if (!task_first_walk_ns)                                                           \
			return 0;                                                                  \
		seen = bpf_task_storage_get(&NAME, task, NULL, 0);                                 \
		if (seen) {                                                                        \
			if (__sync_lock_test_and_set(&seen->mark.turn, TASK_ENDED) == TASK_IDLE)   \
				NAME##_count(task, seen);                                          \
		} else if (task->start_boottime >= task_walked_ns) {                               \
			NAME##_count(task, &fresh);                                                \
		}                                                                                  \
		return 0;                                                                          \
	}                                                                                          \
	_Static_assert(1, "")
