/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/binding/present.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "collector/binding/option.h"

void cpus_choose(struct binding *binding)
{
	_cleanup_(fclosep) FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	struct rows *rows = binding->rows;
	unsigned int cpu, last;
	cpu_set_t online;
	int n;

	/*
	 * The kernel's list is like "0-3,5". Where it cannot be read, all are taken to be online.
	 */
	memset(&online, f ? 0 : 0xff, sizeof(online));
	while (f && (n = fscanf(f, "%u-%u", &cpu, &last)) > 0) {
		for (last = n == 2 ? last : cpu; cpu <= last && cpu < CPU_SETSIZE; cpu++)
			CPU_SET(cpu, &online);
		(void)!fscanf(f, ",");
	}
	for (uint32_t row = ROWS_OVERFLOW + 1; row < rows->n; row++) {
		cpu = reader_row_cpu(&binding->reader, rows_key(rows, row));
		if (rows_is_live(rows, row) && cpu < CPU_SETSIZE)
			delta_hide(&binding->delta, rows, row, !CPU_ISSET(cpu, &online));
	}
}

int zeros_touch(struct binding *binding)
{
	const struct object *object = binding->collector->object;
	bool is_array = reader_traits(binding->reader.type) & READER_ARRAY;
	const struct field *field = option_find_enum(binding);
	_cleanup_(freep) uint8_t *key = calloc(1, binding->key.size_bytes);
	uint32_t n = bpf_map__max_entries(bpf_object__find_map_by_name(object->bpf, binding->map)),
		row;
	int err = key ? 0 : -ENOMEM;
	int64_t value;

	for (uint32_t i = 0; !err && shape_enum_at(object->btf, field->type_id, i, &value); i++) {
		memcpy(key + field->offset_bytes, &value, field->size_bytes);
		/* The last constant may be their number. */
		if (!is_array || (uint64_t)value < n)
			err = rows_touch(binding->rows, key, &row);
	}
	return err;
}
