/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The collectors that look at tasks: syscalls, fileio, scheduler and memory. Each further program
 * on a hook costs more than counting does, so they share one program per hook. What two of them
 * need, such as the task and its owner, is taken once. Each collector has a file of its own in
 * task/; this file calls them at the hooks.
 */
#include "task/settings.h"
#include "owner.h"
#include "hist.h"
#include "table.h"
#include "task/syscalls.h"
#include "task/fileio.h"
#include "task/scheduler.h"
#include "task/memory.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ------ system calls ------ */

/*
 * If the kernel preempts programs at tp_btf, it skips events. Then the classic tracepoints are
 * used: nothing preempts them. Without the right to use those, the functions around the tracepoints
 * are, which are called as long as a program, here an empty one, is attached to each tracepoint.
 */
struct trace_event_raw_sys_exit {
	long ret;
} __attribute__((preserve_access_index)); /* what all events begin with is longer on some kernels */

static __always_inline struct pt_regs *call_registers(void)
{
	return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

static __always_inline int call_enter(struct pt_regs *regs, bool has_cast)
{
	u32 number = call_raw_number(regs);
	u32 calls = fileio_on && fileio_duration ? file_calls_of(number) : 0;
	bool is_timed = syscalls_on && syscall_is_timed(number);
	struct task_struct *task;

	if (!is_timed && !calls)
		return 0;
	task = bpf_get_current_task_btf();
	number = syscall_number(task, regs);
	if ((is_timed && syscall_is_timed(number)) ||
	    (calls && file_is_timed(task, regs, calls, has_cast)))
		call_begin(task, number);
	return 0;
}

/* has_cast: see fileio.h */
SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter__btf_cast, struct pt_regs *regs)
{
	return call_enter(regs, true);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter__btf_plain, struct pt_regs *regs)
{
	return call_enter(regs, false);
}

SEC("tp/raw_syscalls/sys_enter")
int sys_enter__tp(void *ctx)
{
	return call_enter(call_registers(), true);
}

SEC("kprobe.multi/trace_syscall_enter")
int sys_enter__multi(struct pt_regs *ctx)
{
	return call_enter(call_registers(), true);
}

SEC("tp_btf/sys_enter")
int sys_enter__multi__on(void *ctx)
{
	return 0;
}

static __always_inline int call_exit(struct pt_regs *regs, long ret, bool has_cast)
{
	struct task_struct *task;
	struct owner owner;
	u64 cgroup = 0, ns = 0;
	u32 calls, number = 0;

	if (syscalls_on) {
		task = bpf_get_current_task_btf();
		/* before any branch: see owner_of_task_seldom() */
		cgroup = task->cgroups->dfl_cgrp->kn->id;
	}
	calls = fileio_on ? file_calls_of(call_raw_number(regs)) : 0;
	if (syscalls_on) {
		number = syscall_number_at_exit(task, regs, &ret);
		owner_set(&owner, task, cgroup, syscalls_per_process || fileio_per_process);
		if (syscall_is_timed(number))
			ns = call_end(task, number, syscall_restarts(ret));
	} else if (calls) {
		task = bpf_get_current_task_btf();
	}
	if (calls)
		file_exit(task, regs, calls, ret, &owner, ns, has_cast);
	if (syscalls_on)
		syscall_exit(&owner, number, ret, ns);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit__btf_cast, struct pt_regs *regs, long ret)
{
	return call_exit(regs, ret, true);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit__btf_plain, struct pt_regs *regs, long ret)
{
	return call_exit(regs, ret, false);
}

SEC("tp/raw_syscalls/sys_exit")
int sys_exit__tp(struct trace_event_raw_sys_exit *ctx)
{
	return call_exit(call_registers(), ctx->ret, true);
}

SEC("kprobe.multi/trace_syscall_exit")
int sys_exit__multi(struct pt_regs *ctx)
{
	return call_exit(call_registers(), (long)function_argument_2(ctx), true);
}

SEC("tp_btf/sys_exit")
int sys_exit__multi__on(void *ctx)
{
	return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(signal_deliver, int signal, void *info, struct k_sigaction *action)
{
	syscall_interrupt(action);
	return 0;
}

/* ------ tasks ------ */

static __always_inline void sums_read(struct task_struct *task, struct task_sums *ret_sums)
{
	if (scheduler_on)
		usage_read(task, &ret_sums->usage);
	if (memory_on)
		faults_read(task, &ret_sums->faults);
	if (fileio_on)
		disk_read(task, &ret_sums->disk);
}

static __always_inline void sums_add(struct task_struct *task, const struct task_sums *grown)
{
	struct owner owner;

	owner_of_task_seldom(&owner, task);
	if (scheduler_on)
		usage_add(&owner, &grown->usage);
	if (memory_on)
		faults_add(&owner, &grown->faults);
	if (fileio_on)
		disk_add(&owner, &grown->disk);
}

SEC("iter/task")
int task_walk(struct bpf_iter__task *ctx)
{
	sums_walk(ctx);
	return 0;
}

/* This hook sees every new task; sched_process_fork leaves out the workers of io_uring. */
SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *task)
{
	task_seen_make(task);
	return 0;
}

/*
 * Here faults and disk bytes are final on most kernels; switches and CPU time are at the last
 * switch. But this runs before the parent is notified, so a parent that then reads misses at most
 * that switch. It makes the record if the kernel has skipped task_newtask, or if that is not
 * attached.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	if (ENDS_AT_SWITCH)
		sums_now(task);
	else
		sums_end(task);
	if (memory_on && victims_pending)
		victim_end(task);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 queued = scheduler_on ? next->sched_info.last_queued : 0;

	if (queued) /* not the idle task */
		wait_end(next, queued);
	if (task_is_dead(prev)) {
		sums_end(prev);
		if (scheduler_on)
			wait_settle(prev);
	}
	return 0;
}

/* ------ memory ------ */

/* The kernel marks one at a time, so it skips none. */
SEC("tp_btf/mark_victim")
int BPF_PROG(mark_victim, struct task_struct *task_or_id)
{
	if (victim_is_task())
		oom_count(task_or_id);
	else
		victim_note((u32)(u64)task_or_id);
	return 0;
}

/* On kernels that preempt the first one of each pair, see function.h. */
#define RECLAIM(hook, tracepoint, run)                                                             \
	SEC("tp_btf/" #tracepoint)                                                                 \
	int hook##__btf(void *ctx)                                                                 \
	{                                                                                          \
		return run;                                                                        \
	}                                                                                          \
	AT_TRACEPOINT(hook, tracepoint)                                                            \
	{                                                                                          \
		return run;                                                                        \
	}

RECLAIM(direct_reclaim_begin, mm_vmscan_direct_reclaim_begin, reclaim_begin())
RECLAIM(direct_reclaim_end, mm_vmscan_direct_reclaim_end, reclaim_end())
RECLAIM(memcg_reclaim_begin, mm_vmscan_memcg_reclaim_begin, reclaim_begin())
RECLAIM(memcg_reclaim_end, mm_vmscan_memcg_reclaim_end, reclaim_end())
