/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * What tasks have used, without a hook per event. The kernel keeps exact sums in every task, from zero at
 * its fork. They are read at each collection and at the end of the task, and the growth since the last
 * reading is added up.
 *
 *     struct fault_sums { u64 minor, major; };               any number of u64, nothing else
 *     struct faults_seen { struct task_mark mark; struct fault_sums sums; };     more may follow
 *     TASK_SUMS(faults, struct fault_sums);
 *     faults_read(task, &sums), faults_add(task, &grown)     written by the collector
 *
 *     SEC("iter/task")                faults_walk(task_walk_step(ctx)), if that is not NULL
 *     at the end of the task          faults_end(task), once, after PF_EXITING is set
 *     before that, if the end is late faults_now(task)
 *
 * - Counting starts with the first walk. A task that is older starts at what it had when it was first
 *   seen, a younger one at zero.
 * - A walk and the end of a task may run on two CPUs at once. The first of them counts. If a task ends
 *   while a walk is looking at it, that walk also counts its last growth.
 * - Growth counts for the owner that the task has when it is read. If a task moves to another cgroup,
 *   everything that it used since the last collection counts for the new one.
 * - Storage is made by walks, and by a collector's hook in process context, but never under the lock of a
 *   run queue: an allocation there may wake kswapd, which takes such a lock.
 * - Before 6.2 a program cannot reach a task's storage while another task on the same CPU is preempted
 *   while using its own. With preempt=full, which no such kernel has by default, the end of a task may
 *   then not be counted.
 */

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_iter_meta {
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task; /* NULL in the last call of a walk */
};
#pragma clang attribute pop

#define TASK_EXITING 0x4 /* PF_EXITING: set before anybody is notified of the end, and never cleared */

enum task_turn { TASK_IDLE, TASK_TAKEN, TASK_ENDED };

struct task_mark {
	u32 turn; /* enum task_turn */
	u32 known;
};

u64 task_first_walk_ns; /* since boot: when counting started; 0: not yet */
u64 task_walk_ns;	/* start of the current walk */
u64 task_walked_ns;	/* start of the last complete walk; older tasks have storage */

/* The task to look at, or NULL at the end of a walk. Call this in each call of the iterator. */
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

/* True in the switch away from a task that will never run again; then all its sums are final. */
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
	/* The flag is read after the storage is made: if it is clear, the end finds storage. */   \
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
	/* Without storage it was never counted, unless a complete walk must have seen it. */      \
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
