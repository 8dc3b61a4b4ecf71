/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Switches, CPU time and migrations are the kernel's own sums in each task (task.h). Only the distribution
 * of the waits for a CPU needs a hook, and that hook reads no clock: at a switch, the wait that ends is
 * the run queue's clock minus last_queued. The kernel adds the same difference to run_delay just after.
 *
 * If a waiting task is moved to another CPU, the kernel adds its wait to run_delay in parts, one per
 * queue. So this program keeps the run_delay that the task had when it last came to a CPU. That makes it
 * one wait, and the histogram's sum and count grow as run_delay and pcount in /proc/PID/schedstat do.
 */
#include "owner.h"
#include "hist.h"
#include "table.h"
#include "task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct usage {
	u64 voluntary;
	u64 involuntary;
	val_ns cpu;
	u64 migrations;
};

struct usages_seen {
	struct task_mark mark;
	struct usage sums;
	u64 waited_ns; /* run_delay after the last wait that was counted */
};

TABLE(tasks, struct owner, struct usage, 512);
TABLE(run_queue, struct owner, struct hist_time, 256);
TASK_SUMS(usages, struct usage);

static __always_inline void usages_read(struct task_struct *task, struct usage *ret_usage)
{
	ret_usage->voluntary = task->nvcsw;
	ret_usage->involuntary = task->nivcsw;
	ret_usage->cpu = task->se.sum_exec_runtime;
	ret_usage->migrations = task->se.nr_migrations;
}

static __always_inline void usages_add(struct task_struct *task, const struct usage *grown)
{
	struct owner owner;
	struct usage *total;

	owner_of_task_seldom(&owner, task);
	total = tasks_at(&owner);
	if (!total)
		return;
	table_add(&total->voluntary, grown->voluntary);
	table_add(&total->involuntary, grown->involuntary);
	table_add(&total->cpu, grown->cpu);
	table_add(&total->migrations, grown->migrations);
}

static __always_inline void usages_begin(struct task_struct *task)
{
	struct usages_seen seen = { .waited_ns = task->sched_info.run_delay };

	bpf_task_storage_get(&usages, task, &seen, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void wait_add(struct task_struct *task, u64 cgroup, u64 wait_ns)
{
	/* usages_add() keeps the process's name. */
	struct owner owner = { cgroup, per_process ? process_id(task) : 0 };
	struct hist_time *waits = run_queue_at(&owner);

	if (waits)
		hist_time_add(waits, wait_ns);
}

static __always_inline void wait_end(struct task_struct *next, u64 queued)
{
	u64 waited = next->sched_info.run_delay + next->se.cfs_rq->rq->clock - queued;
	struct usages_seen *seen;

	seen = bpf_task_storage_get(&usages, next, NULL, 0);
	if (!seen)
		return;
	wait_add(next, next->cgroups->dfl_cgrp->kn->id, waited - seen->waited_ns);
	seen->waited_ns = waited;
}

/* A wait whose end was not seen becomes part of the task's next wait; a dead task has no next wait. */
static __noinline int wait_settle(struct task_struct *dead)
{
	struct usages_seen *seen = bpf_task_storage_get(&usages, dead, NULL, 0);

	if (seen && seen->waited_ns != dead->sched_info.run_delay)
		wait_add(dead, BPF_CORE_READ(dead, cgroups, dfl_cgrp, kn, id),
			 dead->sched_info.run_delay - seen->waited_ns);
	return 0;
}

SEC("iter/task")
int task_walk(struct bpf_iter__task *ctx)
{
	struct task_struct *task = task_walk_step(ctx);

	if (task) {
		usages_begin(task);
		usages_walk(task);
	}
	return 0;
}

/* This hook sees every new task; sched_process_fork leaves out the workers of io_uring. */
SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *task)
{
	usages_begin(task);
	return 0;
}

/* This runs before the parent is notified, so a parent that then reads misses at most the last switch. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	usages_now(task);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 queued = next->sched_info.last_queued;

	if (task_is_dead(prev)) {
		usages_end(prev);
		wait_settle(prev);
	}
	if (queued) /* not the idle task */
		wait_end(next, queued);
	return 0;
}
