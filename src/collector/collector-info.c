/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector tells about itself: names, settings, maps. */
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/binding.h"

const char *collector_name(const struct collector *collector)
{
	return collector->name;
}

const char *collector_description(const struct collector *collector)
{
	return collector->descriptor->description;
}

const char *collector_directory(const struct collector *collector)
{
	return collector->directory;
}

struct metric **collector_metrics(const struct collector *collector, size_t *ret_n)
{
	*ret_n = collector->n_metrics;
	return collector->metrics;
}

struct programs *collector_programs(struct collector *collector)
{
	return &collector->programs;
}

bool collector_setting(const struct collector *collector, size_t i, struct collector_setting *ret_setting)
{
	const struct descriptor_param *param;
	const struct setting *setting;

	if (i >= collector->descriptor->n_params)
		return false;
	param = &collector->descriptor->params[i];
	setting = setting_find(&collector->settings, param->name);
	*ret_setting = (struct collector_setting){ param->name, param->description ?: "", param->default_text,
					       setting ? setting->text : NULL };
	return true;
}

/* "memlock:" of the map's fdinfo: what the kernel accounts for it, and needs no right to read. */
static uint64_t kernel_bytes(int fd)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[128];
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
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
			.name = bpf_map__name(map),
			.type = binding && binding->source.is_table ? "table" : libbpf_bpf_map_type_str(bpf_map__type(map)),
			.max_entries = bpf_map__max_entries(map),
			.n_keys = binding && binding->rows ? rows_n_live(binding->rows) : 0,
			.overflowing = binding ? binding->source.full : 0,
		};
		return true;
	}
	return false;
}

uint64_t collector_map_kernel_bytes(const struct collector *collector, size_t i)
{
	struct bpf_map *map;

	if (!collector->is_started)
		return 0;
	bpf_object__for_each_map (map, collector->object)
		if (!i--)
			return kernel_bytes(bpf_map__fd(map));
	return 0;
}

const char *collector_full_table(const struct collector *collector)
{
	for (size_t i = 0; i < collector->n_bindings; i++)
		if (collector->bindings[i].source.full)
			return collector->bindings[i].map;
	return NULL;
}
