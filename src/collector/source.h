/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading a map into rows: whatever its type, one row a key, each cell the sum over CPUs and slots.
 *
 * - A flat table (bpf/include/table.h: an mmapable ARRAY whose value is {state, key, value}) is read in
 *   place, without a system call; which row a slot feeds is remembered, for a key never moves.
 * - Hash maps of all kinds are read in batches (5.6), key by key where the kernel lacks that.
 * - Arrays are read in batches too (per-CPU ones: 5.13); entries that are all zero are no rows.
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
};

struct source {
	int fd;	  /* borrowed */
	int type; /* enum bpf_map_type */
	uint32_t key_bytes, value_bytes, max_entries;
	struct rows *rows; /* borrowed */
	const struct source_run *runs;
	uint32_t n_runs;

	bool is_table;
	uint32_t key_offset_bytes, value_offset_bytes; /* in a slot */
	uint32_t slots_per_cpu;

	/* kept by source.c */
	uint8_t *memory; /* the mapped table, or room for a batch */
	size_t memory_bytes;
	uint32_t *slot_rows; /* table: row of each slot, 0: not known */
	uint32_t batch;	     /* entries a batch; 0: not yet tried, UINT32_MAX: the kernel has none */
	uint64_t full;	     /* table: slices whose overflow slot is in use */
};

/* The rest is set by the caller. -errno of mmap(), -ENOMEM. */
int source_open(struct source *source);
/* rows_begin() and all that follows. -errno; what was read by then is in the rows. */
int source_read(struct source *source);
/* Takes a key out of the map: the owner is gone and nothing writes to it any more. Entries of arrays stay. */
void source_remove(struct source *source, uint32_t row);
void source_close(struct source *source);
