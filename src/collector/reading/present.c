/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/reading/present.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/reading/option.h"
#include "metric/series.h"
#include "util/array.h"

/* The kernel's list is like "0-3,5". Where it cannot be read, all are taken to be online. */
static void read_online(bool *online, unsigned int n)
{
	_cleanup_(fclosep) FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	unsigned int cpu, last;

	memset(online, !f, n);
	while (f && fscanf(f, "%u", &cpu) == 1) {
		last = cpu;
		(void)!fscanf(f, "-%u", &last);
		for (; cpu <= last && cpu < n; cpu++)
			online[cpu] = true;
		(void)!fscanf(f, ",");
	}
}

void cpus_choose(struct binding *binding)
{
	unsigned int n = (unsigned int)libbpf_num_possible_cpus();
	_cleanup_(freep) bool *online = malloc(n);
	struct rows *rows = binding->rows;

	if (!online)
		return;
	read_online(online, n);
	for (uint32_t row = ROWS_OVERFLOW + 1; row < rows->n; row++)
		if (rows_is_live(rows, row))
			delta_hide(&binding->delta, rows, row,
				   !online[source_row_cpu(&binding->source, rows_key(rows, row)) % n]);
}

/* Each constant feeds a series from the start on, besides the row that it may get. */
static int add_zero(struct binding *binding, const struct delta_metric *of, const void *key, uint64_t previous_ns)
{
	struct attributes attributes;
	struct series **zero;
	int r;

	attributes_init(&attributes);
	r = binding->delta.attributes(binding, key, of, &attributes);
	if (r < 0 || r == DELTA_UNWANTED)
		return r < 0 ? r : 0;
	zero = array_add(&binding->zeros, &binding->n_zeros, sizeof(*zero));
	r = zero ? series_get(of->metric, &attributes, previous_ns, zero) : -ENOMEM;
	binding->n_zeros -= zero && r;
	return r;
}

static int add_zeros(struct binding *binding, const struct delta_metric *of, uint64_t previous_ns)
{
	const struct object *object = binding->collector->object;
	uint32_t n_entries = bpf_map__max_entries(bpf_object__find_map_by_name(object->bpf, binding->map));
	const struct field *field = option_find_enum(binding);
	_cleanup_(freep) uint8_t *key = calloc(1, binding->key.size_bytes);
	int err = key ? 0 : -ENOMEM;
	int64_t value;

	for (uint32_t i = 0; !err && shape_enum_at(object->btf, field->type_id, i, &value); i++) {
		memcpy(key + field->offset_bytes, &value, field->size_bytes);
		/* The last one may be their number. */
		if (!(source_traits(&binding->source) & SOURCE_ARRAY) || (uint64_t)value < n_entries)
			err = add_zero(binding, of, key, previous_ns);
	}
	return err;
}

int zeros_compute(struct binding *binding, uint64_t previous_ns)
{
	int err = 0;

	if (binding->zeros || !setting_is_on(&binding->collector->settings, binding->when))
		return 0;
	array_for_each (of, binding->delta.metrics, binding->delta.n_metrics) {
		const char *zero = ((const struct descriptor_metric *)of->user)->zero;

		if (!err && zero && !strcmp(zero, "yes"))
			err = add_zeros(binding, of, previous_ns);
	}
	if (err)
		zeros_release(binding);
	return err;
}

void zeros_release(struct binding *binding)
{
	for (size_t i = 0; i < binding->n_zeros; i++)
		series_put(binding->zeros[i]);
	free(binding->zeros);
	binding->zeros = NULL;
	binding->n_zeros = 0;
}
