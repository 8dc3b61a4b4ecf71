/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * What tasks have used, without a hook per event. The kernel keeps exact sums in every task, from
 * zero at its fork. They are read at each collection and at the end of the task, and the growth
 * since the last reading is added up. There is one walk, one storage and one end for the sums of
 * all collectors.
 *
 * - Counting starts with the first walk. A task that is older starts at what it had when it was
 *   first seen, a younger one at zero.
 * - A task ends at the last switch away from it if that hook is in use: all its sums are final
 *   there, and the kernel never skips that program. Else it ends at sched_process_exit, which costs
 *   less.
 * - A walk and the end of a task may run on two CPUs at once. The first of them counts. If a task
 *   ends while a walk is looking at it, that walk also counts its last growth.
 * - Growth counts for the owner that the task has when it is read. If a task moves to another
 *   cgroup, everything that it used since the last collection counts for the new one.
 * - Storage is made by walks, and by hooks in process context, but never under the lock of a run
 *   queue: an allocation there may wake kswapd, which takes such a lock.
 * - Before 6.2 a program cannot reach a task's storage while another task on the same CPU is
 *   preempted while using its own. With preempt=full, which no such kernel has by default, the end
 *   of a task may then not be counted.
 */
#include "preempt.h"
#include "task.h"

struct usage {
	u64 voluntary;
	u64 involuntary;
	val_ns cpu;
	u64 migrations;
};

struct faults {
	u64 minor;
	u64 major;
};

struct disk_bytes {
	u64 read_bytes;
	u64 write_bytes;
};

/* Those of a collector that is off stay 0. */
struct task_sums {
	struct usage usage;
	struct faults faults;
	struct disk_bytes disk;
};

enum task_turn { TASK_IDLE, TASK_TAKEN, TASK_ENDED };

struct task_seen {
	u32 turn; /* enum task_turn */
	u32 is_known;
	struct task_sums sums; /* what has been counted */
	u64 waited_ns;	       /* run_delay after the last wait that was counted */
	u64 reclaim_began_ns;
};

STORAGE(tasks_seen, TASK, 0, struct task_seen);

#define ENDS_AT_SWITCH (scheduler_on || hooks_preemptible)

u64 first_walk_ns; /* since boot: when counting started; 0: not yet */
u64 walk_ns;	   /* start of the current walk */
u64 walked_ns;	   /* start of the last complete walk; older tasks have storage */

/* Did it start when counting had started? Then all that it has done counts. */
static __always_inline bool task_is_young(const struct task_struct *task)
{
	return first_walk_ns && task->start_boottime >= first_walk_ns;
}

/* Defined in task.bpf.c: the sums that a task has now, and where growth goes. */
static __always_inline void sums_read(struct task_struct *task, struct task_sums *ret_sums);
static __always_inline void sums_add(struct task_struct *task, const struct task_sums *grown);

/* Adds what has grown, a structure of u64, to the place of owner in the table NAME. */
#define sums_add_to(NAME, owner, grown)                                                            \
	do {                                                                                       \
		const u64 *from_ = (const u64 *)(grown);                                           \
		u64 any_ = 0, *to_;                                                                \
		_Pragma("unroll") for (u32 i = 0; i < sizeof(*(grown)) / 8; i++) any_ |= from_[i]; \
		to_ = any_ ? (u64 *)NAME##_at(owner) : NULL;                                       \
		if (to_)                                                                           \
			_Pragma("unroll") for (u32 i = 0; i < sizeof(*(grown)) / 8; i++)           \
				table_add(to_ + i, from_[i]);                                      \
	} while (0)

static __noinline int sums_count(struct task_struct *task, struct task_seen *seen)
{
	u64 *last = (u64 *)&seen->sums, *word, any = 0, now;
	struct task_sums sums = {};

	sums_read(task, &sums);
	if (!seen->is_known) {
		seen->is_known = 1;
		if (!task_is_young(task))
			seen->sums = sums;
	}
	word = (u64 *)&sums;
#pragma unroll
	for (u32 i = 0; i < sizeof(sums) / 8; i++) {
		now = word[i];
		word[i] = now - last[i];
		any |= word[i];
		last[i] = now;
	}
	if (any)
		sums_add(task, &sums);
	return 0;
}

static __always_inline void sums_take(struct task_struct *task, struct task_seen *seen)
{
	u32 *turn = &seen->turn;

	if (__sync_val_compare_and_swap(turn, TASK_IDLE, TASK_TAKEN) != TASK_IDLE)
		return;
	sums_count(task, seen);
	if (__sync_val_compare_and_swap(turn, TASK_TAKEN, TASK_IDLE) == TASK_ENDED)
		sums_count(task, seen);
}

/* A task's storage, made if there is none. */
static __always_inline struct task_seen *task_seen_make(struct task_struct *task)
{
	struct task_seen fresh =
		{ .waited_ns = task_is_young(task) ? 0 : task->sched_info.run_delay };

	return bpf_task_storage_get(&tasks_seen, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* In each call of an iter/task program. */
static __always_inline void sums_walk(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_seen *seen;

	if (ctx->meta->seq_num == 0) {
		walk_ns = bpf_ktime_get_boot_ns();
		if (!first_walk_ns) {
			walked_ns = walk_ns;
			first_walk_ns = walk_ns;
		}
	}
	if (!task) {
		walked_ns = walk_ns;
		return;
	}
	/* This is read after the storage is made: if the end is still to come, it finds storage. */
	seen = task_seen_make(task);
	if (seen &&
	    !(ENDS_AT_SWITCH ? task_is_dead(task) : *(volatile u32 *)&task->flags & TASK_EXITING))
		sums_take(task, seen);
}

/* Before the end, if the end is late. */
static __always_inline void sums_now(struct task_struct *task)
{
	struct task_seen *seen = task_seen_make(task);

	if (seen && first_walk_ns)
		sums_take(task, seen);
}

/*
 * At the end of a task, once. Without storage it was never counted, unless a complete walk must
 * have seen it.
 */
static __noinline int sums_end(struct task_struct *task)
{
	struct task_seen fresh = {}, *seen;

	if (!first_walk_ns)
		return 0;
	seen = bpf_task_storage_get(&tasks_seen, task, NULL, 0);
	if (seen) {
		if (__sync_lock_test_and_set(&seen->turn, TASK_ENDED) == TASK_IDLE)
			sums_count(task, seen);
	} else if (task->start_boottime >= walked_ns) {
		sums_count(task, &fresh);
	}
	return 0;
}
