/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* Arguments, results and fields at any hook. */

#include <linux/ptrace.h>

#if defined(__TARGET_ARCH_arm64) && !defined(PSR_MODE_EL0t)
/* Compiled with the headers of another machine, to see that it is right for this one, too. */
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
#endif

#include <linux/bpf_perf_event.h>

#include "mark.h"
#include "owner.h"

enum probe_place {
	PROBE_ENTER_KERNEL,
	PROBE_LEAVE_KERNEL,
	PROBE_ENTER_USER,
	PROBE_LEAVE_USER,
	PROBE_MARK,  /* a USDT */
	PROBE_RAW,   /* a tracepoint, with its arguments */
	PROBE_EVENT, /* a tracepoint, with the fields of its record */
	PROBE_SAMPLE,
};

enum probe_from {
	PROBE_FROM_NOTHING,
	PROBE_FROM_ARG0,
	PROBE_FROM_ARG1,
	PROBE_FROM_ARG2,
	PROBE_FROM_ARG3,
	PROBE_FROM_ARG4,
	PROBE_FROM_ARG5,
	PROBE_FROM_RET,
	PROBE_FROM_FIELD,
};

/* How the text of a field is found. */
enum probe_text {
	PROBE_TEXT_POINTER,
	PROBE_TEXT_ARRAY,
	PROBE_TEXT_LOCATION, /* __data_loc: its place in the record */
	PROBE_TEXT_RELATIVE, /* __rel_loc: its place after the field */
};

struct probe_read {
	enum probe_from from;
	u32 offset, bytes; /* offset: of a field */
	bool is_signed;
	bool is_error;	 /* all but errors become 0 */
	bool is_swapped; /* in network byte order */
};

#define PROBE_READ(NAME)                                                                           \
	const volatile enum probe_from NAME##_from = PROBE_FROM_NOTHING;                           \
	const volatile u32 NAME##_offset = 0;                                                      \
	const volatile u32 NAME##_bytes = 8;                                                       \
	const volatile bool NAME##_signed = true;                                                  \
	const volatile bool NAME##_error = false;                                                  \
	const volatile bool NAME##_swapped = false

#define probe_read_of(NAME)                                                                        \
	((struct probe_read){ NAME##_from, NAME##_offset, NAME##_bytes, NAME##_signed,             \
			      NAME##_error, NAME##_swapped })

/*
 * The compiler must not make one load of several, from an address that depends on n: the verifier
 * refuses that.
 */
#define probe_take_(n, number, value)                                                              \
	if ((n) == (number)) {                                                                     \
		u64 taken_ = (value);                                                              \
		asm volatile("/* " #number " */" : "+r"(taken_));                                  \
		return taken_;                                                                     \
	}
#define probe_take(n, a, b, c, d, e, f)                                                            \
	do {                                                                                       \
		probe_take_(n, 0, a) probe_take_(n, 1, b) probe_take_(n, 2, c)                     \
		probe_take_(n, 3, d) probe_take_(n, 4, e) probe_take_(n, 5, f)                     \
	} while (0)

static __always_inline u64 probe_register(struct pt_regs *regs, u32 n)
{
#if defined(__TARGET_ARCH_x86)
	probe_take(n, regs->rdi, regs->rsi, regs->rdx, regs->rcx, regs->r8, regs->r9);
#elif defined(__TARGET_ARCH_arm64)
	u64 *arm = (u64 *)((struct user_pt_regs *)regs)->regs;

	probe_take(n, arm[0], arm[1], arm[2], arm[3], arm[4], arm[5]);
#else
#error "the registers of this machine are not known here"
#endif
	return 0;
}

static __always_inline u64 probe_raw_argument(struct bpf_raw_tracepoint_args *raw, u32 n)
{
	probe_take(n, raw->args[0], raw->args[1], raw->args[2], raw->args[3], raw->args[4],
		   raw->args[5]);
	return 0;
}

static __always_inline u64 probe_argument(void *ctx, enum probe_place place, u32 n)
{
	if (place == PROBE_ENTER_KERNEL || place == PROBE_ENTER_USER)
		return probe_register(ctx, n);
	if (place == PROBE_RAW)
		return probe_raw_argument(ctx, n);
	return place == PROBE_MARK ? mark_argument(ctx, n) : 0;
}

/* The errno that a number means, or 0. */
static __always_inline u32 probe_errno(s64 number)
{
	return number < 0 && number >= -4095 ? -number : 0;
}

/* Like probe_errno(), for a register. A function of type int leaves its upper half 0. */
static __always_inline u32 probe_error(u64 result)
{
	return probe_errno(result >> 32 ? (s64)result : (s32)result);
}

static __always_inline s64 probe_number(void *ctx, enum probe_place place, struct probe_read read)
{
	u32 unused = 64 - 8 * read.bytes;
	u64 value = 0;

	if (read.from == PROBE_FROM_FIELD)
		bpf_probe_read_kernel(&value, read.bytes & 15, ctx + read.offset);
	else if (read.from == PROBE_FROM_RET)
		value = PT_REGS_RC((struct pt_regs *)ctx);
	else if (read.from != PROBE_FROM_NOTHING)
		value = probe_argument(ctx, place, read.from - PROBE_FROM_ARG0);
	value <<= unused;
	if (read.is_swapped)
		return __builtin_bswap64(value);
	value = read.is_signed ? (s64)value >> unused : (s64)(value >> unused);
	if (!read.is_error)
		return value;
	return -(s64)(read.from == PROBE_FROM_FIELD ? probe_errno(value) : probe_error(value));
}
