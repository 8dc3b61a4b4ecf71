/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How large a table becomes, and what it takes of the kernel's memory. */

#include <stdint.h>

#include "collector/flat/layout.h"

/* What the machine is like. */
struct flat_machine {
	uint32_t n_columns;  /* of a table with a column for each CPU: those that are online, and one for the others */
	uint32_t n_possible; /* CPUs */
};

/*
 * The environment variable BPFPUSH_PRETEND_CPUS, for tests, says how many CPUs are online, and after a slash how
 * many are possible.
 */
struct flat_machine flat_machine(void);
/*
 * Gives an opened object's table room for n_keys keys, or as few as possible. n_words: how many words its tables
 * have so far. Returns the bytes that the table will take.
 */
uint64_t flat_size(const struct flat_parts *parts, uint64_t n_keys, const struct flat_machine *machine,
		   uint32_t *n_words);
