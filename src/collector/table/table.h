/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A flat table of a loaded object (bpf/include/table.h tells how it works), from the reader's side.
 * It is mapped and read in place. Only the part of it that programs use is mapped, and keys only
 * while a place is new.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/table/layout.h"
#include "collector/shape.h"
#include "metric/rows.h"
#include "util/store.h"

/*
 * A run: count numbers of size_bytes each, from offset_bytes in the value into cells from
 * first_cell on. A run of several numbers is the buckets of a histogram.
 */
struct reader_run {
	uint32_t offset_bytes;
	uint32_t size_bytes;
	uint32_t count;
	uint32_t first_cell;
	bool is_maximum; /* the largest of several CPUs' unsigned numbers counts, not their sum */
	/* that which changed last; the numbers of all CPUs follow it in the cells (reader.c) */
	bool is_last;
	uint8_t kind;	 /* kept by reader.c */
};

/* Nearly all are simple: sums are u64, the buckets of histograms u32. */
enum run_kind { RUN_OTHER,
		RUN_U64,
		RUN_U32 };

static inline enum run_kind run_kind(const struct reader_run *run)
{
	if (run->is_maximum || run->is_last || run->size_bytes < sizeof(uint32_t))
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
__attribute__((noinline, unused)) static void run_add_other(const struct reader_run *run,
							    const uint8_t *from, uint64_t *to)
{
	for (uint32_t i = 0; i < run->count && !run->is_last; i++, from += run->size_bytes) {
		uint64_t value = shape_load(from, run->size_bytes);

		if (!run->is_maximum)
			to[i] += value;
		else if (value > to[i])
			to[i] = value;
	}
}

/* What a value holds, to the cells of its row. */
static inline void run_add(const struct reader_run *run, const uint8_t *value, uint64_t *cells)
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

struct table {
	int words_fd, keys_fd, values_fd, data_fd; /* borrowed */
	uint32_t mask_offset_bytes;		   /* in data */
	uint32_t base;				   /* in words: a page begins there */
	uint32_t capacity, columns;
	uint32_t key_bytes, value_bytes;
	const struct reader_run *runs; /* borrowed; set by the caller, as is n_runs */
	size_t n_runs;
	bool is_past; /* of programs that have been replaced: which part they used is not known */

	/* kept by table.c */
	size_t stride_bytes; /* of a value: the kernel rounds it up to 8 */
	uint8_t *data;
	uint64_t *words; /* values, place_rows and end follow it */
	uint8_t *values, *end;
	uint32_t n_places;    /* mapped: all that were in use at the last reading */
	uint32_t *place_rows; /* the row of each place; 0: not known */
	uint32_t n_live;      /* places in use at the last reading */
	uint64_t *cells;
};

struct table table_from_parts(const struct table_parts *parts);
/*
 * A new table, before anything is attached; or one that an earlier process has left, wherever that
 * was killed:
 * - Places may be retired. They are read as before. The next sweep takes them out, after a grace
 *   period of its own.
 * - Places may have been taken out. They are retired again; table_restore() clears those that are
 *   in no row any more.
 * - Word 0 tells whether programs have put keys into the hash map, except between a reading's look
 *   at it and the end of that reading. So the hash map is read in the first reading.
 * - Programs go on counting and inserting, as they do at any time: a place that is being filled
 *   will be live.
 * -errno of mmap(), -ENOMEM.
 */
int table_open(struct table *table, uint32_t n_cells);
void table_close(struct table *table);

/* Rows have other numbers now: numbers[row]. */
void table_renumber(struct table *table, const uint32_t *numbers);
/* Adds what all places hold to rows, between rows_begin() and rows_end(). -errno. */
int table_read(struct table *table, struct rows *rows);
/*
 * Have programs put keys into the hash map since it was last found empty? Read it after this call,
 * and say so if it was not empty.
 */
bool table_take_spilled(struct table *table);
void table_put_spilled(struct table *table);

/*
 * Removal. Programs no longer find a place that is retired, but may be writing there for a while.
 * After they have ended, its numbers are final: table_take_out() takes them out of its row, and
 * readings leave it out. The place is vacant after table_clear(), which must wait for a state that
 * lists it (table_save()): a later process that has an older state counts the place as before.
 */
void table_retire(struct table *table, uint32_t place);
bool table_is_retired(const struct table *table, uint32_t place);
void table_take_out(struct table *table, struct rows *rows, uint32_t place);
bool table_is_out(const struct table *table, uint32_t place);
void table_clear(struct table *table, uint32_t place);
/*
 * Which places have been taken out, for a later process, which clears them after table_open().
 * -EINVAL.
 */
void table_save(const struct table *table, struct store *out);
int table_restore(struct table *table, struct stored *in);
/*
 * The row no longer has so much: it is taken out of its previous cells. So a row that lives on
 * elsewhere does not seem to shrink, and what came after the last reading is growth in the next
 * one.
 */
void table_leave(struct rows *rows, uint32_t row, const uint64_t *cells);
