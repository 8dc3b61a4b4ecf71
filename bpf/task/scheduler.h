/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Switches, CPU time and migrations are the kernel's own sums in each task (sums.h). Only the
 * distribution of the waits for a CPU needs a hook, and that hook reads no clock: at a switch, the
 * wait that ends is the run queue's clock minus last_queued. The kernel adds the same difference to
 * run_delay just after.
 *
 * If a waiting task is moved to another CPU, the kernel adds its wait to run_delay in parts, one
 * per queue. So this program keeps the run_delay that the task had when it last came to a CPU. That
 * makes it one wait, and the histogram's sum and count grow as run_delay and pcount in
 * /proc/PID/schedstat do.
 */
#include "sums.h"

TABLE(tasks, struct owner, struct usage, 1);
TABLE_PERCPU(run_queue, struct owner, struct hist_time, 1);

static __always_inline void usage_read(struct task_struct *task, struct usage *ret_usage)
{
	ret_usage->voluntary = task->nvcsw;
	ret_usage->involuntary = task->nivcsw;
	ret_usage->cpu = task->se.sum_exec_runtime;
	ret_usage->migrations = task->se.nr_migrations;
}

static __always_inline void usage_add(const struct owner *any, const struct usage *grown)
{
	struct owner owner = owner_for(any, scheduler_per_process);

	sums_add_to(tasks, &owner, grown);
}

static __always_inline void wait_add(struct task_struct *task, u64 cgroup, u64 wait_ns)
{
	/* sums_add() keeps the process's name. */
	struct owner owner = { cgroup, scheduler_per_process ? process_id(task) : 0 };
	bool is_own;
	struct hist_time *waits = run_queue_at(&owner, &is_own);

	if (waits)
		hist_time_count(waits, wait_ns, is_own);
}

static __always_inline void wait_end(struct task_struct *next, u64 queued)
{
	u64 waited = next->sched_info.run_delay + next->se.cfs_rq->rq->clock - queued;
	struct task_seen *seen;

	seen = bpf_task_storage_get(&tasks_seen, next, NULL, 0);
	/*
	 * task_newtask was skipped. On kernels that skip programs, making the record here wakes
	 * nobody.
	 */
	if (!seen && hooks_preemptible && task_is_young(next))
		seen = task_seen_make(next);
	if (!seen)
		return;
	wait_add(next, next->cgroups->dfl_cgrp->kn->id, waited - seen->waited_ns);
	seen->waited_ns = waited;
}

/*
 * A wait whose end was not seen becomes part of the task's next wait; a dead task has no next wait.
 * Without storage none of its waits was counted.
 */
static __noinline int wait_settle(struct task_struct *dead)
{
	struct task_seen *seen = bpf_task_storage_get(&tasks_seen, dead, NULL, 0);
	u64 waited = dead->sched_info.run_delay, counted = task_is_young(dead) ? 0 : waited;

	if (seen)
		counted = seen->waited_ns;
	if (waited != counted)
		wait_add(dead, BPF_CORE_READ(dead, cgroups, dfl_cgrp, kn, id), waited - counted);
	return 0;
}
