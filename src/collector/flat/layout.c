/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/flat/layout.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

#define RODATA ".rodata.table"
#define DATA   ".data.table"

/* A variable of size_bytes in a section, as it will be loaded; NULL: there is none. */
static void *find_variable(const struct bpf_object *bpf, const char *section, const char *name, uint32_t size_bytes)
{
	const struct btf *btf = bpf_object__btf(bpf);
	int id = btf ? btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC) : -1;
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	struct bpf_map *map = bpf_object__find_map_by_name(bpf, section);
	size_t size = 0;
	const void *initial = map && bpf_map__is_internal(map) ? bpf_map__initial_value(map, &size) : NULL;
	/* Some versions of libbpf call it constant, but it is what bpf_map__set_initial_value() copies to. */
	uint8_t *data = (uint8_t *)(uintptr_t)initial;

	for (uint32_t i = 0; data && type && i < btf_vlen(type); i++) {
		const struct btf_var_secinfo *info = &btf_var_secinfos(type)[i];
		const struct btf_type *variable = btf__type_by_id(btf, info->type);

		if (variable && info->size == size_bytes && size >= size_bytes && info->offset <= size - size_bytes &&
		    info->offset % size_bytes == 0 && !strcmp(btf__name_by_offset(btf, variable->name_off) ?: "", name))
			return data + info->offset;
	}
	return NULL;
}

static uint32_t *find_number(const struct bpf_object *bpf, const char *section, const char *table, const char *suffix)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s", table, suffix);
	return find_variable(bpf, section, name, sizeof(uint32_t));
}

static struct bpf_map *find_map(const struct bpf_object *bpf, const char *table, const char *suffix,
				enum bpf_map_type type, uint32_t flag)
{
	struct bpf_map *map;
	char name[256];

	snprintf(name, sizeof(name), "%s%s", table, suffix);
	map = bpf_object__find_map_by_name(bpf, name);
	return map && bpf_map__type(map) == type && (bpf_map__map_flags(map) & flag) == flag ? map : NULL;
}

bool flat_find(const struct bpf_object *bpf, const char *name, struct flat_parts *ret_parts)
{
	struct flat_parts parts = {
		.values = find_map(bpf, name, "", BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE),
		.words = find_map(bpf, "table", "_words", BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE),
		.keys = find_map(bpf, name, "_keys", BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE),
		.more = find_map(bpf, name, "_more", BPF_MAP_TYPE_HASH, 0),
		.data = bpf_object__find_map_by_name(bpf, DATA),
	};

	if (!parts.values || !parts.words || !parts.keys || !parts.more)
		return false;
	parts.per_unit = find_number(bpf, RODATA, name, "_per_unit");
	parts.base = find_number(bpf, RODATA, name, "_base");
	parts.capacity = find_number(bpf, RODATA, name, "_capacity");
	parts.columns = find_number(bpf, RODATA, name, "_columns");
	parts.mask = find_number(bpf, DATA, name, "_mask");
	if (!parts.per_unit || !parts.base || !parts.capacity || !parts.mask ||
	    bpf_map__value_size(parts.words) != sizeof(uint64_t) ||
	    bpf_map__key_size(parts.more) != bpf_map__value_size(parts.keys) ||
	    bpf_map__value_size(parts.more) != bpf_map__value_size(parts.values))
		return false;
	parts.mask_offset_bytes =
		(uint32_t)((uint8_t *)parts.mask - (uint8_t *)bpf_map__initial_value(parts.data, &(size_t){ 0 }));
	*ret_parts = parts;
	return true;
}

bool flat_is_part(const struct bpf_object *bpf, const struct bpf_map *map)
{
	const char *name = bpf_map__name(map), *suffix = strrchr(name, '_');
	struct flat_parts parts;
	char table[256];

	if (!strcmp(name, "table_words"))
		return true;
	if (!suffix)
		return false;
	snprintf(table, sizeof(table), "%.*s", (int)(suffix - name), name);
	return flat_find(bpf, table, &parts) && (map == parts.keys || map == parts.more);
}

uint64_t *flat_seed(const struct bpf_object *bpf)
{
	return find_variable(bpf, RODATA, "table_seed", sizeof(uint64_t));
}
