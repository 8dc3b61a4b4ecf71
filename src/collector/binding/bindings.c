/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binding joins a map of the object with the sections of the descriptor that speak of it. BTF
 * gives the members with their places (shape); [metric] sections choose members of the value,
 * [label] sections name those of the key. The result is a list of runs (bytes of a value to cells
 * of a row) and of metrics (cells of a row to series), so that a reading never looks at a name
 * again.
 */
#include "collector/binding/bindings.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "collector/binding/event.h"
#include "collector/binding/key.h"
#include "collector/binding/meaning.h"
#include "collector/binding/option.h"
#include "collector/table/layout.h"
#include "metric/series.h"
#include "util/array.h"

/*
 * A type of the map's definition as a shape, or none after a complaint, which names the member in
 * the way. -ENOMEM.
 */
static int bind_shape(const struct binding *binding, const char *what, uint32_t type_id,
		      struct shape *shape)
{
	const struct collector *collector = binding->collector;
	_cleanup_(freep) char *culprit = NULL;
	char place[512] = "";
	int err;

	if (!type_id) {
		complain(collector, binding->first->line, "map \"%s\" has no type for its %s; write __type(%s, …) in its definition",
			 binding->map, what, what);
		return 0;
	}
	err = shape_from_btf(collector->object->btf, type_id, shape, &culprit);
	if (err != -EINVAL)
		return err;
	if (culprit)
		snprintf(place, sizeof(place), ": member %s", culprit);
	complain(collector, binding->first->line,
		 "the %s of map \"%s\" cannot be read%s; use integers, enums, arrays of them and structures of those", what,
		 binding->map, place);
	return 0;
}

/* A flat table has its keys in a map of their own. */
static bool bind_table(const struct collector *collector, struct binding *binding, uint32_t *key_id)
{
	struct table_parts parts;

	if (!table_find(collector->object->bpf, binding->map, &parts))
		return false;
	*key_id = bpf_map__btf_value_type_id(parts.keys);
	binding->reader.is_table = true;
	binding->reader.key_bytes = bpf_map__value_size(parts.keys);
	binding->reader.type = BPF_MAP_TYPE_HASH;
	return true;
}

/* Before there were columns, a table was an array of slots and had a variable with their number. */
static bool is_old_table(const struct collector *collector, const struct bpf_map *map)
{
	char slots[256];

	snprintf(slots, sizeof(slots), "%s_slots", bpf_map__name(map));
	return bpf_map__map_flags(map) & BPF_F_MMAPABLE &&
	       variable_find(&collector->object->variables, slots);
}

/*
 * The member of the key that says which bucket a value counts in; "key" where the key has no
 * members.
 */
static void bind_bucket(struct binding *binding)
{
	const struct shape *key = &binding->key;
	const char *member = binding->first->bucket;
	const struct field *field =
		shape_find(key, !*key->fields[0].name && !strcmp(member, "key") ? "" : member);

	if (!field)
		complain_of_unknown(binding->collector, binding->first->line, "member of the key", member,
				    key->fields, key->n_fields);
	else if (field->class != FIELD_INTEGER || field->is_signed)
		complain(binding->collector, binding->first->line,
			 "bucket = %s: this member of the key of map \"%s\" is not an unsigned integer; name one that is",
			 member, binding->map);
	else
		binding->bucket = field;
}

/* Why the map cannot be exported as the section wants it; NULL: it can. */
static const char *find_fault(const struct collector *collector, const struct bpf_map *map,
			      const struct descriptor_metric *first)
{
	enum reader_traits traits = reader_traits((int)bpf_map__type(map));
	bool is_ring = traits & READER_RECORDS;

	if (is_ring && !first->record)
		return "has records; say of which structure: record = STRUCT";
	if (!is_ring && first->record)
		return "is neither a ring buffer nor a perf event array, and only these have records";
	if (!traits)
		return "has a type that cannot be exported; use a flat table (TABLE), a hash or an array";
	if (is_old_table(collector, map))
		return "is a flat table of an earlier <bpfpush/table.h>; compile the object again";
	return NULL;
}

static int binding_make(struct collector *collector, const struct bpf_map *map,
			const struct descriptor_metric *first, struct binding **ret_binding)
{
	struct binding *binding = array_add(&collector->bindings, &collector->n_bindings,
					    sizeof(*binding));
	uint32_t key_id = bpf_map__btf_key_type_id(map), value_id = bpf_map__btf_value_type_id(map);
	const char *fault = find_fault(collector, map, first);
	int err;

	if (!binding)
		return -ENOMEM;
	*binding = (struct binding){ .map = first->map,
				      .first = first,
				      .reader.fd = -1,
				      .collector = collector };
	*ret_binding = binding;
	if (fault) {
		complain(collector, first->line, "map \"%s\" %s", first->map, fault);
		return 0;
	}
	if (!bind_table(collector, binding, &key_id)) {
		binding->reader.key_bytes = bpf_map__key_size(map);
		binding->reader.type = (int)bpf_map__type(map);
	}
	binding->reader.value_bytes = bpf_map__value_size(map);
	err = first->record ? option_bind_record(binding) :
	      bind_shape(binding, "key", key_id, &binding->key);
	if (!err && !first->record && binding->key.n_fields)
		err = bind_shape(binding, "value", value_id, &binding->value);
	if (err || !binding->key.n_fields || !binding->value.n_fields)
		return err;
	/*
	 * The kernel reads and writes as many bytes as the map says, the shapes look at as many as
	 * their types have.
	 */
	if (binding->key.size_bytes != binding->reader.key_bytes ||
	    binding->value.size_bytes != binding->reader.value_bytes) {
		complain(collector, first->line, "map \"%s\" does not have the sizes of its key's and value's types; compile the object again", first->map);
		return 0;
	}
	if (first->bucket)
		bind_bucket(binding);
	err = key_labels_new(binding);
	if (!err)
		options_set(binding, bpf_map__max_entries(map));
	return err;
}

/* Of a member, or of the value where it has no members: what follows its name. */
#define complain_of_field(collector, line, name, text, ...)                                      \
	do {                                                                                     \
		if (*(name))                                                                     \
			complain(collector, line, "member \"%s\" " text, name, ##__VA_ARGS__);   \
		else                                                                             \
			complain(collector, line, "the value " text, ##__VA_ARGS__);             \
	} while (0)

/* The field that [metric MAP.MEMBER] means; NULL after a complaint. */
static const struct field *find_field(const struct binding *binding,
				      const struct descriptor_metric *described)
{
	const struct shape *value = &binding->value;
	const struct field *field = shape_find(value, described->member);

	if (!field && !*described->member && value->n_fields == 1)
		field = &value->fields[0];
	if (field && (field->class == FIELD_INTEGER ||
		      (field->class == FIELD_HISTOGRAM && (field->is_known || described->buckets))))
		return field;
	if (field && field->class != FIELD_HISTOGRAM)
		complain_of_field(binding->collector, described->line, field->name, "of map \"%s\" is not a number; "
				  "export an integer or a histogram of <bpfpush/hist.h>", binding->map);
	else if (field)
		complain_of_field(binding->collector, described->line, described->member,
				  "of map \"%s\" has \"sum\" and \"bucket\", but its type does not say what the buckets hold; "
				  "write buckets = …, or make it a struct hist_time or struct hist_value of <bpfpush/hist.h>",
				  binding->map);
	else
		binding_complain_of_member(binding, "metric", described->line, described->member);
	return NULL;
}

static bool is_type(const struct field *field, const char *name)
{
	return !strcmp(field->type_name, name);
}

/* A sum only grows, so it is unsigned, and wide enough not to wrap twice between two readings. */
static void check_kind(const struct collector *collector, const struct descriptor_metric *described,
		       const struct field *field)
{
	bool is_sum = !described->kind && field->class != FIELD_HISTOGRAM,
		is_level = is_type(field, "val_level");
	unsigned int line = described->line;

	if (is_sum && field->is_signed && !is_type(field, "val_tally"))
		complain_of_field(collector, line, field->name,
				  "is signed, but a sum only grows; make it a u64, or write kind = gauge");
	else if (is_sum && field->size_bytes < 4)
		complain_of_field(collector, line, field->name, "has %u bits, too few for a sum that is read every few seconds; "
				  "make it a u64 or u32", 8 * field->size_bytes);
	if (is_sum && (is_type(field, "val_tally") || is_level))
		complain_of_field(collector, line, field->name, "is a %s, which is always a gauge; write kind = gauge",
				  field->type_name);
	if (described->kind && is_level && field->is_signed)
		complain_of_field(collector, line, field->name, "is signed, but a val_level is at least 0; make it a u64");
	if (described->unit && is_type(field, "val_ns") && strcmp(described->unit, "s"))
		complain_of_field(collector, line, field->name, "holds nanoseconds (val_ns), which are shown as seconds; "
				  "write unit = s, not %s", described->unit);
}

/* The bounds of a structure's buckets must be as many as it has. */
static void check_bounds(const struct collector *collector,
			 const struct descriptor_metric *described,
			 const struct field *field, const struct buckets *buckets)
{
	if (buckets->has_sum)
		complain_of_field(collector, described->line, field->name,
				  "has its sum in the structure; remove \"sum\" from \"buckets\"");
	else if (buckets->n && field->n_buckets != buckets->n + 1)
		complain_of_field(collector, described->line, field->name,
				  "has %u bucket%s, but with %u bound%s there are %u, the last one for all above; make it bucket[%u], "
				  "or change \"buckets\"", field->n_buckets, plural(field->n_buckets), buckets->n,
				  plural(buckets->n), buckets->n + 1, buckets->n + 1);
}

/* The metric of that name, shared by all sections that have it; they must agree on what it is. */
static int bind_metric(struct collector *collector, const struct descriptor_metric *described,
		       const struct meaning *meaning, struct metric **ret_metric)
{
	struct metric *metric = collector_find_metric(collector, described->name);
	size_t bounds_bytes = meaning->buckets.n * sizeof(meaning->buckets.bounds[0]);
	const struct metric *meant = &meaning->metric;

	if (metric) {
		if (strcmp(metric->unit, meant->unit) ||
		    strcmp(metric->description, meant->description) ||
		    metric->kind != meant->kind || metric->is_updown != meant->is_updown ||
		    metric->divisor != meant->divisor ||
		    !histogram_layouts_equal(&metric->layout, &meant->layout))
			complain(collector, described->line,
				 "metric \"%s\" is described differently by another section; unit, description, kind, type, buckets, range and multiply must be the same",
				 described->name);
		*ret_metric = metric;
		return 0;
	}
	metric = malloc(sizeof(*metric) + bounds_bytes);
	if (!metric || array_append(&collector->metrics, &collector->n_metrics, &metric)) {
		free(metric);
		return -ENOMEM;
	}
	*metric = *meant;
	if (meant->layout.bounds)
		metric->layout.bounds = memcpy(metric + 1, meant->layout.bounds, bounds_bytes);
	metric_init_series(metric, collector->budget);
	*ret_metric = metric;
	return 0;
}

static int add_run(struct reader *reader, struct reader_run new)
{
	new.first_cell = reader_n_cells(reader);
	return array_append(&reader->runs, &reader->n_runs, &new);
}

static int add_metric(struct collector *collector, struct binding *binding,
		      const struct descriptor_metric *described,
		      const struct field *field, const struct meaning *meaning)
{
	struct delta_metric *metric = array_add(&binding->delta.metrics, &binding->delta.n_metrics,
						sizeof(*metric));
	struct reader *reader = &binding->reader;
	const char *usual = is_type(field, "val_level") ? "max" : "sum";
	const char *cpus = described->cpus ?: usual;
	struct reader_run run = { .offset_bytes = field->offset_bytes,
				  .size_bytes = field->size_bytes, .count = 1,
				  .is_maximum = !strcmp(cpus, "max"), .is_last = !strcmp(cpus, "last") };
	int err;

	if (!metric)
		return -ENOMEM;
	if (run.is_last)
		run.count += (uint32_t)libbpf_num_possible_cpus();
	*metric = (struct delta_metric){ .factor = meaning->factor,
					 .first_cell = reader_n_cells(reader),
					 .is_signed = field->is_signed,
					 .is_tally = is_type(field, "val_tally"),
					 .has_zero = !strcmp(described->zero ?: "no", "yes"),
					 .sum_bits = (uint8_t)(8 * field->size_bytes),
					 .bucket_bits = (uint8_t)(8 * field->bucket_bytes),
					 .n_more = run.count - 1,
					 .user = described };
	if (binding->bucket && meaning->buckets.n)
		metric->bucket = (struct delta_bucket){ binding->bucket->offset_bytes,
							binding->bucket->size_bytes,
							meaning->buckets.has_sum,
							meaning->buckets.sum_key };
	binding->has_zero |= metric->has_zero;
	err = bind_metric(collector, described, meaning, &metric->metric) ?: add_run(reader, run);
	if (!err && field->class == FIELD_HISTOGRAM)
		err = add_run(reader,
			      (struct reader_run){ .offset_bytes = field->bucket_offset_bytes,
							   .size_bytes = field->bucket_bytes,
							   .count = field->n_buckets });
	return err;
}

static int bind_section(struct collector *collector, const struct descriptor_metric *described)
{
	struct binding *binding = binding_find(collector, described->map);
	struct bpf_map *map = bpf_object__find_map_by_name(collector->object->bpf, described->map);
	const struct field *field;
	struct meaning meaning;
	int err = 0;

	if (!map || bpf_map__is_internal(map)) {
		collector_complain_of_map(collector, described->line, described->map);
		return 0;
	}
	if (!binding)
		err = binding_make(collector, map, described, &binding);
	if (err || !binding->labels || !described->name || !described->unit)
		return err;
	field = find_field(binding, described);
	if (!field)
		return 0;
	check_kind(collector, described, field);
	options_check(binding, described, field);
	meaning_read(collector, described, field, &meaning);
	if (field->class == FIELD_HISTOGRAM)
		check_bounds(collector, described, field, &meaning.buckets);
	return add_metric(collector, binding, described, field, &meaning);
}

/* The binding of its map may have metrics, too, and then the same record. */
static int bind_event(struct collector *collector, const struct descriptor_event *described)
{
	struct bpf_map *map = bpf_object__find_map_by_name(collector->object->bpf,
							   described->of.map);
	struct binding *binding = binding_find(collector, described->of.map);
	int err = 0;

	if (!map || bpf_map__is_internal(map)) {
		collector_complain_of_map(collector, described->of.line, described->of.map);
		return 0;
	}
	if (!described->of.name || !described->of.record)
		return 0;
	if (!binding)
		err = binding_make(collector, map, &described->of, &binding);
	return err || !binding->labels ? err : event_bind(binding, described);
}

int bindings_make(struct collector *collector)
{
	int err = 0;

	for (size_t i = 0; i < collector->descriptor->n_metrics && !err; i++)
		err = bind_section(collector, &collector->descriptor->metrics[i]);
	for (size_t i = 0; i < collector->descriptor->n_events && !err; i++)
		err = bind_event(collector, &collector->descriptor->events[i]);
	return err;
}

void bindings_done(struct collector *collector)
{
	array_for_each (binding, collector->bindings, collector->n_bindings) {
		binding_close(binding);
		event_unbind(binding);
		key_labels_free(binding);
		shape_done(&binding->key);
		shape_done(&binding->value);
		free(binding->reader.runs);
		free(binding->delta.metrics);
	}
	array_free(&collector->bindings, &collector->n_bindings);
}
