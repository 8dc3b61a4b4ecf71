/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading a map of any type into rows: one row for each key, and each cell the sum over CPUs and
 * slots.
 *
 * - A flat table (bpf/include/table.h: an mmapable ARRAY whose value is {state, key, value}) is read in
 *   place, without a system call. The row that a slot feeds is remembered, because a key never moves.
 * - Hash maps of all kinds are read in batches (5.6), or key by key where the kernel lacks batches.
 * - Arrays are read in batches too (per-CPU arrays: 5.13). An entry that has always been zero is not a row.
 */

#include <stdbool.h>
#include <stdint.h>

#include "metric/rows.h"

/* count numbers of size_bytes each, from offset_bytes in the value into cells from first_cell on. */
struct source_run {
	uint32_t offset_bytes;
	uint32_t size_bytes;
	uint32_t count;
	uint32_t first_cell;
	bool is_maximum; /* the largest of several CPUs' unsigned numbers counts, not their sum */
	uint8_t kind;	 /* kept by source.c */
};

struct source {
	int fd;	  /* borrowed */
	int type; /* enum bpf_map_type */
	uint32_t key_bytes, value_bytes, max_entries;
	struct source_run *runs; /* borrowed */
	size_t n_runs;

	bool is_table;
	uint32_t key_offset_bytes, value_offset_bytes; /* in a slot */
	uint32_t slots_per_cpu;

	/* kept by source.c */
	size_t stride_bytes; /* of a value: the kernel rounds it up to 8 */
	size_t values_bytes; /* of one key: as many values as there are possible CPUs, or one */
	uint8_t *memory;     /* the mapped table, or room for a batch */
	size_t memory_bytes;
	uint32_t *slot_rows; /* table: row of each slot, 0: not known */
	uint32_t batch;	     /* entries a batch; 0: not yet tried, UINT32_MAX: the kernel has none */
	uint64_t full;	     /* table: slices whose overflow slot is in use */
};

/* How many cells the runs fill. */
uint32_t source_n_cells(const struct source *source);
/* The caller sets the rest before. -errno of mmap(), -ENOMEM. */
int source_open(struct source *source);
/*
 * rows_begin() and all that follows. rows must be the same in each call, made for keys of
 * key_bytes. -errno: the rows hold only what was read by then, so nobody knows which keys are gone.
 */
int source_read(struct source *source, struct rows *rows);
/*
 * Removes a key, whose owner is gone so that nothing writes to it, from the map. Entries of arrays
 * stay.
 */
void source_remove(struct source *source, struct rows *rows, uint32_t row);
void source_close(struct source *source);
