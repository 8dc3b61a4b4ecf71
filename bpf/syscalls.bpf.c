/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls by name and error, counted when they return: one hook, no clock, no helper call. Durations
 * cost a second hook and two clock readings, so they are measured only for the calls that the user names.
 * Without such calls the second hook is not attached.
 *
 * A call that a signal interrupts returns a result that only the kernel understands. Either the call
 * starts again, and counts when it finally returns, or the program gets EINTR. The kernel decides this
 * when it delivers the signal, so EINTR is counted there.
 */
#include "owner.h"
#include "hist.h"
#include "syscall.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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
	lbl_errno error; /* always 0 in durations */
};

struct syscall_value {
	u64 count;
};

struct syscall_start {
	u64 ns;
	u64 interrupted_ns; /* time until the signal came */
	u32 syscall;
};

const volatile prm_syscalls duration;

/* Each has one writer, except interrupted, which is rare and has two. */
TABLE(syscalls, struct syscall_key, struct syscall_value, 2048);
TABLE(interrupted, struct syscall_key, struct syscall_value, 256);
TABLE(durations, struct syscall_key, struct hist_time, 256);

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct syscall_start);
} starts SEC(".maps");

static __always_inline bool is_timed(u32 syscall)
{
	return syscall < SYSCALL_NUMBERS && duration.word[syscall / 64] >> syscall % 64 & 1;
}

static __noinline int duration_add(const struct owner *owner, u32 syscall, u64 ns)
{
	struct syscall_key key = { .owner = *owner, .syscall = syscall };
	struct hist_time *value;

	value = durations_at(&key);
	if (value)
		hist_time_add_atomic(value, ns);
	return 0;
}

static __always_inline void interrupted_add(const struct syscall_key *key)
{
	struct syscall_value *value = interrupted_at(key);

	if (value)
		table_add(&value->count, 1);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 syscall = syscall_number(task, regs);
	struct syscall_start *start;

	if (!is_timed(syscall))
		return 0;
	start = bpf_task_storage_get(&starts, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!start)
		return 0;
	start->syscall = syscall;
	start->interrupted_ns = 0;
	start->ns = bpf_ktime_get_ns();
	return 0;
}

/* Also NULL for a call that began before the hook was attached. */
static __always_inline struct syscall_start *start_of(struct task_struct *task, u32 syscall)
{
	struct syscall_start *start = bpf_task_storage_get(&starts, task, NULL, 0);

	return start && start->ns && start->syscall == syscall ? start : NULL;
}

static __noinline int syscall_time(struct task_struct *task, const struct owner *owner, u32 syscall,
				   bool restarts)
{
	struct syscall_start *start = start_of(task, syscall);
	u64 ns;

	if (!start)
		return 0;
	ns = bpf_ktime_get_ns() - start->ns;
	if (restarts) {
		start->interrupted_ns = ns;
		return 0;
	}
	start->ns = 0;
	return duration_add(owner, syscall, ns);
}

/* Sorts out a result that is not a plain success. False: the call has not ended. */
static __always_inline bool has_ended(u32 syscall, long ret, u32 *ret_error)
{
	if (syscall_is_birth(syscall, ret))
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

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct syscall_key key;
	struct syscall_value *value;

	key.syscall = syscall_number_at_exit(task, regs, &ret);
	key.error = 0;
	owner_of_task(&key.owner, task); /* before any branch: see owner_of_task_seldom() */
	if (is_timed(key.syscall))
		syscall_time(task, &key.owner, key.syscall, syscall_restarts(ret));
	if (ret <= 0 && !has_ended(key.syscall, ret, &key.error))
		return 0;
	if (key.error == SYSCALL_EINTR) {
		interrupted_add(&key);
		return 0;
	}
	value = syscalls_at(&key);
	if (value)
		value->count++;
	return 0;
}

/* The kernel decides the same way just after: handle_signal() in arch/x86/kernel/signal.c. */
static __always_inline bool is_interrupted(long ret, struct k_sigaction *action)
{
	if (ret == -SYSCALL_ERESTARTSYS)
		return !(action->sa.sa_flags & SIGNAL_RESTARTS);
	return ret == -SYSCALL_ERESTARTNOHAND || ret == -SYSCALL_ERESTART_RESTARTBLOCK;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(signal_deliver, int signal, void *info, struct k_sigaction *action)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct syscall_key key = { .error = SYSCALL_EINTR };
	struct syscall_start *start;

	if (!SYSCALL_RESULT_STAYS || syscall_raw_number(regs) == -1 ||
	    (u64)action->sa.sa_handler <= SIGNAL_IGNORED ||
	    !is_interrupted(syscall_result(regs), action))
		return 0;
	key.syscall = syscall_number(task, regs);
	owner_of_task_seldom(&key.owner, task);
	interrupted_add(&key);
	start = is_timed(key.syscall) ? start_of(task, key.syscall) : NULL;
	if (start) {
		start->ns = 0;
		duration_add(&key.owner, key.syscall, start->interrupted_ns);
	}
	return 0;
}
