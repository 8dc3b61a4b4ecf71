/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * A system call as the hooks sys_enter and sys_exit see it, on each architecture: its number, its
 * arguments, and what its result means. This header deals with everything that is odd about the two
 * hooks.
 */

#include "function.h"
#include "label.h"

/* What lbl_syscall holds besides the numbers of the machine's own ABI. */
/* added to the number of a call of 32-bit code: "compat_read" */
#define SYSCALL_COMPAT	0x80000000u
/* numbers that no kernel has (and x32), all in one: "unknown" */
#define SYSCALL_UNKNOWN 0x7fffffffu
#define SYSCALL_NUMBERS 512	    /* those of a kernel end below: 470 in 6.18 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#ifndef __VMLINUX_H__
struct thread_info {
	unsigned long flags;
	u32 status; /* x86 */
};
#endif

struct task_struct___thread {
	struct thread_info thread_info;
};

#pragma clang attribute pop

#define syscall_thread_(task) (((struct task_struct___thread *)(task))->thread_info)

#if defined(__TARGET_ARCH_x86)

#define SYSCALL_CLONE	     56 /* fork and vfork follow */
#define SYSCALL_VFORK	     58
#define SYSCALL_CLONE3	     435
#define SYSCALL_SIGRETURN    15
#define SYSCALL_COMPAT_FORK  2
#define SYSCALL_COMPAT_CLONE 120
#define SYSCALL_COMPAT_VFORK 190

/* arch/x86/include/asm/thread_info.h: TS_COMPAT; set until after sys_exit. */
#define syscall_is_compat(task) (syscall_thread_(task).status & 2)
#define syscall_raw_number(regs) ((s32)(regs)->orig_ax)

/*
 * The result at sys_exit stays in place until a signal is handled, so restarts can be judged then.
 */
#define SYSCALL_RESULT_STAYS 1
#define syscall_result(regs) ((long)(regs)->ax)

#define syscall_argument_0(regs, compat) ((compat) ? (regs)->bx : (regs)->di)
#define syscall_argument_1(regs, compat) ((compat) ? (regs)->cx : (regs)->si)
#define syscall_argument_2(regs, compat) ((regs)->dx)

#elif defined(__TARGET_ARCH_arm64)

#define SYSCALL_CLONE	     220
#define SYSCALL_VFORK	     220
#define SYSCALL_CLONE3	     435
#define SYSCALL_SIGRETURN    139
#define SYSCALL_COMPAT_FORK  2
#define SYSCALL_COMPAT_CLONE 120
#define SYSCALL_COMPAT_VFORK 190

/* arch/arm64/include/asm/thread_info.h: TIF_32BIT */
#define syscall_is_compat(task) (syscall_thread_(task).flags >> 22 & 1)
#define syscall_raw_number(regs) ((regs)->syscallno)

/* do_signal() prepares the restart before it takes a signal, so later it is too late to judge. */
#define SYSCALL_RESULT_STAYS 0
#define syscall_result(regs) ((long)(regs)->regs[0])

#define syscall_argument_0(regs, compat) ((void)(compat), (regs)->orig_x0)
#define syscall_argument_1(regs, compat) ((void)(compat), (regs)->regs[1])
#define syscall_argument_2(regs, compat) ((void)(compat), (regs)->regs[2])

#endif

/* include/linux/errno.h: results that only the kernel sees. */
enum {
	SYSCALL_EINTR = 4,
	SYSCALL_ENOSYS = 38,
	SYSCALL_EHWPOISON = 133, /* the last that has a name */
	SYSCALL_ERESTARTSYS = 512,
	SYSCALL_ERESTARTNOINTR = 513,
	SYSCALL_ERESTARTNOHAND = 514,
	SYSCALL_ERESTART_RESTARTBLOCK = 516,
};

/* The call has not ended: a signal is pending. After it, the call starts again or returns EINTR. */
static __always_inline bool syscall_restarts(long ret)
{
	return (u64)(-ret - SYSCALL_ERESTARTSYS) <=
	       SYSCALL_ERESTART_RESTARTBLOCK - SYSCALL_ERESTARTSYS;
}

/*
 * errno, 0 for success: only -4095..-1 are errors (mmap returns addresses). A seccomp filter can
 * make up any of them, so those without a name are one: they cannot fill a table.
 */
static __always_inline u32 syscall_error(long ret)
{
	if ((u64)ret < (u64)-4095l)
		return 0;
	return ret < -SYSCALL_EHWPOISON ? SYSCALL_EHWPOISON + 1 : -ret;
}

/* The number for lbl_syscall. */
static __always_inline u32 syscall_number(struct task_struct *task, struct pt_regs *regs)
{
	u32 number = syscall_raw_number(regs);

	if (number >= SYSCALL_NUMBERS)
		number = SYSCALL_UNKNOWN;
	if (syscall_is_compat(task))
		number |= SYSCALL_COMPAT;
	return number;
}

/*
 * The number at sys_exit. rt_sigreturn() overwrites its own number, and what it returns is not a
 * result. If a debugger or a program has set the number to -1, the result is ENOSYS.
 */
static __always_inline u32 syscall_number_at_exit(struct task_struct *task,
						  struct pt_regs *regs, long *ret)
{
	u32 number = syscall_raw_number(regs);

	if (number >= SYSCALL_NUMBERS) {
		if (number == -1u && *ret != -SYSCALL_ENOSYS) {
			number = SYSCALL_SIGRETURN;
			*ret = 0;
		} else {
			number = SYSCALL_UNKNOWN;
		}
	}
	if (syscall_is_compat(task))
		number |= SYSCALL_COMPAT;
	return number;
}

/*
 * When a forked child first returns to user space, it looks like a second return of clone(), with
 * 0.
 */
static __always_inline bool syscall_is_birth(u32 number, long ret)
{
	if (ret)
		return false;
	if (number & SYSCALL_COMPAT)
		return number == (SYSCALL_COMPAT | SYSCALL_COMPAT_CLONE) ||
		       number == (SYSCALL_COMPAT | SYSCALL_COMPAT_FORK) ||
		       number == (SYSCALL_COMPAT | SYSCALL_COMPAT_VFORK) ||
		       number == (SYSCALL_COMPAT | SYSCALL_CLONE3);
	return number - SYSCALL_CLONE <= SYSCALL_VFORK - SYSCALL_CLONE || number == SYSCALL_CLONE3;
}
