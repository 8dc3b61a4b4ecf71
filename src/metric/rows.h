/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The snapshot of one map: what each of its keys held at this reading and at the one before. Pure
 * memory; a source fills it, delta_compute() turns growth into series.
 *
 * A row is a key with n_cells numbers ("cells"). Each cell is the sum over all CPUs and places in
 * which the key was found, modulo 2^64, however wide it is in the kernel. A row keeps its number
 * until rows_compact() or its removal, so a source may remember the number. Row ROWS_OVERFLOW has
 * no key: it counts everything whose key had no place in the kernel's table.
 *
 * One reading:  rows_begin(), then for each thing found rows_touch() and additions to its cells,
 * then rows_end().
 *
 * rows_compact() and rows_touch() may move all rows: pointers to keys, cells and series are valid
 * until the next call of either.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"
#include "util/index.h"

#define ROWS_OVERFLOW 0u

/* Does a row stay that a reading does not find? */
enum rows_stay { ROWS_GO,
		 ROWS_ONCE,  /* its last growth is still to be given */
		 ROWS_KEPT }; /* its owner is there */

/* What is known of a row; its key, cells and series follow. */
struct row {
	/* kept by rows.c */
	uint64_t hash;
	uint32_t generation; /* of the last touch; 0: free */
	union {
		uint32_t next_free; /* of a free one */
		/* CLOCK_BOOTTIME, when it had grown last; 0: not known. Set by others */
		uint32_t grown_s;
	};
	/* kept by delta.c */
	/* readings in a row without growth; a large number if the overflow row has never grown */
	uint32_t idle;
	bool is_unwanted; /* it feeds no series */
	/* its key was found in a hash map. Set by reader.c, as is the next by others */
	bool is_in_hash;
	bool is_doomed;	  /* its key is to be deleted there, unless it grows */
	uint8_t stay;	  /* enum rows_stay; set by others too */
};

/* Changed through the functions below. */
struct rows {
	uint32_t n_cells;
	size_t n;	 /* numbers in use or free again */
	uint32_t n_live;    /* without the overflow row */
	uint32_t n_touched; /* in this reading, the overflow row included */

	/* kept by rows.c */
	uint32_t key_bytes;
	size_t stride, cells_at, previous_at, series_at;
	uint8_t *records;
	uint32_t first_free; /* 0: none */
	uint32_t generation;
	struct index index;
};

/* n_series: places for pointers that delta.c keeps with a row. -ENOMEM. */
int rows_new(uint32_t key_bytes, uint32_t n_cells, uint32_t n_series, struct rows **ret_rows);
struct rows *rows_free(struct rows *rows);

/*
 * Between readings: if most rows are free, the others take the lowest numbers, and memory is given
 * back. Returns the new number of each row, by its old one, for the caller to free; or NULL:
 * nothing has changed.
 */
uint32_t *rows_compact(struct rows *rows);

void rows_begin(struct rows *rows);
/*
 * The row of key, made if it is new, with cells of 0 if this is its first touch in this reading.
 * -ENOMEM.
 */
int rows_touch(struct rows *rows, const void *key, uint32_t *ret_row);
/*
 * Touches a row by its number, which must be that of a living row. Returns its cells of this
 * reading.
 */
uint64_t *rows_touch_row(struct rows *rows, uint32_t row);
/* The row of a key that has been touched in any reading; ROWS_OVERFLOW: there is none. */
uint32_t rows_find(const struct rows *rows, const void *key);
/* All has been found: touches the other rows that stay. */
void rows_end(struct rows *rows);

static inline struct row *rows_at(const struct rows *rows, uint32_t row)
{
	return (struct row *)(rows->records + row * rows->stride);
}

/* The cells of this reading. */
static inline uint64_t *rows_cells(const struct rows *rows, uint32_t row)
{
	return (uint64_t *)(rows->records + row * rows->stride + rows->cells_at);
}

/* The cells of the reading before; 0 in the first one. */
static inline uint64_t *rows_previous(const struct rows *rows, uint32_t row)
{
	return (uint64_t *)(rows->records + row * rows->stride + rows->previous_at);
}

static inline const void *rows_key(const struct rows *rows, uint32_t row)
{
	return rows_at(rows, row) + 1;
}

static inline struct series **rows_series(const struct rows *rows, uint32_t row)
{
	return (struct series **)(rows->records + row * rows->stride + rows->series_at);
}

static inline bool rows_is_live(const struct rows *rows, uint32_t row) /* row < .n */
{
	return rows_at(rows, row)->generation != 0;
}

static inline bool rows_is_touched(const struct rows *rows, uint32_t row) /* in this reading */
{
	return rows_at(rows, row)->generation == rows->generation;
}

void rows_remove(struct rows *rows, uint32_t row);

DEFINE_CLEANUP(struct rows *, rows_free);
