/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading a map of any type into rows: one row for each key, and each cell the sum over CPUs and
 * places.
 *
 * - A flat table (bpf/include/table.h) is read in place, without a system call. The hash map for
 *   keys that found no place there is read too, if programs have used it.
 * - Hash maps and arrays of all kinds are read in batches (per-CPU arrays since 5.13). An entry of
 *   an array that has always been zero is not a row.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collector/table/table.h"
#include "collector/reader/record.h"
#include "metric/rows.h"

struct reader {
	/* owned; they are counted, instead of what the map holds; NULL: it has none */
	struct records *records;
	int fd;	  /* borrowed; of a flat table its hash map's, as are the next three */
	int type; /* enum bpf_map_type */
	uint32_t key_bytes, value_bytes;
	struct reader_run *runs; /* borrowed */
	size_t n_runs;

	bool is_mortal; /* keys are removed that programs may still count */
	/* of its number, if each CPU of a key has a row: the rows' keys end with it */
	uint32_t cpu_bytes;
	bool is_table;
	struct table table; /* table_from_parts() */

	/* kept by reader.c */
	size_t stride_bytes; /* of a value: the kernel rounds it up to 8 */
	size_t values_bytes; /* of one key: as many values as there are possible CPUs, or one */
	uint8_t *memory;     /* room for a batch, and for the key of a row */
	uint32_t batch;	     /* entries a batch; 0: not yet tried */
	uint32_t n_spilled;  /* table: keys in its hash map at the last reading */
};

/*
 * Readings without growth before a key may leave a hash map, where nothing keeps it safe for its
 * last writer.
 */
#define READER_IDLE_READINGS 2

/*
 * What maps of a type are like. In a flat table, the CPUs that count are not known by their
 * numbers.
 */
enum reader_traits { READER_PERCPU = 1, READER_ARRAY = 2, READER_READABLE = 4, READER_RECORDS = 8 };
enum reader_traits reader_traits(int type);
/* The CPU whose row it is, if cpu_bytes. */
static inline uint32_t reader_row_cpu(const struct reader *reader, const void *row_key)
{
	return (uint32_t)shape_load((const uint8_t *)row_key + reader->key_bytes, sizeof(uint32_t));
}

/* How many cells the runs fill. */
uint32_t reader_n_cells(const struct reader *reader);
/* The caller sets the rest before. -errno of mmap(), -ENOMEM. */
int reader_open(struct reader *reader);
/*
 * rows_begin() and all that follows. rows must be the same in each call, made for keys of
 * key_bytes. -errno: the rows hold only what was read by then, so nobody knows which keys are gone.
 */
int reader_read(struct reader *reader, struct rows *rows);
/*
 * Removes a key from a hash map, which may be that of a table, of a row that is_in_hash. Nothing
 * writes to it, because its owner is gone; or it is_mortal. It stays if it has grown since the last
 * reading, if the table has a place for it as well, or if the row of another CPU is not idle.
 */
void reader_remove(struct reader *reader, struct rows *rows, uint32_t row);
void reader_close(struct reader *reader);
/* The same for one on the heap, or NULL. */
struct reader *reader_free(struct reader *reader);
