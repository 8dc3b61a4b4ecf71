/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes the maps of an object: for as many units as there should be room for. */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/binding/size.h"

#include "collector/binding/binding.h"
#include "collector/table/layout.h"

/*
 * Where processes are asked for: entries of owner.h's process_names, and how many more keys a unit
 * has.
 */
#define PROCESS_NAMES  8192
#define PROCESS_FACTOR 4

#define FEW_KEYS     3
#define NARROW_BYTES 64

/*
 * A table that no collector exports now is as small as can be: the code that counts there is not
 * loaded.
 */
static uint64_t keys_of(const struct binding *binding, uint64_t units,
			const struct table_parts *parts)
{
	uint64_t per_unit = *parts->per_unit;

	if (!variable_is_on(&binding->collector->variables, binding->first->when))
		return 0;
	/*
	 * Where it costs little: units that have just ended keep their keys until the next
	 * collection.
	 */
	if (!parts->columns && bpf_map__value_size(parts->values) <= NARROW_BYTES &&
	    per_unit < FEW_KEYS)
		per_unit = FEW_KEYS;
	return units * per_unit * (variable_is_on(&binding->collector->variables, "per_process") ?
				   PROCESS_FACTOR : 1);
}

static struct bpf_map *find_companion(const struct bpf_object *bpf, const struct bpf_map *map,
				      const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", bpf_map__name(map), what);
	return bpf_object__find_map_by_name(bpf, name);
}

/*
 * The least that is possible for events that nobody reads, and for the cgroups that programs leave
 * out, where they leave none out. A ring that is not of event.h may be read without a binding.
 */
static void shrink_events(const struct object *object, const struct bpf_object *bpf,
			  struct bpf_map *map, bool is_read)
{
	struct bpf_map *unwanted = find_companion(bpf, map, "unwanted");

	if (bpf_map__type(map) != BPF_MAP_TYPE_RINGBUF || !find_companion(bpf, map, "losses"))
		return;
	if (!is_read)
		(void)bpf_map__set_max_entries(map, (uint32_t)sysconf(_SC_PAGESIZE));
	if (unwanted && !(is_read && variable_is_on(&object->variables, VARIABLE_CHOOSING)))
		(void)bpf_map__set_max_entries(unwanted, 1);
}

uint64_t sizes_set(const struct object *object, struct bpf_object *bpf)
{
	struct bpf_map *names = bpf_object__find_map_by_name(bpf, "process_names"), *map;
	const struct table_machine machine = table_machine();
	uint64_t bytes = 0;
	uint32_t n_words = 0;

	bpf_object__for_each_map (map, bpf) {
		const struct binding *binding = binding_of(object, bpf_map__name(map));
		const struct variable *entries;
		struct table_parts parts;
		uint32_t n_entries;
		char name[64];

		shrink_events(object, bpf, map, binding);
		if (table_find(bpf, bpf_map__name(map), &parts)) {
			/*
			 * Of a collector that is off: nobody maps it, and it keeps its one place.
			 */
			(void)bpf_map__set_map_flags(parts.keys, binding ? BPF_F_MMAPABLE : 0);
			(void)bpf_map__set_map_flags(parts.values, binding ? BPF_F_MMAPABLE : 0);
			if (binding)
				bytes += table_size(&parts, keys_of(binding, object->units, &parts),
						    &machine, &n_words);
		}
		snprintf(name, sizeof(name), "%s_entries", bpf_map__name(map));
		entries = variable_find(&object->variables, name);
		if (!entries || entries->size_bytes != sizeof(n_entries))
			continue;
		memcpy(&n_entries, object->variables.data + entries->offset_bytes,
		       sizeof(n_entries));
		(void)bpf_map__set_max_entries(map, n_entries);
	}
	for (size_t i = 0; i < object->n_collectors; i++)
		if (names && variable_is_on(&object->collectors[i]->variables, "per_process"))
			(void)bpf_map__set_max_entries(names, PROCESS_NAMES);
	return bytes;
}
