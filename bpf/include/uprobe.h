/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * What programs of uprobes, uretprobes and USDT need:
 *
 *	int NAME(struct pt_regs *ctx) { return KEEP_STACK(ctx, run(ctx)); }
 *
 * From 6.13 on, the kernel gives a program with much on its stack another stack, one for each CPU.
 * But it may preempt the program of a uprobe, and the next run on that CPU then spoils the stack. A
 * program that may go on as another one, although there is none, keeps its thread's stack. On arm64
 * before 6.0 such programs cannot call functions.
 */

#include "kernel.h"

#if defined(__TARGET_ARCH_x86)
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} no_program SEC(".maps");

#define KEEP_STACK(ctx, run) (bpf_tail_call(ctx, &no_program, 0), run)
#else
#define KEEP_STACK(ctx, run) run
#endif
