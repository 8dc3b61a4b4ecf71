/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reading never changes a map: programs go on counting meanwhile, and what they add after a key has been
 * read is seen in the next reading. So a number is never lost or counted twice, but two numbers of one
 * reading may be some microseconds apart.
 *
 * Flat tables are the fast path (flat/flat.c). All other types take one system call for hundreds of keys. A
 * reading that breaks off must not pass for a whole one, because keys that it did not reach would count as gone,
 * and as new the next time.
 */
#include "collector/source.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define BATCH_ENTRIES 512

static const uint8_t traits[] = {
	[BPF_MAP_TYPE_HASH] = SOURCE_READABLE,
	[BPF_MAP_TYPE_LRU_HASH] = SOURCE_READABLE,
	[BPF_MAP_TYPE_PERCPU_HASH] = SOURCE_READABLE | SOURCE_PERCPU,
	[BPF_MAP_TYPE_LRU_PERCPU_HASH] = SOURCE_READABLE | SOURCE_PERCPU,
	[BPF_MAP_TYPE_ARRAY] = SOURCE_READABLE | SOURCE_ARRAY,
	[BPF_MAP_TYPE_PERCPU_ARRAY] = SOURCE_READABLE | SOURCE_ARRAY | SOURCE_PERCPU,
	[BPF_MAP_TYPE_RINGBUF] = SOURCE_RECORDS,
	[BPF_MAP_TYPE_PERF_EVENT_ARRAY] = SOURCE_RECORDS,
};

enum source_traits source_traits(int type)
{
	return (enum source_traits)((size_t)type < ARRAY_SIZE(traits) ? traits[type] : 0);
}

uint32_t source_n_cells(const struct source *source)
{
	const struct source_run *last = source->n_runs ? &source->runs[source->n_runs - 1] : NULL;

	return last ? last->first_cell + last->count : 0;
}

static int grow_batch(struct source *source)
{
	uint32_t batch = source->batch ? source->batch * 2 : BATCH_ENTRIES;
	uint8_t *memory = realloc(source->memory, batch * (source->key_bytes + source->values_bytes) +
						  source->key_bytes + source->cpu_bytes);

	if (!memory)
		return -ENOMEM;
	source->memory = memory;
	source->batch = batch;
	return 0;
}

int source_open(struct source *source)
{
	struct flat *table = &source->flat;

	for (uint32_t i = 0; i < source->n_runs; i++)
		source->runs[i].kind = run_kind(&source->runs[i]);
	source->stride_bytes = ((size_t)source->value_bytes + 7) / 8 * 8;
	source->values_bytes = source->value_bytes;
	if (traits[source->type] & SOURCE_PERCPU)
		source->values_bytes = source->stride_bytes * (size_t)libbpf_num_possible_cpus();
	source->batch = 0;
	table->runs = source->runs;
	table->n_runs = source->n_runs;
	if (source->is_table)
		return flat_open(table, source_n_cells(source));
	table->cells = source->is_mortal ? calloc(source_n_cells(source), sizeof(*table->cells)) : NULL;
	return source->is_mortal && !table->cells ? -ENOMEM : 0;
}

void source_close(struct source *source)
{
	flat_close(&source->flat);
	free(source->memory);
	source->records = records_free(source->records);
	source->memory = NULL;
}

struct source *source_free(struct source *source)
{
	if (source)
		source_close(source);
	free(source);
	return NULL;
}

static void add_value(const struct source *source, const uint8_t *value, uint64_t *cells)
{
	for (uint32_t i = 0; i < source->n_runs; i++)
		run_add(&source->runs[i], value, cells);
}

/*
 * Of the CPUs whose number has changed since the reading before the largest; if none has, the number is what it was.
 */
static void pick_last(const struct source *source, const struct source_run *run, const uint8_t *values, uint64_t *cells,
		      const uint64_t *previous)
{
	uint64_t *now = cells + run->first_cell;
	const uint64_t *before = previous + run->first_cell;
	bool has_changed = false;

	now[0] = before[0];
	for (uint32_t i = 1; i < run->count; i++, values += source->stride_bytes) {
		now[i] = shape_load(values + run->offset_bytes, run->size_bytes);
		if (now[i] == before[i] || (has_changed && now[i] < now[0]))
			continue;
		now[0] = now[i];
		has_changed = true;
	}
}

/*
 * An array has all its entries from the start, and a key those of all CPUs, so one that holds nothing and never did is
 * nobody's.
 */
static bool is_unused(const struct source *source, const struct rows *rows, const void *key, const uint8_t *values,
		      size_t n_bytes)
{
	bool has_all = traits[source->type] & SOURCE_ARRAY || source->cpu_bytes;

	if (!has_all || values[0] || memcmp(values, values + 1, n_bytes - 1) != 0)
		return false;
	return !rows->n_live || rows_find(rows, key) == ROWS_OVERFLOW;
}

/*
 * One key and all its values. That is the whole of it, and a key that comes twice in a reading counts once; but
 * a key of a table may have a place there too.
 */
static int add_values(struct source *source, struct rows *rows, const void *key, const uint8_t *values, size_t n_bytes)
{
	uint64_t *cells;
	uint32_t row;
	int err;

	if (is_unused(source, rows, key, values, n_bytes))
		return 0;
	err = rows_touch(rows, key, &row);
	if (err)
		return err;
	cells = rows_cells(rows, row);
	if (!source->is_table)
		memset(cells, 0, rows->n_cells * sizeof(*cells));
	source->n_spilled += source->is_table;
	rows_at(rows, row)->is_in_hash = true;
	for (size_t at = 0; at < n_bytes; at += source->stride_bytes)
		add_value(source, values + at, cells);
	for (size_t i = 0; i < source->n_runs; i++)
		if (source->runs[i].is_last)
			pick_last(source, &source->runs[i], values, cells, rows_previous(rows, row));
	return 0;
}

/* That of the row of one CPU. It is valid until the next call. */
static const uint8_t *row_key(const struct source *source, const void *key, uint32_t cpu)
{
	uint8_t *made = source->memory + source->batch * (source->key_bytes + source->values_bytes);

	memcpy(made, key, source->key_bytes);
	memcpy(made + source->key_bytes, &cpu, sizeof(cpu));
	return made;
}

static int add_entry(struct source *source, struct rows *rows, const void *key, const uint8_t *values)
{
	uint32_t n_cpus = (uint32_t)(source->values_bytes / source->stride_bytes);
	int err = 0;

	if (!source->cpu_bytes)
		return add_values(source, rows, key, values, source->values_bytes);
	for (uint32_t cpu = 0; cpu < n_cpus && !err; cpu++, values += source->stride_bytes)
		err = add_values(source, rows, row_key(source, key, cpu), values, source->stride_bytes);
	return err;
}

static int read_batches(struct source *source, struct rows *rows)
{
	uint32_t cursor = 0; /* a bucket of a hash map, a key of an array */
	bool is_first = true;
	int err = source->batch ? 0 : grow_batch(source);

	while (!err) {
		uint8_t *keys = source->memory, *values = keys + source->batch * source->key_bytes;
		uint32_t count = source->batch;
		int r = bpf_map_lookup_batch(source->fd, is_first ? NULL : &cursor, &cursor, keys, values, &count,
					     NULL);

		if (r == -ENOSPC) { /* a bucket larger than a batch */
			err = grow_batch(source);
			continue;
		}
		if (r && r != -ENOENT)
			return r;
		for (uint32_t i = 0; i < count && !err; i++)
			err = add_entry(source, rows, keys + i * source->key_bytes, values + i * source->values_bytes);
		if (r)
			return err;
		is_first = false;
	}
	return err;
}

static int read_table(struct source *source, struct rows *rows)
{
	int err = flat_read(&source->flat, rows);

	source->n_spilled = 0;
	if (!err && flat_take_spilled(&source->flat)) {
		err = read_batches(source, rows);
		if (err || source->n_spilled)
			flat_put_spilled(&source->flat);
	}
	return err;
}

int source_read(struct source *source, struct rows *rows)
{
	uint32_t *numbers = rows_compact(rows);
	int err = 0;

	if (numbers && source->is_table)
		flat_renumber(&source->flat, numbers);
	free(numbers);
	rows_begin(rows);
	if (source->records)
		records_count(source->records, rows, true);
	else
		err = source->is_table ? read_table(source, rows) : read_batches(source, rows);
	rows_end(rows);
	return err;
}

/* What a key of the hash map holds. */
static void add_key(const struct source *source, uint64_t *cells, uint32_t n_cells)
{
	memset(cells, 0, n_cells * sizeof(*cells));
	for (size_t at = 0; at < source->values_bytes; at += source->stride_bytes)
		add_value(source, source->memory + at, cells);
}

static bool is_as_read(const struct source *source, const uint64_t *cells, const uint64_t *read)
{
	bool is_same = true;

	/* The numbers of single CPUs are not counts. */
	array_for_each (run, source->runs, source->n_runs)
		is_same &= run->is_last || !memcmp(cells + run->first_cell, read + run->first_cell,
						   run->count * sizeof(*read));
	return is_same;
}

/*
 * A key whose row has nothing but what the hash map holds, as the last reading found it: not one that has grown since,
 * or has a place in the table as well. What comes now is growth in the next reading.
 */
static void take_key(const struct source *source, struct rows *rows, uint32_t row)
{
	const void *key = rows_key(rows, row);
	uint64_t *cells = source->flat.cells;

	if (bpf_map_lookup_elem(source->fd, key, source->memory))
		return;
	add_key(source, cells, rows->n_cells);
	if (!is_as_read(source, cells, rows_cells(rows, row)))
		return;
	if (!bpf_map_lookup_and_delete_elem(source->fd, key, source->memory))
		add_key(source, cells, rows->n_cells);
	/* Before 5.14 the kernel cannot do both at once, so what comes in between is lost. */
	else if (bpf_map_delete_elem(source->fd, key))
		return;
	flat_leave(rows, row, cells);
	rows_at(rows, row)->is_in_hash = false;
}

/* The rows of a key end together. It does not come back, so nobody has to know what they held. */
static void remove_cpus(struct source *source, const struct rows *rows, const void *key)
{
	uint32_t n_cpus = (uint32_t)(source->values_bytes / source->stride_bytes), row;
	bool is_idle = true;

	for (uint32_t cpu = 0; cpu < n_cpus; cpu++) {
		row = rows_find(rows, row_key(source, key, cpu));
		if (row == ROWS_OVERFLOW)
			continue;
		rows_at(rows, row)->is_doomed = false; /* once for all */
		is_idle &= rows_at(rows, row)->idle >= SOURCE_IDLE_READINGS;
	}
	if (is_idle)
		(void)bpf_map_delete_elem(source->fd, key);
}

void source_remove(struct source *source, struct rows *rows, uint32_t row)
{
	const void *key = rows_key(rows, row);

	if (source->cpu_bytes) {
		remove_cpus(source, rows, key);
		return;
	}
	if (source->is_table || source->is_mortal)
		take_key(source, rows, row);
	else if (!bpf_map_delete_elem(source->fd, key))
		/* Should the key come again before the next reading, it counts from 0. */
		memset(rows_previous(rows, row), 0, rows->n_cells * sizeof(uint64_t));
}
