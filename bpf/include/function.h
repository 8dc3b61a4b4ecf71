/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * A CPU's registers. They hold the arguments of a function where it begins, and its result where it ends: for
 * kprobes and uprobes. This is not the struct pt_regs of <linux/ptrace.h>: include one of the two.
 */

#include "kernel.h"

#if defined(__TARGET_ARCH_x86)
#ifndef __VMLINUX_H__
struct pt_regs {
	unsigned long bx, cx, dx, si, di, bp, r8, r10, ax, orig_ax;
} __attribute__((preserve_access_index));
#endif

#define function_argument_1(ctx) ((ctx)->di)
#define function_argument_2(ctx) ((ctx)->si)
#define function_argument_3(ctx) ((ctx)->dx)
#define function_argument_4(ctx) ((ctx)->cx)
#define function_result(ctx)	 ((ctx)->ax)
#elif defined(__TARGET_ARCH_arm64)
#ifndef __VMLINUX_H__
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
} __attribute__((preserve_access_index));
#endif

#define function_argument_1(ctx) ((ctx)->regs[0])
#define function_argument_2(ctx) ((ctx)->regs[1])
#define function_argument_3(ctx) ((ctx)->regs[2])
#define function_argument_4(ctx) ((ctx)->regs[3])
#define function_result(ctx)	 ((ctx)->regs[0])
#else
#error "the registers of this machine are not known here"
#endif
