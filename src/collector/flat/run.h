/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A run: count numbers of size_bytes each, from offset_bytes in the value into cells from first_cell on. A run
 * of several numbers is the buckets of a histogram.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/shape.h"

struct source_run {
	uint32_t offset_bytes;
	uint32_t size_bytes;
	uint32_t count;
	uint32_t first_cell;
	bool is_maximum; /* the largest of several CPUs' unsigned numbers counts, not their sum */
	uint8_t kind;	 /* kept by source.c */
};

/* Nearly all are simple: sums are u64, the buckets of histograms u32. */
enum run_kind { RUN_OTHER,
		RUN_U64,
		RUN_U32 };

static inline enum run_kind run_kind(const struct source_run *run)
{
	if (run->is_maximum || run->size_bytes < sizeof(uint32_t))
		return RUN_OTHER;
	return run->size_bytes == sizeof(uint64_t) ? RUN_U64 : RUN_U32;
}

/* The members of a value lie at any place. */
struct unaligned_u64 {
	uint64_t value;
} __attribute__((packed));

struct unaligned_u32 {
	uint32_t value;
} __attribute__((packed));

/* The rest: narrow numbers, and levels of several CPUs. */
__attribute__((noinline, unused)) static void run_add_other(const struct source_run *run, const uint8_t *from,
							    uint64_t *to)
{
	for (uint32_t i = 0; i < run->count; i++, from += run->size_bytes) {
		uint64_t value = shape_load(from, run->size_bytes);

		if (!run->is_maximum)
			to[i] += value;
		else if (value > to[i])
			to[i] = value;
	}
}

/* What a value holds, to the cells of its row. */
static inline void run_add(const struct source_run *run, const uint8_t *value, uint64_t *cells)
{
	const uint8_t *from = value + run->offset_bytes;
	uint64_t *to = cells + run->first_cell;

	if (run->kind == RUN_U64)
		for (uint32_t i = 0; i < run->count; i++)
			to[i] += ((const struct unaligned_u64 *)from)[i].value;
	else if (run->kind == RUN_U32)
		for (uint32_t i = 0; i < run->count; i++)
			to[i] += ((const struct unaligned_u32 *)from)[i].value;
	else
		run_add_other(run, from, to);
}
