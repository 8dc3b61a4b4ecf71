/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reading never changes a map: programs go on counting meanwhile, and what they add after a key has been
 * read is seen in the next reading. So a number is never lost or counted twice, but two numbers of one
 * reading may be some microseconds apart.
 *
 * Flat tables are the fast path: mapped once, then read like an array. All other types take one system call
 * for hundreds of keys. A reading that breaks off must not pass for a whole one, because keys that it did
 * not reach would count as gone, and as new the next time.
 */
#include "collector/source.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/shape.h"

#define BATCH_ENTRIES	512
#define BATCH_NONE	UINT32_MAX
#define TABLE_CHUNK	256
#define KERNEL_ENOTSUPP 524 /* what the kernel says where a map has no such call */

/* As in bpf/include/table.h. */
enum table_state { TABLE_FREE,
		   TABLE_FILLING,
		   TABLE_LIVE,
		   TABLE_REMOVED };

static bool is_percpu(const struct source *source)
{
	return source->type == BPF_MAP_TYPE_PERCPU_HASH || source->type == BPF_MAP_TYPE_LRU_PERCPU_HASH ||
	       source->type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static bool is_array(const struct source *source)
{
	return source->type == BPF_MAP_TYPE_ARRAY || source->type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

/*
 * The mapping stays: the kernel gives a process every page of a map at once, for half a microsecond each,
 * which is more than reading the page costs.
 */
static int table_open(struct source *source)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = source->max_entries * source->stride_bytes; /* the kernel rounds them up to pages */
	void *memory;

	bytes = (bytes + page - 1) / page * page;
	source->slot_rows = calloc(source->max_entries, sizeof(*source->slot_rows));
	if (!source->slot_rows)
		return -ENOMEM;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, source->fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	source->memory = memory;
	source->memory_bytes = bytes;
	return 0;
}

uint32_t source_n_cells(const struct source *source)
{
	const struct source_run *last = source->n_runs ? &source->runs[source->n_runs - 1] : NULL;

	return last ? last->first_cell + last->count : 0;
}

/* Nearly all are simple: sums are u64, the buckets of histograms u32. */
enum run_kind { RUN_OTHER,
		RUN_U64,
		RUN_U32 };

static enum run_kind run_kind(const struct source_run *run)
{
	if (run->is_maximum || run->size_bytes < sizeof(uint32_t))
		return RUN_OTHER;
	return run->size_bytes == sizeof(uint64_t) ? RUN_U64 : RUN_U32;
}

int source_open(struct source *source)
{
	for (uint32_t i = 0; i < source->n_runs; i++)
		source->runs[i].kind = run_kind(&source->runs[i]);
	source->stride_bytes = ((size_t)source->value_bytes + 7) / 8 * 8;
	source->values_bytes = source->value_bytes;
	if (is_percpu(source))
		source->values_bytes = source->stride_bytes * (size_t)libbpf_num_possible_cpus();
	if (source->is_table)
		return table_open(source);
	source->memory_bytes = BATCH_ENTRIES * (source->key_bytes + source->values_bytes);
	source->memory = malloc(source->memory_bytes);
	return source->memory ? 0 : -ENOMEM;
}

void source_close(struct source *source)
{
	if (source->is_table && source->memory)
		munmap(source->memory, source->memory_bytes);
	else
		free(source->memory);
	free(source->slot_rows);
	source->memory = NULL;
	source->slot_rows = NULL;
}

/* The members of a value lie at any place. */
struct unaligned_u64 {
	uint64_t value;
} __attribute__((packed));

struct unaligned_u32 {
	uint32_t value;
} __attribute__((packed));

/* The rest: narrow numbers, and levels of several CPUs. */
__attribute__((noinline)) static void add_other(const struct source_run *run, const uint8_t *from, uint64_t *to)
{
	for (uint32_t i = 0; i < run->count; i++, from += run->size_bytes) {
		uint64_t value = shape_load(from, run->size_bytes);

		if (!run->is_maximum)
			to[i] += value;
		else if (value > to[i])
			to[i] = value;
	}
}

static inline void add_value(const struct source *source, const uint8_t *value, uint64_t *cells)
{
	for (uint32_t i = 0; i < source->n_runs; i++) {
		const struct source_run *run = &source->runs[i];
		const uint8_t *from = value + run->offset_bytes;
		uint64_t *to = cells + run->first_cell;

		if (run->kind == RUN_U64)
			for (uint32_t j = 0; j < run->count; j++)
				to[j] += ((const struct unaligned_u64 *)from)[j].value;
		else if (run->kind == RUN_U32)
			for (uint32_t j = 0; j < run->count; j++)
				to[j] += ((const struct unaligned_u32 *)from)[j].value;
		else
			add_other(run, from, to);
	}
}

/* An array has all its entries from the start, so one that holds nothing and never did is nobody's. */
static bool is_unused(const struct source *source, const struct rows *rows, const void *key, const uint8_t *values)
{
	if (!is_array(source) || values[0] || memcmp(values, values + 1, source->values_bytes - 1) != 0)
		return false;
	return !rows->n_live || rows_find(rows, key) == ROWS_OVERFLOW;
}

/* One key and all its values, which is the whole of it: a key that comes twice in a reading counts once. */
static int add_entry(const struct source *source, struct rows *rows, const void *key, const uint8_t *values)
{
	uint64_t *cells;
	uint32_t row;
	int err;

	if (is_unused(source, rows, key, values))
		return 0;
	err = rows_touch(rows, key, &row);
	if (err)
		return err;
	cells = rows_cells(rows, row);
	memset(cells, 0, rows->n_cells * sizeof(*cells));
	for (size_t at = 0; at < source->values_bytes; at += source->stride_bytes)
		add_value(source, values + at, cells);
	return 0;
}

/* Which of n slots are live. Without a branch, because no processor could predict it. */
static uint32_t find_live(const uint8_t *slot, size_t stride, uint32_t n, uint16_t *ret_live)
{
	uint32_t n_live = 0;

	for (uint32_t i = 0; i < n; i++, slot += stride) {
		ret_live[n_live] = (uint16_t)i;
		n_live += __atomic_load_n((const uint64_t *)slot, __ATOMIC_ACQUIRE) == TABLE_LIVE;
	}
	return n_live;
}

/* The key of a slot is stable once its state is LIVE. */
static int slot_read(struct source *source, struct rows *rows, uint32_t index, const uint8_t *slot)
{
	uint32_t *row = &source->slot_rows[index];

	if (!*row && index % source->slots_per_cpu) {
		int err = rows_touch(rows, slot + source->key_offset_bytes, row);

		if (err)
			return err;
	}
	source->full += !*row;
	add_value(source, slot + source->value_offset_bytes, rows_touch_row(rows, *row));
	return 0;
}

static int table_read(struct source *source, struct rows *rows)
{
	size_t stride = source->stride_bytes;
	uint16_t live[TABLE_CHUNK];

	source->full = 0;
	for (uint32_t first = 0; first < source->max_entries; first += TABLE_CHUNK) {
		uint32_t rest = source->max_entries - first;
		const uint8_t *slots = source->memory + first * stride;
		uint32_t n = find_live(slots, stride, rest < TABLE_CHUNK ? rest : TABLE_CHUNK, live);

		for (uint32_t i = 0; i < n; i++) {
			int err = slot_read(source, rows, first + live[i], slots + live[i] * stride);

			if (err)
				return err;
		}
	}
	return 0;
}

static int read_by_key(const struct source *source, struct rows *rows)
{
	uint8_t *key = source->memory, *next = key + source->key_bytes, *values = next + source->key_bytes;
	const void *previous = NULL;

	/* A key that is removed meanwhile sends the walk back to the start, which may happen again and again. */
	for (uint64_t i = 0; i <= 2 * (uint64_t)source->max_entries; i++) {
		int err = bpf_map_get_next_key(source->fd, previous, next);

		if (err)
			return err == -ENOENT ? 0 : err;
		memcpy(key, next, source->key_bytes);
		previous = key;
		err = bpf_map_lookup_elem(source->fd, key, values);
		if (!err)
			err = add_entry(source, rows, key, values);
		if (err && err != -ENOENT)
			return err;
	}
	return -EAGAIN;
}

static int grow_batch(struct source *source)
{
	uint32_t batch = source->batch ? source->batch * 2 : BATCH_ENTRIES;
	size_t bytes = batch * (source->key_bytes + source->values_bytes);
	uint8_t *memory = realloc(source->memory, bytes);

	if (!memory)
		return -ENOMEM;
	source->memory = memory;
	source->memory_bytes = bytes;
	source->batch = batch;
	return 0;
}

static int read_batches(struct source *source, struct rows *rows)
{
	uint64_t cursor[64] = { 0 }; /* as large as the largest key that the kernel may put there */
	bool is_first = true;
	int err = source->batch ? 0 : grow_batch(source);

	while (!err) {
		uint8_t *keys = source->memory, *values = keys + source->batch * source->key_bytes;
		uint32_t count = source->batch;
		int r = bpf_map_lookup_batch(source->fd, is_first ? NULL : cursor, cursor, keys, values, &count, NULL);

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

int source_read(struct source *source, struct rows *rows)
{
	int err;

	rows_begin(rows);
	if (source->is_table)
		return table_read(source, rows);
	if (source->batch != BATCH_NONE && source->key_bytes <= sizeof(uint64_t[64])) {
		err = read_batches(source, rows);
		if (err != -EINVAL && err != -KERNEL_ENOTSUPP && err != -EOPNOTSUPP)
			return err;
		source->batch = BATCH_NONE;
	}
	return read_by_key(source, rows);
}

/* The value is zeroed while nobody finds the slot, so that it begins at 0 with its next key. */
static void table_remove(struct source *source, uint32_t row)
{
	for (uint32_t i = 0; i < source->max_entries; i++) {
		uint8_t *slot = source->memory + i * source->stride_bytes;

		if (source->slot_rows[i] != row)
			continue;
		__atomic_store_n((uint64_t *)slot, TABLE_FILLING, __ATOMIC_SEQ_CST);
		memset(slot + source->value_offset_bytes, 0, source->value_bytes - source->value_offset_bytes);
		__atomic_store_n((uint64_t *)slot, TABLE_REMOVED, __ATOMIC_SEQ_CST);
		source->slot_rows[i] = 0;
	}
}

void source_remove(struct source *source, struct rows *rows, uint32_t row)
{
	if (row == ROWS_OVERFLOW)
		return;
	if (source->is_table)
		table_remove(source, row);
	else if (is_array(source) || bpf_map_delete_elem(source->fd, rows_key(rows, row)))
		return;
	/* Should the key come again before the next reading, it counts from 0. */
	memset(rows_previous(rows, row), 0, rows->n_cells * sizeof(uint64_t));
}
