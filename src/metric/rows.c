/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One array of equal records (header, key, cells, previous cells, series), with an open-addressed index
 * of record numbers beside it. Removed records are linked into a free list and leave a tombstone in the
 * index, which goes when the index is rebuilt.
 */
#include "metric/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"

#define INDEX_FREE    0u /* row 0 has no key, so it is never in the index */
#define INDEX_REMOVED 0xffffffffu

struct row {
	uint64_t hash;
	uint32_t generation; /* of the last touch; 0: free */
	uint32_t idle;
	uint32_t next_free;
	uint32_t at; /* in the index */
};

struct rows {
	uint32_t key_bytes, n_cells, n_series;
	size_t stride, cells_at, previous_at, series_at;
	uint8_t *records;
	uint32_t n, n_live, capacity;
	uint32_t first_free; /* 0: none */
	uint32_t generation;
	uint32_t *index;
	uint32_t n_index, n_used; /* n_used: tombstones included */
};

static struct row *row_at(const struct rows *rows, uint32_t index)
{
	return (struct row *)(rows->records + index * rows->stride);
}

uint64_t *rows_cells(struct rows *rows, uint32_t index)
{
	return (uint64_t *)(rows->records + index * rows->stride + rows->cells_at);
}

uint64_t *rows_previous(struct rows *rows, uint32_t index)
{
	return (uint64_t *)(rows->records + index * rows->stride + rows->previous_at);
}

const void *rows_key(const struct rows *rows, uint32_t index)
{
	return row_at(rows, index) + 1;
}

struct series **rows_series(struct rows *rows, uint32_t index)
{
	return (struct series **)(rows->records + index * rows->stride + rows->series_at);
}

uint32_t *rows_idle(struct rows *rows, uint32_t index)
{
	return &row_at(rows, index)->idle;
}

bool rows_is_live(const struct rows *rows, uint32_t index)
{
	return row_at(rows, index)->generation != 0;
}

bool rows_is_touched(const struct rows *rows, uint32_t index)
{
	return row_at(rows, index)->generation == rows->generation;
}

uint32_t rows_n_cells(const struct rows *rows)
{
	return rows->n_cells;
}

uint32_t rows_n(const struct rows *rows)
{
	return rows->n;
}

uint32_t rows_n_live(const struct rows *rows)
{
	return rows->n_live;
}

static int records_grow(struct rows *rows)
{
	uint32_t capacity = rows->capacity ? rows->capacity * 2 : 8;
	uint8_t *records;

	if (rows->n < rows->capacity)
		return 0;
	records = reallocarray(rows->records, capacity, rows->stride);
	if (!records)
		return -ENOMEM;
	rows->records = records;
	rows->capacity = capacity;
	return 0;
}

static void index_put(struct rows *rows, uint32_t record)
{
	uint32_t at = (uint32_t)row_at(rows, record)->hash & (rows->n_index - 1);

	while (rows->index[at] != INDEX_FREE)
		at = (at + 1) & (rows->n_index - 1);
	rows->index[at] = record;
	row_at(rows, record)->at = at;
	rows->n_used++;
}

/* Keeps the index at most half full, tombstones counted. */
static int index_grow(struct rows *rows)
{
	uint32_t n = 16, *index;

	if (2 * (rows->n_used + 1) <= rows->n_index)
		return 0;
	while (n < 4 * (rows->n_live + 1))
		n *= 2;
	index = calloc(n, sizeof(*index));
	if (!index)
		return -ENOMEM;
	free(rows->index);
	rows->index = index;
	rows->n_index = n;
	rows->n_used = 0;
	for (uint32_t i = 1; i < rows->n; i++)
		if (rows_is_live(rows, i))
			index_put(rows, i);
	return 0;
}

static void row_clear(struct rows *rows, uint32_t index)
{
	memset(rows->records + index * rows->stride, 0, rows->stride);
}

int rows_new(uint32_t key_bytes, uint32_t n_cells, uint32_t n_series, struct rows **ret_rows)
{
	_cleanup_(rows_freep) struct rows *rows = calloc(1, sizeof(*rows));
	int err;

	if (!rows)
		return -ENOMEM;
	rows->key_bytes = key_bytes;
	rows->n_cells = n_cells;
	rows->n_series = n_series;
	rows->cells_at = sizeof(struct row) + (key_bytes + 7) / 8 * 8;
	rows->previous_at = rows->cells_at + n_cells * sizeof(uint64_t);
	rows->series_at = rows->previous_at + n_cells * sizeof(uint64_t);
	rows->stride = rows->series_at + n_series * sizeof(struct series *);
	rows->generation = 1;
	err = records_grow(rows);
	if (err)
		return err;
	row_clear(rows, ROWS_OVERFLOW);
	row_at(rows, ROWS_OVERFLOW)->generation = 1;
	rows->n = 1;
	*ret_rows = TAKE_PTR(rows);
	return 0;
}

struct rows *rows_free(struct rows *rows)
{
	if (!rows)
		return NULL;
	free(rows->records);
	free(rows->index);
	free(rows);
	return NULL;
}

void rows_begin(struct rows *rows)
{
	if (++rows->generation == 0)
		rows->generation = 2;
	rows_touch_index(rows, ROWS_OVERFLOW);
}

uint64_t *rows_touch_index(struct rows *rows, uint32_t index)
{
	struct row *row = row_at(rows, index);
	uint64_t *cells = (uint64_t *)((uint8_t *)row + rows->cells_at);

	if (row->generation == rows->generation)
		return cells;
	row->generation = rows->generation;
	for (uint32_t i = 0; i < rows->n_cells; i++)
		cells[i] = 0;
	return cells;
}

static uint32_t find(const struct rows *rows, const void *key, uint64_t hash)
{
	uint32_t record;

	if (!rows->n_index)
		return 0;
	for (uint32_t at = (uint32_t)hash & (rows->n_index - 1); (record = rows->index[at]) != INDEX_FREE;
	     at = (at + 1) & (rows->n_index - 1))
		if (record != INDEX_REMOVED && row_at(rows, record)->hash == hash &&
		    !memcmp(rows_key(rows, record), key, rows->key_bytes))
			return record;
	return 0;
}

static int add(struct rows *rows, const void *key, uint64_t hash, uint32_t *ret_index)
{
	uint32_t record = rows->first_free;
	int err = index_grow(rows);

	if (!err && !record)
		err = records_grow(rows);
	if (err)
		return err;
	if (record)
		rows->first_free = row_at(rows, record)->next_free;
	else
		record = rows->n++;
	row_clear(rows, record);
	memcpy(row_at(rows, record) + 1, key, rows->key_bytes);
	row_at(rows, record)->hash = hash;
	index_put(rows, record);
	rows->n_live++;
	*ret_index = record;
	return 0;
}

int rows_touch(struct rows *rows, const void *key, uint32_t *ret_index)
{
	uint64_t hash = hash_bytes(key, rows->key_bytes);
	uint32_t record = find(rows, key, hash);

	if (!record) {
		int err = add(rows, key, hash, &record);

		if (err)
			return err;
	}
	rows_touch_index(rows, record);
	*ret_index = record;
	return 0;
}

void rows_remove(struct rows *rows, uint32_t index)
{
	struct row *row = row_at(rows, index);

	rows->index[row->at] = INDEX_REMOVED;
	row->generation = 0;
	row->next_free = rows->first_free;
	rows->first_free = index;
	rows->n_live--;
}
