/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One array of equal records (header, key, cells, previous cells, series) and an index from keys to
 * records. Removed records are linked into a list and used again; when most are, the others move
 * together.
 */
#include "metric/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/hash.h"

#define FEW 256u /* so few records stay where they are */

int rows_new(uint32_t key_bytes, uint32_t n_cells, uint32_t n_series, struct rows **ret_rows)
{
	_cleanup_(rows_freep) struct rows *rows = calloc(1, sizeof(*rows));
	struct row *overflow;

	if (!rows)
		return -ENOMEM;
	rows->key_bytes = key_bytes;
	rows->n_cells = n_cells;
	rows->cells_at = sizeof(struct row) + (key_bytes + 7) / 8 * 8;
	rows->previous_at = rows->cells_at + n_cells * sizeof(uint64_t);
	rows->series_at = rows->previous_at + n_cells * sizeof(uint64_t);
	rows->stride = rows->series_at + n_series * sizeof(struct series *);
	rows->generation = 1;
	overflow = array_add(&rows->records, &rows->n, rows->stride);
	if (!overflow)
		return -ENOMEM;
	overflow->generation = 1;
	overflow->idle = UINT32_MAX / 2;
	*ret_rows = TAKE_PTR(rows);
	return 0;
}

struct rows *rows_free(struct rows *rows)
{
	if (!rows)
		return NULL;
	free(rows->records);
	index_done(&rows->index);
	free(rows);
	return NULL;
}

uint32_t *rows_compact(struct rows *rows)
{
	size_t n_before = rows->n;
	uint32_t *numbers, n = ROWS_OVERFLOW + 1;

	if (rows->n < FEW || rows->n_live >= rows->n / 4)
		return NULL;
	numbers = calloc(rows->n, sizeof(*numbers));
	if (!numbers)
		return NULL;
	index_clear(&rows->index);
	for (uint32_t row = n; row < n_before; row++) {
		if (!rows_is_live(rows, row))
			continue;
		if (row != n)
			memcpy(rows_at(rows, n), rows_at(rows, row), rows->stride);
		(void)index_add(&rows->index, rows_at(rows, n)->hash, n);
		numbers[row] = n++;
	}
	rows->n = n;
	rows->first_free = 0;
	array_shrink(&rows->records, n_before, n, rows->stride);
	index_shrink(&rows->index);
	return numbers;
}

void rows_begin(struct rows *rows)
{
	if (++rows->generation == 0)
		rows->generation = 2;
	rows->n_touched = 0;
	rows_touch_row(rows, ROWS_OVERFLOW);
}

uint64_t *rows_touch_row(struct rows *rows, uint32_t row)
{
	struct row *record = rows_at(rows, row);
	uint64_t *cells = (uint64_t *)((uint8_t *)record + rows->cells_at);

	if (record->generation == rows->generation)
		return cells;
	record->generation = rows->generation;
	rows->n_touched++;
	return memset(cells, 0, rows->n_cells * sizeof(*cells));
}

static uint32_t find_row(const struct rows *rows, const void *key, uint64_t hash)
{
	uint32_t row;

	index_for_each(row, &rows->index, hash)
		if (rows_at(rows, row)->hash == hash &&
		    !memcmp(rows_key(rows, row), key, rows->key_bytes))
			return row;
	return ROWS_OVERFLOW;
}

uint32_t rows_find(const struct rows *rows, const void *key)
{
	return find_row(rows, key, hash_bytes(key, rows->key_bytes));
}

static int add_row(struct rows *rows, const void *key, uint64_t hash, uint32_t *ret_row)
{
	uint32_t row = rows->first_free ? rows->first_free : (uint32_t)rows->n;
	int err = index_add(&rows->index, hash, row);

	if (err)
		return err;
	if (rows->first_free) {
		rows->first_free = rows_at(rows, row)->next_free;
		memset(rows_at(rows, row), 0, rows->stride);
	} else if (!array_add(&rows->records, &rows->n, rows->stride)) {
		index_remove(&rows->index, hash, row);
		return -ENOMEM;
	}
	memcpy(rows_at(rows, row) + 1, key, rows->key_bytes);
	rows_at(rows, row)->hash = hash;
	rows->n_live++;
	*ret_row = row;
	return 0;
}

int rows_touch(struct rows *rows, const void *key, uint32_t *ret_row)
{
	uint64_t hash = hash_bytes(key, rows->key_bytes);
	uint32_t row = find_row(rows, key, hash);

	if (row == ROWS_OVERFLOW) {
		int err = add_row(rows, key, hash, &row);

		if (err)
			return err;
	}
	rows_touch_row(rows, row);
	*ret_row = row;
	return 0;
}

void rows_end(struct rows *rows)
{
	for (uint32_t row = 0; rows->n_touched <= rows->n_live && row < rows->n; row++)
		if (rows_is_live(rows, row) && rows_at(rows, row)->stay)
			rows_touch_row(rows, row);
}

void rows_remove(struct rows *rows, uint32_t row)
{
	struct row *record = rows_at(rows, row);

	index_remove(&rows->index, record->hash, row);
	record->generation = 0;
	record->next_free = rows->first_free;
	rows->first_free = row;
	rows->n_live--;
}
