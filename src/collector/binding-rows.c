/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a binding, from the start on. Growth is counted from the attaching on. A map that outlives the
 * agent (pinned), or that iterators alone write, holds something before: its first reading is the baseline.
 *
 * A key is removed when nothing has counted on it for some readings and its owner has ended.
 */
#include "collector/binding.h"

#include <bpf/libbpf.h>
#include <string.h>

/* Readings without growth before a key's owner is looked for. */
#define IDLE_READINGS 3

/* What a key becomes for one metric: its own attributes, then those that the section fixes. */
static int key_attributes(void *user, const void *key, const struct delta_metric *of, struct attributes *attributes)
{
	const struct binding *binding = user;
	const struct descriptor_metric *described = of->user;
	int is_unknown = 0, r;

	for (uint32_t i = 0; i < binding->key.n_fields; i++) {
		const struct binding_label *label = &binding->labels[i];
		const struct field *field = &binding->key.fields[i];

		if (!label->attribute)
			continue;
		r = label_add(label->type, &binding->collector->context, field, label->attribute,
			      (const uint8_t *)key + field->offset_bytes, attributes);
		if (r < 0)
			return r;
		is_unknown |= r;
	}
	for (unsigned int i = 0; i < described->n_attributes; i++) {
		r = attributes_add_text(attributes, described->attributes[i].name, described->attributes[i].value,
					strlen(described->attributes[i].value));
		if (r)
			return r;
	}
	return is_unknown;
}

void binding_close(struct binding *binding)
{
	source_close(&binding->source);
	binding->rows = rows_free(binding->rows);
}

static int read_baseline(struct binding *binding, bool is_whole)
{
	int err = source_read(&binding->source, binding->rows);

	if (!err)
		delta_baseline(&binding->delta, binding->rows, is_whole);
	return err;
}

static int binding_open(struct binding *binding, const struct bpf_map *map)
{
	struct source *source = &binding->source;
	int err;

	binding_close(binding);
	source->fd = bpf_map__fd(map);
	source->max_entries = bpf_map__max_entries(map);
	if (source->is_table)
		source->slots_per_cpu = source->max_entries / (uint32_t)libbpf_num_possible_cpus();
	binding->delta.attributes = key_attributes;
	binding->delta.user = binding;
	err = rows_new(source->key_bytes, source_n_cells(source), binding->delta.n_metrics, &binding->rows);
	if (!err)
		err = source_open(source);
	/* Earlier runs, or others, have left numbers in a pinned map. */
	if (!err && bpf_map__pin_path(map))
		err = read_baseline(binding, true);
	return err;
}

int bindings_open(struct collector *collector, const struct bpf_object *object)
{
	int err = 0;

	for (size_t i = 0; i < collector->n_bindings && !err; i++) {
		struct binding *binding = &collector->bindings[i];

		binding->collector = collector;
		err = binding_open(binding, bpf_object__find_map_by_name(object, binding->map));
	}
	return err;
}

static bool has_tally(const struct binding *binding)
{
	for (uint32_t i = 0; i < binding->delta.n_metrics; i++)
		if (binding->delta.metrics[i].is_tally)
			return true;
	return false;
}

int bindings_take_baseline(struct collector *collector)
{
	int err = 0;

	for (size_t i = 0; i < collector->n_bindings && !err; i++) {
		struct binding *binding = &collector->bindings[i];
		bool is_iterators = programs_is_map_of_iterators(&collector->programs, binding->source.fd);

		if (is_iterators || has_tally(binding))
			err = read_baseline(binding, is_iterators);
	}
	return err;
}

static bool is_owner_gone(const struct binding *binding, uint32_t row)
{
	const uint8_t *key = rows_key(binding->rows, row);

	for (uint32_t i = 0; i < binding->key.n_fields; i++) {
		const struct label_type *type = binding->labels[i].type;
		const struct field *field = &binding->key.fields[i];

		if (type && label_is_gone(type, &binding->collector->context, field, key + field->offset_bytes))
			return true;
	}
	return false;
}

/* The next reading does not find them, and ends their rows. */
void binding_remove_gone(struct binding *binding)
{
	struct rows *rows = binding->rows;

	for (uint32_t row = 1; row < rows->n; row++)
		if (rows_is_live(rows, row) && *rows_idle(rows, row) >= IDLE_READINGS && is_owner_gone(binding, row))
			source_remove(&binding->source, rows, row);
}

/* A tally cannot be told from two readings at once, so it is held in the reading after a failure too. */
int binding_read(struct binding *binding)
{
	bool was_broken = binding->is_broken;
	int err = source_read(&binding->source, binding->rows);

	binding->is_broken = err != 0;
	for (uint32_t i = 0; i < binding->delta.n_metrics; i++) {
		const struct delta_metric *of = &binding->delta.metrics[i];

		if (of->metric->kind == METRIC_GAUGE && (err || (was_broken && of->is_tally)))
			of->metric->is_held = true;
	}
	return err;
}
