/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/flat/removals.h"

/* From here on a later process finds it. */
static bool commit(struct removals *removals, size_t begin)
{
	struct store *store = removals->store;

	store_end(store, begin);
	if (store->has_failed)
		return false;
	__atomic_store_n(removals->bytes, store->size - removals->begin, __ATOMIC_SEQ_CST);
	return true;
}

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
	return commit(removals, begin);
}

void removals_add_name(struct removals *removals, uint64_t id, const char *path)
{
	size_t begin;

	if (!removals || !removals->store)
		return;
	begin = store_begin(removals->store);
	store_number(removals->store, REMOVALS_NAME);
	store_number(removals->store, id);
	store_text(removals->store, path);
	(void)commit(removals, begin);
}

void removals_end(struct removals *removals)
{
	if (removals && removals->store)
		__atomic_store_n(removals->bytes_done, *removals->bytes, __ATOMIC_SEQ_CST);
}
