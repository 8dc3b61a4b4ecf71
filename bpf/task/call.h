/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * How long system calls take: one storage and two clock readings, whichever collectors want to
 * know.
 *
 * A call that a signal interrupts has lasted until the signal came, if the program then gets EINTR.
 */
#include "syscall.h"

struct call_start {
	u64 ns;
	u64 interrupted_ns; /* time until the signal came */
	u32 number;
};

STORAGE(starts, TASK, 0, struct call_start);

static __always_inline u32 call_raw_number(struct pt_regs *regs)
{
	u32 number = syscall_raw_number(regs);

	/* or clang checks bounds in a way that the verifier does not follow */
	asm volatile("" : "+r"(number));
	return number;
}

static __always_inline void call_begin(struct task_struct *task, u32 number)
{
	struct call_start *start = bpf_task_storage_get(&starts, task, NULL,
							BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!start)
		return;
	start->number = number;
	start->interrupted_ns = 0;
	start->ns = bpf_ktime_get_ns();
}

/* NULL: it began before the hook was attached, or a filter refused it. */
static __always_inline struct call_start *call_start_of(struct task_struct *task, u32 number)
{
	struct call_start *start = bpf_task_storage_get(&starts, task, NULL, 0);

	return start && start->ns && start->number == number ? start : NULL;
}

/* How long the call took; 0: it is not known, or it has not ended. */
static __noinline u64 call_end(struct task_struct *task, u32 number, bool restarts)
{
	struct call_start *start = call_start_of(task, number);
	u64 ns;

	if (!start)
		return 0;
	ns = bpf_ktime_get_ns() - start->ns;
	if (restarts) {
		start->interrupted_ns = ns;
		return 0;
	}
	start->ns = 0;
	return ns;
}

/* Like call_end(), for a call that has ended with EINTR. */
static __always_inline u64 call_end_interrupted(struct task_struct *task, u32 number)
{
	struct call_start *start = call_start_of(task, number);

	if (!start)
		return 0;
	start->ns = 0;
	return start->interrupted_ns;
}
