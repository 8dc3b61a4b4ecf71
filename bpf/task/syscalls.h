/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * System calls by name and error, counted when they return: one hook, no clock, no helper call.
 * Durations cost a second hook and two clock readings, so they are measured only for the calls that
 * the user names. Without such calls the second hook is not attached.
 *
 * A call that a signal interrupts returns a result that only the kernel understands. Either the
 * call starts again, and counts when it finally returns, or the program gets EINTR. The kernel
 * decides this when it delivers the signal, so EINTR is counted there.
 */
#include "call.h"

#define SIGNAL_IGNORED	 1	     /* SIG_DFL (0) and SIG_IGN (1) are not handlers */
#define SIGNAL_RESTARTS	 0x10000000u /* SA_RESTART */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sigaction {
	void *sa_handler;
	unsigned long sa_flags;
};

struct k_sigaction {
	struct sigaction sa;
};

#pragma clang attribute pop

struct syscall_key {
	struct owner owner;
	lbl_syscall syscall;
	lbl_errno error; /* always 0 in syscall_durations */
};

struct syscall_value {
	u64 count;
};

TABLE_PERCPU(calls, struct syscall_key, struct syscall_value, 44); /* one writer */
TABLE(interrupted, struct syscall_key, struct syscall_value, 2);
TABLE(syscall_durations, struct syscall_key, struct hist_time, 4);

static __always_inline bool syscall_is_timed(u32 number)
{
	/* or clang 19 indexes with what the number was made of, which is not bounded */
	asm volatile("" : "+r"(number));
	return number < SYSCALL_NUMBERS && syscalls_duration.word[number / 64] >> number % 64 & 1;
}

static __noinline int syscall_duration_add(const struct owner *owner, u32 number, u64 ns)
{
	struct syscall_key key = { .owner = *owner, .syscall = number };

	hist_time_add_to(syscall_durations, &key, ns);
	return 0;
}

/* Sorts out a result that is not a plain success. False: the call has not ended. */
static __always_inline bool syscall_has_ended(u32 number, long ret, u32 *ret_error)
{
	if (syscall_is_birth(number, ret))
		return false;
	if (!syscall_restarts(ret)) {
		*ret_error = syscall_error(ret);
		return true;
	}
	if (SYSCALL_RESULT_STAYS || ret == -SYSCALL_ERESTARTNOINTR)
		return false;
	*ret_error = SYSCALL_EINTR;
	return true;
}

/* ns: how long a timed call took, else 0. */
static __always_inline void syscall_exit(const struct owner *any, u32 number, long ret, u64 ns)
{
	struct syscall_key key = { owner_for(any, syscalls_per_process), number, 0 };
	struct syscall_value *value;
	bool is_own;

	if (ns)
		syscall_duration_add(&key.owner, number, ns);
	if (ret <= 0 && !syscall_has_ended(number, ret, &key.error))
		return;
	if (key.error == SYSCALL_EINTR) {
		table_add_to(interrupted, &key, count, 1);
		return;
	}
	value = calls_at(&key, &is_own);
	if (value)
		table_count(&value->count, 1, is_own);
}

/* The kernel decides the same way just after: handle_signal() in arch/x86/kernel/signal.c. */
static __always_inline bool is_interrupted(long ret, struct k_sigaction *action)
{
	if (ret == -SYSCALL_ERESTARTSYS)
		return !(action->sa.sa_flags & SIGNAL_RESTARTS);
	return ret == -SYSCALL_ERESTARTNOHAND || ret == -SYSCALL_ERESTART_RESTARTBLOCK;
}

static __always_inline void syscall_interrupt(struct k_sigaction *action)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct syscall_key key = { .error = SYSCALL_EINTR };
	struct owner owner;
	u64 ns;

	if (!SYSCALL_RESULT_STAYS || syscall_raw_number(regs) == -1 ||
	    (u64)action->sa.sa_handler <= SIGNAL_IGNORED ||
	    !is_interrupted(syscall_result(regs), action))
		return;
	key.syscall = syscall_number(task, regs);
	owner_of_task_seldom(&owner, task);
	key.owner = owner_for(&owner, syscalls_per_process);
	table_add_to(interrupted, &key, count, 1);
	ns = syscall_is_timed(key.syscall) ? call_end_interrupted(task, key.syscall) : 0;
	if (ns)
		syscall_duration_add(&key.owner, key.syscall, ns);
}
