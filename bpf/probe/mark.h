/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * Arguments of a USDT. It may be in several places of its file, each with operands of its own,
 * which notes in the file describe. The agent reads the notes (src/collector/hook/mark.h), and
 * attaches a uprobe to each place; its cookie is the key here.
 */

#include "kernel.h"

#define MARK_ARGUMENTS 6

/* number + base + (index << shift), or what is in the program's memory there. */
struct mark_argument {
	s64 number;
	u16 base, index; /* registers: 1 + their place in struct pt_regs; 0: none */
	u8 shift, bytes;
	bool is_signed, is_memory;
};

struct mark_place {
	struct mark_argument arguments[MARK_ARGUMENTS];
};

/* How many places there are; a probe at another hook has the map, too. */
const volatile u32 mark_places_entries = 1;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mark_place);
} mark_places SEC(".maps");

static __always_inline u64 mark_register(void *ctx, u16 which)
{
	u64 value = 0;

	if (which)
		bpf_probe_read_kernel(&value, sizeof(value), ctx + which - 1);
	return value;
}

/* 0 if the operand has a form that the agent does not know. */
static __always_inline u64 mark_argument(void *ctx, u32 n)
{
	u32 number = bpf_get_attach_cookie(ctx), unused;
	const struct mark_place *place = bpf_map_lookup_elem(&mark_places, &number);
	const struct mark_argument *argument;
	u64 value, address;
	u32 bytes;

	if (!place || n >= MARK_ARGUMENTS)
		return 0;
	argument = &place->arguments[n];
	if (!argument->bytes)
		return 0;
	bytes = ((argument->bytes - 1) & 7) + 1; /* the verifier sees that it is not more */
	address = argument->number + mark_register(ctx, argument->base) +
		  (mark_register(ctx, argument->index) << (argument->shift & 3));
	value = address;
	if (argument->is_memory) {
		value = 0;
		bpf_probe_read_user(&value, bytes, (void *)address);
	}
	unused = 64 - 8 * bytes;
	value <<= unused;
	return argument->is_signed ? (s64)value >> unused : value >> unused;
}
