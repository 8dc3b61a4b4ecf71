/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/table/layout.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"

#define RODATA ".rodata.table"
#define DATA   ".data.table"

/* A variable of size_bytes in a section, as it will be loaded; NULL: there is none. */
static void *find_variable(const struct bpf_object *bpf, const char *section, const char *name,
			   uint32_t size_bytes)
{
	const struct btf *btf = bpf_object__btf(bpf);
	int id = btf ? btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC) : -1;
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	struct bpf_map *map = bpf_object__find_map_by_name(bpf, section);
	size_t size = 0;
	const void *initial = map && bpf_map__is_internal(map) ?
			      bpf_map__initial_value(map, &size) : NULL;
	/*
	 * Some versions of libbpf call it constant, but it is what bpf_map__set_initial_value()
	 * copies to.
	 */
	uint8_t *data = (uint8_t *)(uintptr_t)initial;

	for (uint32_t i = 0; data && type && i < btf_vlen(type); i++) {
		const struct btf_var_secinfo *info = &btf_var_secinfos(type)[i];
		const struct btf_type *variable = btf__type_by_id(btf, info->type);

		if (variable && info->size == size_bytes && size >= size_bytes &&
		    info->offset <= size - size_bytes &&
		    info->offset % size_bytes == 0 &&
		    !strcmp(btf__name_by_offset(btf, variable->name_off) ?: "", name))
			return data + info->offset;
	}
	return NULL;
}

static uint32_t *find_number(const struct bpf_object *bpf, const char *section, const char *table,
			     const char *suffix)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s", table, suffix);
	return find_variable(bpf, section, name, sizeof(uint32_t));
}

static struct bpf_map *find_map(const struct bpf_object *bpf, const char *table, const char *suffix,
				enum bpf_map_type type)
{
	struct bpf_map *map;
	char name[256];

	snprintf(name, sizeof(name), "%s%s", table, suffix);
	map = bpf_object__find_map_by_name(bpf, name);
	return map && bpf_map__type(map) == type ? map : NULL;
}

bool table_find(const struct bpf_object *bpf, const char *name, struct table_parts *ret_parts)
{
	struct table_parts parts = {
		.values = find_map(bpf, name, "", BPF_MAP_TYPE_ARRAY),
		.words = find_map(bpf, "table", "_words", BPF_MAP_TYPE_ARRAY),
		.keys = find_map(bpf, name, "_keys", BPF_MAP_TYPE_ARRAY),
		.more = find_map(bpf, name, "_more", BPF_MAP_TYPE_HASH),
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
		(uint32_t)((uint8_t *)parts.mask -
			   (uint8_t *)bpf_map__initial_value(parts.data, &(size_t){ 0 }));
	*ret_parts = parts;
	return true;
}

bool table_is_part(const struct bpf_object *bpf, const struct bpf_map *map)
{
	const char *name = bpf_map__name(map);
	struct table_parts parts;
	char table[256] = "", *suffix;

	strncat(table, name, sizeof(table) - 1);
	suffix = strrchr(table, '_');
	if (suffix)
		*suffix = '\0';
	return !strcmp(name, "table_words") ||
	       (table_find(bpf, table, &parts) && (map == parts.keys || map == parts.more));
}

uint64_t *table_seed(const struct bpf_object *bpf)
{
	return find_variable(bpf, RODATA, "table_seed", sizeof(uint64_t));
}

#define CAPACITY_MIN 64u
/* Kernels before 6.0 compute places in an array with 32 bits. */
#define ARRAY_BYTES_MAX (4ull << 30)
#define ACTIVE_MIN   128u
/* That a table and its hash map hold together, if the table is not smaller than half of that. */
#define TOGETHER_MIN 2048u

/* A place more for each three keys: probes are short, and some tables hold more than usual. */
static uint32_t capacity_for(uint64_t n_keys, uint64_t place_bytes)
{
	uint32_t capacity = CAPACITY_MIN;

	while (capacity < n_keys * 4 / 3 && 2 * capacity * place_bytes < ARRAY_BYTES_MAX)
		capacity *= 2;
	return capacity;
}

/*
 * At three quarters of the places in use, one key in 2000 finds none. Units that come and go fill
 * tables of few keys a unit first, and an entry costs no column for each CPU.
 */
static uint32_t more_of(uint32_t capacity)
{
	if (capacity >= TOGETHER_MIN)
		return capacity / 8;
	return capacity < TOGETHER_MIN / 2 ? capacity / 4 : TOGETHER_MIN - capacity;
}

/*
 * Programs use a part until a key finds no place there. Then most keys get a second one, so the
 * part is small.
 */
static uint32_t active_of(uint32_t capacity)
{
	uint32_t active = capacity / 16 > ACTIVE_MIN ? capacity / 16 : ACTIVE_MIN;

	return active < capacity ? active : capacity;
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* The kernel's array of n elements, and what surrounds it. */
static uint64_t array_bytes(uint64_t n, uint64_t element_bytes)
{
	return round_up(n * round_up(element_bytes, 8), 4096) + 512;
}

/*
 * The kernel's hash: buckets, and elements that are all there from the start, with one to spare for
 * each CPU.
 */
static uint64_t hash_bytes_of(uint64_t n, uint64_t key_bytes, uint64_t value_bytes, uint32_t n_cpus)
{
	uint64_t element_bytes = 48 + round_up(key_bytes, 8) + round_up(value_bytes, 8);

	return round_up(n * 16, 4096) + round_up((n + n_cpus) * element_bytes, 4096) +
	       n_cpus * 64 + 1024;
}

/* The highest number in "0-3,5". */
static uint32_t highest_online(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	uint32_t number, highest = (uint32_t)libbpf_num_possible_cpus() - 1;

	while (f && fscanf(f, "%" SCNu32 "%*[-,]", &number) == 1)
		highest = number;
	return highest;
}

struct table_machine table_machine(void)
{
	const char *pretended = getenv("BPFPUSH_PRETEND_CPUS");
	uint32_t n_online, n_possible;
	int n = pretended ? sscanf(pretended, "%4" SCNu32 "/%4" SCNu32, &n_online, &n_possible) : 0;

	if (n > 0 && n_online)
		return (struct table_machine){ n_online + 1, n == 2 ? n_possible : n_online };
	return (struct table_machine){ highest_online() + 2, (uint32_t)libbpf_num_possible_cpus() };
}

uint64_t table_size(const struct table_parts *parts, uint64_t n_keys,
		    const struct table_machine *machine,
		   uint32_t *n_words)
{
	uint32_t key_bytes = bpf_map__value_size(parts->keys),
		value_bytes = bpf_map__value_size(parts->values);
	uint32_t columns = parts->columns ? machine->n_columns : 1;
	uint64_t column_bytes = columns * round_up(value_bytes, 8);
	uint32_t capacity = capacity_for(n_keys,
					 column_bytes > key_bytes ? column_bytes : key_bytes);

	/* The words of each table begin on a page, so that the agent can map what it reads. */
	*parts->base = *n_words;
	*n_words += (uint32_t)round_up(capacity,
				       (uint64_t)sysconf(_SC_PAGESIZE) / sizeof(uint64_t));
	*parts->capacity = capacity;
	*parts->mask = active_of(capacity) - 1;
	if (parts->columns)
		*parts->columns = columns;
	(void)bpf_map__set_max_entries(parts->words, *n_words);
	(void)bpf_map__set_max_entries(parts->keys, capacity);
	(void)bpf_map__set_max_entries(parts->values, capacity * columns);
	(void)bpf_map__set_max_entries(parts->more, more_of(capacity));
	return array_bytes(capacity, sizeof(uint64_t)) + array_bytes(capacity, key_bytes) +
	       array_bytes((uint64_t)capacity * columns, value_bytes) +
	       hash_bytes_of(more_of(capacity), key_bytes, value_bytes, machine->n_possible);
}
