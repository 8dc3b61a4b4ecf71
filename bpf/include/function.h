/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * A CPU's registers. They hold the arguments of a function where it begins, and its result where it
 * ends: for kprobes and uprobes. This is not the struct pt_regs of <linux/ptrace.h>: include one of
 * the two.
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

/*
 * An alternative, HOOK__multi, for a program at a tracepoint, HOOK__btf, on kernels that preempt
 * that one and then skip events. Nothing preempts this one, and it needs no more rights. It is at
 * the function that the kernel calls as soon as two programs are attached to the tracepoint, here
 * empty ones. The function's first argument is nobody's; the others are the tracepoint's.
 *
 *     AT_TRACEPOINT(udp_send, sock_send_length)
 *     {
 *             return send((void *)function_argument_2(ctx), function_argument_3(ctx));
 *     }
 *
 * It is skipped where it interrupts another kprobe or classic tracepoint, so it is not for what
 * interrupts do.
 */
#define AT_TRACEPOINT(hook, tracepoint)                                                            \
	SEC("tp_btf/" #tracepoint)                                                                 \
	int hook##__multi__on(void *ctx)                                                           \
	{                                                                                          \
		return 0;                                                                          \
	}                                                                                          \
	SEC("tp_btf/" #tracepoint)                                                                 \
	int hook##__multi__more(void *ctx)                                                         \
	{                                                                                          \
		return 0;                                                                          \
	}                                                                                          \
	SEC("kprobe.multi/__traceiter_" #tracepoint)                                               \
	int hook##__multi(struct pt_regs *ctx)
