/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/flat/removals.h"

bool removals_add(struct removals *removals, const struct removal *removal)
{
	struct store *store = removals ? removals->store : NULL;
	size_t begin;

	if (!store)
		return true;
	begin = store_begin(store);
	store_number(store, removal->binding);
	store_number(store, removal->place);
	store_bytes(store, removal->key, removal->key_bytes);
	store_numbers(store, removal->cells, removal->n_cells);
	store_end(store, begin);
	if (store->has_failed)
		return false;
	/* From here on a later process finds it. */
	__atomic_store_n(removals->bytes, store->size - removals->begin, __ATOMIC_SEQ_CST);
	return true;
}

void removals_end(struct removals *removals)
{
	if (removals && removals->store)
		__atomic_store_n(removals->bytes_done, *removals->bytes, __ATOMIC_SEQ_CST);
}
