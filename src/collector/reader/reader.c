/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reading never changes a map: programs go on counting meanwhile, and what they add after a key
 * has been read is seen in the next reading. So a number is never lost or counted twice, but two
 * numbers of one reading may be some microseconds apart.
 *
 * Flat tables are the fast path (table/table.c). All other types take one system call for hundreds
 * of keys. A reading that breaks off must not pass for a whole one, because keys that it did not
 * reach would count as gone, and as new the next time.
 */
#include "collector/reader/reader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define BATCH_ENTRIES 512

static const uint8_t traits[] = {
	[BPF_MAP_TYPE_HASH] = READER_READABLE,
	[BPF_MAP_TYPE_LRU_HASH] = READER_READABLE,
	[BPF_MAP_TYPE_PERCPU_HASH] = READER_READABLE | READER_PERCPU,
	[BPF_MAP_TYPE_LRU_PERCPU_HASH] = READER_READABLE | READER_PERCPU,
	[BPF_MAP_TYPE_ARRAY] = READER_READABLE | READER_ARRAY,
	[BPF_MAP_TYPE_PERCPU_ARRAY] = READER_READABLE | READER_ARRAY | READER_PERCPU,
	[BPF_MAP_TYPE_RINGBUF] = READER_RECORDS,
	[BPF_MAP_TYPE_PERF_EVENT_ARRAY] = READER_RECORDS,
};

enum reader_traits reader_traits(int type)
{
	return (enum reader_traits)((size_t)type < ARRAY_SIZE(traits) ? traits[type] : 0);
}

uint32_t reader_n_cells(const struct reader *reader)
{
	const struct reader_run *last = reader->n_runs ? &reader->runs[reader->n_runs - 1] : NULL;

	return last ? last->first_cell + last->count : 0;
}

static int grow_batch(struct reader *reader)
{
	uint32_t batch = reader->batch ? reader->batch * 2 : BATCH_ENTRIES;
	uint8_t *memory = realloc(reader->memory,
				  batch * (reader->key_bytes + reader->values_bytes) +
						  reader->key_bytes + reader->cpu_bytes);

	if (!memory)
		return -ENOMEM;
	reader->memory = memory;
	reader->batch = batch;
	return 0;
}

int reader_open(struct reader *reader)
{
	struct table *table = &reader->table;

	for (uint32_t i = 0; i < reader->n_runs; i++)
		reader->runs[i].kind = run_kind(&reader->runs[i]);
	reader->stride_bytes = ((size_t)reader->value_bytes + 7) / 8 * 8;
	reader->values_bytes = reader->value_bytes;
	if (traits[reader->type] & READER_PERCPU)
		reader->values_bytes = reader->stride_bytes * (size_t)libbpf_num_possible_cpus();
	reader->batch = 0;
	table->runs = reader->runs;
	table->n_runs = reader->n_runs;
	if (reader->is_table)
		return table_open(table, reader_n_cells(reader));
	table->cells = reader->is_mortal ? calloc(reader_n_cells(reader), sizeof(*table->cells)) :
		       NULL;
	return reader->is_mortal && !table->cells ? -ENOMEM : 0;
}

void reader_close(struct reader *reader)
{
	table_close(&reader->table);
	free(reader->memory);
	reader->records = records_free(reader->records);
	reader->memory = NULL;
}

struct reader *reader_free(struct reader *reader)
{
	if (reader)
		reader_close(reader);
	free(reader);
	return NULL;
}

static void add_value(const struct reader *reader, const uint8_t *value, uint64_t *cells)
{
	for (uint32_t i = 0; i < reader->n_runs; i++)
		run_add(&reader->runs[i], value, cells);
}

/*
 * Of the CPUs whose number has changed since the reading before the largest; if none has, the
 * number is what it was.
 */
static void pick_last(const struct reader *reader, const struct reader_run *run,
		      const uint8_t *values, uint64_t *cells, const uint64_t *previous)
{
	uint64_t *now = cells + run->first_cell;
	const uint64_t *before = previous + run->first_cell;
	bool has_changed = false;

	now[0] = before[0];
	for (uint32_t i = 1; i < run->count; i++, values += reader->stride_bytes) {
		now[i] = shape_load(values + run->offset_bytes, run->size_bytes);
		if (now[i] == before[i] || (has_changed && now[i] < now[0]))
			continue;
		now[0] = now[i];
		has_changed = true;
	}
}

/*
 * An array has all its entries from the start, and a key those of all CPUs, so one that holds
 * nothing and never did is nobody's.
 */
static bool is_unused(const struct reader *reader, const struct rows *rows, const void *key,
		      const uint8_t *values, size_t n_bytes)
{
	bool has_all = traits[reader->type] & READER_ARRAY || reader->cpu_bytes;

	if (!has_all || values[0] || memcmp(values, values + 1, n_bytes - 1) != 0)
		return false;
	return !rows->n_live || rows_find(rows, key) == ROWS_OVERFLOW;
}

/*
 * One key and all its values. That is the whole of it, and a key that comes twice in a reading
 * counts once; but a key of a table may have a place there too.
 */
static int add_values(struct reader *reader, struct rows *rows, const void *key,
		      const uint8_t *values, size_t n_bytes)
{
	uint64_t *cells;
	uint32_t row;
	int err;

	if (is_unused(reader, rows, key, values, n_bytes))
		return 0;
	err = rows_touch(rows, key, &row);
	if (err)
		return err;
	cells = rows_cells(rows, row);
	if (!reader->is_table)
		memset(cells, 0, rows->n_cells * sizeof(*cells));
	reader->n_spilled += reader->is_table;
	rows_at(rows, row)->is_in_hash = true;
	for (size_t at = 0; at < n_bytes; at += reader->stride_bytes)
		add_value(reader, values + at, cells);
	for (size_t i = 0; i < reader->n_runs; i++)
		if (reader->runs[i].is_last)
			pick_last(reader, &reader->runs[i], values, cells,
				  rows_previous(rows, row));
	return 0;
}

/* That of the row of one CPU. It is valid until the next call. */
static const uint8_t *row_key(const struct reader *reader, const void *key, uint32_t cpu)
{
	uint8_t *made = reader->memory + reader->batch * (reader->key_bytes + reader->values_bytes);

	memcpy(made, key, reader->key_bytes);
	memcpy(made + reader->key_bytes, &cpu, sizeof(cpu));
	return made;
}

static int add_entry(struct reader *reader, struct rows *rows, const void *key,
		     const uint8_t *values)
{
	uint32_t n_cpus = (uint32_t)(reader->values_bytes / reader->stride_bytes);
	int err = 0;

	if (!reader->cpu_bytes)
		return add_values(reader, rows, key, values, reader->values_bytes);
	for (uint32_t cpu = 0; cpu < n_cpus && !err; cpu++, values += reader->stride_bytes)
		err = add_values(reader, rows, row_key(reader, key, cpu), values,
				 reader->stride_bytes);
	return err;
}

static int read_batches(struct reader *reader, struct rows *rows)
{
	uint32_t cursor = 0; /* a bucket of a hash map, a key of an array */
	bool is_first = true;
	int err = reader->batch ? 0 : grow_batch(reader);

	while (!err) {
		uint8_t *keys = reader->memory, *values = keys + reader->batch * reader->key_bytes;
		uint32_t count = reader->batch;
		int r = bpf_map_lookup_batch(reader->fd, is_first ? NULL : &cursor, &cursor, keys,
					     values, &count, NULL);

		if (r == -ENOSPC) { /* a bucket larger than a batch */
			err = grow_batch(reader);
			continue;
		}
		if (r && r != -ENOENT)
			return r;
		for (uint32_t i = 0; i < count && !err; i++)
			err = add_entry(reader, rows, keys + i * reader->key_bytes,
					values + i * reader->values_bytes);
		if (r)
			return err;
		is_first = false;
	}
	return err;
}

static int read_table(struct reader *reader, struct rows *rows)
{
	int err = table_read(&reader->table, rows);

	reader->n_spilled = 0;
	if (!err && table_take_spilled(&reader->table)) {
		err = read_batches(reader, rows);
		if (err || reader->n_spilled)
			table_put_spilled(&reader->table);
	}
	return err;
}

int reader_read(struct reader *reader, struct rows *rows)
{
	uint32_t *numbers = rows_compact(rows);
	int err = 0;

	if (numbers && reader->is_table)
		table_renumber(&reader->table, numbers);
	free(numbers);
	rows_begin(rows);
	if (reader->records)
		records_take(reader->records, rows, true);
	else
		err = reader->is_table ? read_table(reader, rows) : read_batches(reader, rows);
	rows_end(rows);
	return err;
}

/* What a key of the hash map holds. */
static void add_key(const struct reader *reader, uint64_t *cells, uint32_t n_cells)
{
	memset(cells, 0, n_cells * sizeof(*cells));
	for (size_t at = 0; at < reader->values_bytes; at += reader->stride_bytes)
		add_value(reader, reader->memory + at, cells);
}

static bool is_as_read(const struct reader *reader, const uint64_t *cells, const uint64_t *read)
{
	bool is_same = true;

	/* The numbers of single CPUs are not counts. */
	array_for_each (run, reader->runs, reader->n_runs)
		is_same &= run->is_last || !memcmp(cells + run->first_cell, read + run->first_cell,
						   run->count * sizeof(*read));
	return is_same;
}

/*
 * A key whose row has nothing but what the hash map holds, as the last reading found it: not one
 * that has grown since, or has a place in the table as well. What comes now is growth in the next
 * reading.
 */
static void take_key(const struct reader *reader, struct rows *rows, uint32_t row)
{
	const void *key = rows_key(rows, row);
	uint64_t *cells = reader->table.cells;

	if (bpf_map_lookup_elem(reader->fd, key, reader->memory))
		return;
	add_key(reader, cells, rows->n_cells);
	if (!is_as_read(reader, cells, rows_cells(rows, row)))
		return;
	if (!bpf_map_lookup_and_delete_elem(reader->fd, key, reader->memory))
		add_key(reader, cells, rows->n_cells);
	else if (bpf_map_delete_elem(reader->fd, key))
		/* Before 5.14 the kernel cannot do both at once: what comes between is lost. */
		return;
	table_leave(rows, row, cells);
	rows_at(rows, row)->is_in_hash = false;
}

/* The rows of a key end together. It does not come back, so nobody has to know what they held. */
static void remove_cpus(struct reader *reader, const struct rows *rows, const void *key)
{
	uint32_t n_cpus = (uint32_t)(reader->values_bytes / reader->stride_bytes), row;
	bool is_idle = true;

	for (uint32_t cpu = 0; cpu < n_cpus; cpu++) {
		row = rows_find(rows, row_key(reader, key, cpu));
		if (row == ROWS_OVERFLOW)
			continue;
		rows_at(rows, row)->is_doomed = false; /* once for all */
		is_idle &= rows_at(rows, row)->idle >= READER_IDLE_READINGS;
	}
	if (is_idle)
		(void)bpf_map_delete_elem(reader->fd, key);
}

void reader_remove(struct reader *reader, struct rows *rows, uint32_t row)
{
	const void *key = rows_key(rows, row);

	if (reader->cpu_bytes) {
		remove_cpus(reader, rows, key);
		return;
	}
	if (reader->is_table || reader->is_mortal)
		take_key(reader, rows, row);
	else if (!bpf_map_delete_elem(reader->fd, key))
		/* Should the key come again before the next reading, it counts from 0. */
		memset(rows_previous(rows, row), 0, rows->n_cells * sizeof(uint64_t));
}
