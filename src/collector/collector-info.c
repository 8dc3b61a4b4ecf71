/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector tells about its maps. */
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/binding.h"

/* "memlock:" of the map's fdinfo: what the kernel accounts for it, and needs no right to read. */
uint64_t collector_map_kernel_bytes(const struct collector_map *map)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[128];
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map->fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %" SCNu64, &bytes) == 1)
			break;
	return bytes;
}

bool collector_map(const struct collector *collector, size_t i, struct collector_map *ret_map)
{
	const struct binding *binding;
	struct bpf_map *map;

	bpf_object__for_each_map (map, collector->object) {
		if (i--)
			continue;
		binding = binding_find(collector, bpf_map__name(map));
		*ret_map = (struct collector_map){
			.fd = collector->is_started ? bpf_map__fd(map) : -1,
			.name = bpf_map__name(map),
			.type = binding && binding->source.is_table ? "table" : libbpf_bpf_map_type_str(bpf_map__type(map)),
			.max_entries = bpf_map__max_entries(map),
			.n_keys = binding && binding->rows ? binding->rows->n_live : 0,
			.overflowing = binding ? binding->source.full : 0,
		};
		return true;
	}
	return false;
}

const char *collector_full_table(const struct collector *collector)
{
	for (size_t i = 0; i < collector->n_bindings; i++)
		if (collector->bindings[i].source.full)
			return collector->bindings[i].map;
	return NULL;
}
