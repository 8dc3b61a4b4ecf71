/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a place: nobody finds it, its last numbers are taken, it is vacant. */
#include "collector/flat/place.h"

#include <string.h>

void flat_retire(struct flat *table, uint32_t place)
{
	uint64_t word = table->words[place];

	/* Only the agent changes the word of a live place. */
	if ((word & TABLE_STATE) == TABLE_LIVE)
		__atomic_store_n(&table->words[place], word ^ TABLE_LIVE ^ TABLE_RETIRED, __ATOMIC_SEQ_CST);
}

bool flat_is_retired(const struct flat *table, uint32_t place)
{
	return (__atomic_load_n(&table->words[place], __ATOMIC_ACQUIRE) & TABLE_STATE) == TABLE_RETIRED;
}

void flat_leave(struct rows *rows, uint32_t row, const uint64_t *cells)
{
	uint64_t *previous = rows_previous(rows, row);

	for (uint32_t i = 0; i < rows->n_cells; i++)
		previous[i] -= cells[i];
	if (*rows_stay(rows, row) == ROWS_GO)
		*rows_stay(rows, row) = ROWS_ONCE;
}

static void clear(struct flat *table, uint32_t place)
{
	for (uint32_t column = 0; column < table->columns; column++)
		memset(flat_value(table, column, place), 0, table->stride_bytes);
	table->place_rows[place] = 0;
	__atomic_store_n(&table->words[place], (uint64_t)TABLE_REMOVED, __ATOMIC_SEQ_CST);
}

void flat_free(struct flat *table, struct rows *rows, uint32_t place, struct removals *removals, uint32_t binding)
{
	uint64_t *cells = table->cells;
	uint32_t row = table->place_rows[place];
	const struct removal removal = { binding, place, rows_key(rows, row), rows->key_bytes, rows->n_cells, cells };

	memset(cells, 0, rows->n_cells * sizeof(*cells));
	flat_add(table, place, cells);
	if (!removals_add(removals, &removal))
		return;
	flat_leave(rows, row, cells);
	clear(table, place);
	removals_end(removals);
}

void flat_finish(struct flat *table, uint32_t place)
{
	if (place < table->n_places && flat_is_retired(table, place))
		clear(table, place);
}
