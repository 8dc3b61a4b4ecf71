/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the sweeps have taken out of the kernel's maps since the last snapshot of the rows, for a process that comes
 * after this one and knows only the snapshot. It follows the snapshot.
 *
 * A removal changes a map and what a row holds; a process can be killed between any two instructions of it. So first
 * its record is written, with the numbers, and counted (.bytes). Then the map is changed, and last .bytes_done
 * becomes .bytes. If the two differ at the start of a process, the last removal has to be finished: its numbers
 * can no longer change, and each of its steps may be done twice.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/store.h"

struct removals {
	struct store *store; /* NULL: nobody comes after this process */
	size_t begin;	     /* of the first, in the store */
	uint64_t *bytes, *bytes_done; /* in the store */
};

struct removal {
	uint32_t binding; /* its number in the snapshot; REMOVALS_NAME: see below */
	uint32_t place;	  /* of a table; 0: the key was in a hash map */
	const void *key;
	uint32_t key_bytes, n_cells;
	const uint64_t *cells; /* what it held */
};

/* What a ring has told and will not tell again: a new cgroup's path (key) and id (cells). It may be read twice. */
#define REMOVALS_NAME UINT32_MAX

/* False: it cannot be recorded, so nothing must be removed. removals may be NULL. */
bool removals_add(struct removals *removals, const struct removal *removal);
/* The map has been changed. */
void removals_end(struct removals *removals);
