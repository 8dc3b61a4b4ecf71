/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What bpf/include/table.h makes of TABLE and TABLE_PERCPU: the maps and the variables of a flat table. */

#include <stdbool.h>
#include <stdint.h>

struct bpf_map;
struct bpf_object;

/* The variables as the opened object will be loaded; the loaded object keeps what was written then. */
struct flat_parts {
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
bool flat_find(const struct bpf_object *bpf, const char *name, struct flat_parts *ret_parts);
/* Is the map a table's NAME_keys or NAME_more, or the words of all tables? */
bool flat_is_part(const struct bpf_object *bpf, const struct bpf_map *map);
/* The random number in the hashes, or NULL. */
uint64_t *flat_seed(const struct bpf_object *bpf);
