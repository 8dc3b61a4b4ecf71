/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing: a pair lies at the first free place from its hash on. A search ends at a free
 * place, so a removal moves later pairs of the same run up into the gap, unless they lie before
 * their own place then.
 */
#include "util/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MIN 16u

static void put_entry(struct index *index, struct index_entry entry)
{
	size_t at = entry.hash & (index->n_entries - 1);

	while (index->entries[at].number_plus_1)
		at = (at + 1) & (index->n_entries - 1);
	index->entries[at] = entry;
}

static int resize_index(struct index *index, size_t n_entries)
{
	struct index other = { .n_entries = n_entries, .n = index->n };

	other.entries = calloc(n_entries, sizeof(*other.entries));
	if (!other.entries)
		return -ENOMEM;
	for (size_t i = 0; i < index->n_entries; i++)
		if (index->entries[i].number_plus_1)
			put_entry(&other, index->entries[i]);
	free(index->entries);
	*index = other;
	return 0;
}

void index_shrink(struct index *index)
{
	size_t n_entries = index->n_entries;

	while (n_entries > ENTRIES_MIN && 8 * index->n < n_entries)
		n_entries /= 2;
	if (n_entries < index->n_entries)
		(void)resize_index(index, n_entries);
}

int index_add(struct index *index, uint64_t hash, uint32_t number)
{
	if (2 * (index->n + 1) > index->n_entries &&
	    resize_index(index, index->n_entries ? index->n_entries * 2 : ENTRIES_MIN))
		return -ENOMEM;
	put_entry(index, (struct index_entry){ (uint32_t)hash, number + 1 });
	index->n++;
	return 0;
}

void index_remove(struct index *index, uint64_t hash, uint32_t number)
{
	size_t mask = index->n_entries - 1, gap = (uint32_t)hash & mask;

	while (index->entries[gap].number_plus_1 != number + 1)
		gap = (gap + 1) & mask;
	for (size_t at = (gap + 1) & mask; index->entries[at].number_plus_1; at = (at + 1) & mask) {
		size_t distance = (at - index->entries[at].hash) & mask;

		if (distance < ((at - gap) & mask))
			continue;
		index->entries[gap] = index->entries[at];
		gap = at;
	}
	index->entries[gap].number_plus_1 = 0;
	index->n--;
}

void index_clear(struct index *index)
{
	if (index->n_entries)
		memset(index->entries, 0, index->n_entries * sizeof(*index->entries));
	index->n = 0;
}

void index_done(struct index *index)
{
	free(index->entries);
	*index = (struct index){ 0 };
}
