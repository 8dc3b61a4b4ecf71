/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A hash index for things in an array: it maps the hash of a thing's key to the thing's number. The
 * index does not know keys, so the caller compares. Removing leaves no trace, so removed entries
 * never fill the index.
 *
 *     uint32_t number;
 *
 *     index_for_each(number, &index, hash)
 *             if (is_equal(&things[number], key))
 *                     return &things[number];
 */

#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index_entry {
	uint32_t hash;
	uint32_t number_plus_1; /* 0: free */
};

struct index {
	struct index_entry *entries; /* a power of two of them, at most half in use */
	size_t n_entries, n;
};

/* Many numbers may have one hash. number < INDEX_NONE - 1. -ENOMEM: nothing has changed. */
int index_add(struct index *index, uint64_t hash, uint32_t number);
/* The pair is in the index. */
void index_remove(struct index *index, uint64_t hash, uint32_t number);
/* Empty again, with its memory kept: as many pairs as were in it can be added without -ENOMEM. */
void index_clear(struct index *index);
/* After removals: gives back room that is not needed. Without memory it stays as it is. */
void index_shrink(struct index *index);
void index_done(struct index *index);

/* The next number with this hash from place *at on, or INDEX_NONE. */
static inline uint32_t index_next(const struct index *index, uint64_t hash, size_t *at)
{
	while (index->n_entries) {
		const struct index_entry *entry = &index->entries[(*at)++ & (index->n_entries - 1)];

		if (!entry->number_plus_1)
			break;
		if (entry->hash == (uint32_t)hash)
			return entry->number_plus_1 - 1;
	}
	return INDEX_NONE;
}

/* The index must not change within the loop. */
#define index_for_each(number_, index_, hash_)     \
	for (size_t index_at_ = (uint32_t)(hash_); \
	     ((number_) = index_next(index_, hash_, &index_at_)) != INDEX_NONE;)
