/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What bpf/include/table.h makes of TABLE and TABLE_PERCPU: the maps and the variables of a flat
 * table; how large it becomes, and what it takes of the kernel's memory.
 */

#include <stdbool.h>
#include <stdint.h>

struct bpf_map;
struct bpf_object;

/*
 * The variables as the opened object will be loaded; the loaded object keeps what was written then.
 */
struct table_parts {
	struct bpf_map *values, *keys, *more;
	struct bpf_map *words; /* of all tables of the object */
	uint32_t *per_unit; /* keys that a unit typically has */
	uint32_t *base;	    /* of its words among them */
	uint32_t *capacity; /* places */
	uint32_t *columns;  /* NULL: the table has one */
	uint32_t *mask;	    /* of the places in use */
	struct bpf_map *data; /* where programs change the mask … */
	uint32_t mask_offset_bytes; /* … at this place */
};

/* False: the object has no whole table of that name. */
bool table_find(const struct bpf_object *bpf, const char *name, struct table_parts *ret_parts);
/* Is the map a table's NAME_keys or NAME_more, or the words of all tables? */
bool table_is_part(const struct bpf_object *bpf, const struct bpf_map *map);
/* The random number in the hashes, or NULL. */
uint64_t *table_seed(const struct bpf_object *bpf);

/* What the machine is like. */
struct table_machine {
	/* of a table with a column for each CPU: those that are online, and one for the others */
	uint32_t n_columns;
	uint32_t n_possible; /* CPUs */
};

/*
 * The environment variable BPFPUSH_PRETEND_CPUS, for tests, says how many CPUs are online, and
 * after a slash how many are possible.
 */
struct table_machine table_machine(void);
/*
 * Gives an opened object's table room for n_keys keys, or as few as possible. n_words: how many
 * words its tables have so far. Returns the bytes that the table will take.
 */
uint64_t table_size(const struct table_parts *parts, uint64_t n_keys,
		    const struct table_machine *machine,
		   uint32_t *n_words);
