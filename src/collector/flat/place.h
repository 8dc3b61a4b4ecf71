/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The places of a flat table, for flat.c, which reads them, and place.c, which removes their keys. */

#include "collector/flat/flat.h"

/* As in bpf/include/table.h. */
enum table_state { TABLE_FREE = 0,
		   TABLE_LIVE = 1,
		   TABLE_REMOVED = 2,
		   TABLE_RETIRED = 5,
		   TABLE_RESERVED = 7 };
#define TABLE_STATE   7u
#define TABLE_IS_USED 3u /* of a state: LIVE and RETIRED have the same bits here, and no other has */
#define TABLE_SPILLED 8u

static inline uint8_t *flat_value(const struct flat *table, uint32_t column, uint32_t place)
{
	return table->values + ((size_t)column * table->capacity + place) * table->stride_bytes;
}

/* What all columns of a place hold, to the cells of a row. */
void flat_add(const struct flat *table, uint32_t place, uint64_t *cells);
