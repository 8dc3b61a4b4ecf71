/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binding joins a map of the object with the sections of the descriptor that speak of it. BTF gives the
 * members with their places (shape); [metric] sections choose members of the value, [label] sections name
 * those of the key. The result is a list of runs (bytes of a value to cells of a row) and of metrics (cells
 * of a row to series), so that a reading never looks at a name again.
 */
#include "collector/binding.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "collector/flat/layout.h"
#include "collector/grammar/buckets.h"
#include "collector/reading/option.h"
#include "metric/series.h"
#include "util/array.h"
#include "util/duration.h"

void collector_complain_of_map(const struct collector *collector, unsigned int line, const char *map)
{
	const struct bpf_object *bpf = collector->object->bpf;
	const char *names[64];
	struct bpf_map *other;
	size_t n = 0;

	bpf_object__for_each_map (other, bpf)
		if (n < ARRAY_SIZE(names) && !bpf_map__is_internal(other) && !flat_is_part(bpf, other))
			names[n++] = bpf_map__name(other);
	complain_of_unknown(collector, line, "map", map, names, n);
}

/* A type of the map's definition as a shape, or none after a complaint, which names the member in the way. -ENOMEM. */
static int bind_shape(const struct binding *binding, const char *what, uint32_t type_id, struct shape *shape)
{
	const struct collector *collector = binding->collector;
	_cleanup_(freep) char *culprit = NULL;
	int err;

	if (!type_id) {
		complain(collector, binding->first->line, "map \"%s\" has no type for its %s; write __type(%s, …) in its definition",
			 binding->map, what, what);
		return 0;
	}
	err = shape_from_btf(collector->object->btf, type_id, shape, &culprit);
	if (err == -EINVAL)
		complain(collector, binding->first->line,
			 "the %s of map \"%s\" cannot be read%s%s; use integers, enums, arrays of them and structures of those",
			 what, binding->map, culprit ? ": member " : "", culprit ?: "");
	return err == -EINVAL ? 0 : err;
}

/* A flat table has its keys in a map of their own. */
static bool bind_table(const struct collector *collector, struct binding *binding, uint32_t *key_id)
{
	struct flat_parts parts;

	if (!flat_find(collector->object->bpf, binding->map, &parts))
		return false;
	*key_id = bpf_map__btf_value_type_id(parts.keys);
	binding->source.is_table = true;
	binding->source.key_bytes = bpf_map__value_size(parts.keys);
	binding->source.type = BPF_MAP_TYPE_HASH;
	return true;
}

/* Before there were columns, a table was an array of slots and had a variable with their number. */
static bool is_old_table(const struct collector *collector, const struct bpf_map *map)
{
	char slots[256];

	snprintf(slots, sizeof(slots), "%s_slots", bpf_map__name(map));
	return bpf_map__map_flags(map) & BPF_F_MMAPABLE && setting_find(&collector->object->settings, slots);
}

struct binding *binding_find(const struct collector *collector, const char *map)
{
	return array_find(collector->bindings, collector->n_bindings, map);
}

struct binding *binding_of(const struct object *object, const char *map)
{
	struct binding *binding = NULL;

	for (size_t i = 0; i < object->n_collectors && !binding; i++)
		binding = binding_find(object->collectors[i], map);
	return binding;
}

/* The member of the key that says which bucket a value counts in; "key" where the key has no members. */
static void bind_bucket(struct binding *binding)
{
	const struct shape *key = &binding->key;
	const char *member = binding->first->bucket;
	const struct field *field = shape_find(key, !*key->fields[0].name && !strcmp(member, "key") ? "" : member);

	if (!field)
		complain_of_unknown(binding->collector, binding->first->line, "member of the key", member, key->fields, key->n_fields);
	else if (field->class != FIELD_INTEGER || field->is_signed)
		complain(binding->collector, binding->first->line,
			 "bucket = %s: this member of the key of map \"%s\" is not an unsigned integer; name one that is",
			 member, binding->map);
	else
		binding->bucket = field;
}

static int binding_make(struct collector *collector, const struct bpf_map *map, const struct descriptor_metric *first,
			struct binding **ret_binding)
{
	struct binding *binding = array_add(&collector->bindings, &collector->n_bindings, sizeof(*binding));
	uint32_t key_id = bpf_map__btf_key_type_id(map), value_id = bpf_map__btf_value_type_id(map);
	enum source_traits traits = source_traits((int)bpf_map__type(map));
	bool is_ring = traits & SOURCE_RECORDS;
	const char *fault = is_ring && !first->record ? "has records; say of which structure: record = STRUCT" :
			    !is_ring && first->record ? "is neither a ring buffer nor a perf event array; remove \"record\"" :
			    !traits ?
				    "has a type that cannot be exported; use a flat table (TABLE), a hash or an array" :
			    is_old_table(collector, map) ?
				    "is a flat table of an earlier <bpfpush/table.h>; compile the object again" :
				    NULL;
	int err;

	if (!binding)
		return -ENOMEM;
	*binding = (struct binding){ .map = first->map,
				      .first = first,
				      .source.fd = -1,
				      .collector = collector };
	*ret_binding = binding;
	if (fault) {
		complain(collector, first->line, "map \"%s\" %s", first->map, fault);
		return 0;
	}
	if (!bind_table(collector, binding, &key_id)) {
		binding->source.key_bytes = bpf_map__key_size(map);
		binding->source.type = (int)bpf_map__type(map);
	}
	binding->source.value_bytes = bpf_map__value_size(map);
	err = is_ring ? option_bind_record(binding) : bind_shape(binding, "key", key_id, &binding->key);
	if (!err && !is_ring && binding->key.n_fields)
		err = bind_shape(binding, "value", value_id, &binding->value);
	if (err || !binding->key.n_fields || !binding->value.n_fields)
		return err;
	/* The kernel reads and writes as many bytes as the map says, the shapes look at as many as their types have. */
	if (binding->key.size_bytes != binding->source.key_bytes ||
	    binding->value.size_bytes != binding->source.value_bytes) {
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
#define complain_of_field(collector, line, name, text, ...)                                                           \
	complain(collector, line, "%s%s%s " text, *(name) ? "member \"" : "the value", name, *(name) ? "\"" : "",     \
		 ##__VA_ARGS__)

void binding_complain_of_member(const struct binding *binding, const char *section, unsigned int line,
				const char *member)
{
	bool is_key = !strcmp(section, "label");
	const struct shape *shape = is_key ? &binding->key : &binding->value;
	bool is_plain = shape->n_fields == 1 && !*shape->fields[0].name;

	if (is_plain || !*member)
		complain(binding->collector, line, "the %s of map \"%s\" has %smembers; write [%s %s%s]", is_key ? "key" : "value",
			 binding->map, is_plain ? "no " : "", section, binding->map, is_plain ? "" : ".MEMBER");
	else
		complain_of_unknown(binding->collector, line, "member", member, shape->fields, shape->n_fields);
}

/* The field that [metric MAP.MEMBER] means; NULL after a complaint. */
static const struct field *find_field(const struct binding *binding, const struct descriptor_metric *described)
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
	bool is_sum = !described->kind && field->class != FIELD_HISTOGRAM, is_level = is_type(field, "val_level");
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
static void check_bounds(const struct collector *collector, const struct descriptor_metric *described,
			 const struct field *field, const struct buckets *buckets)
{
	if (buckets->has_sum)
		complain_of_field(collector, described->line, field->name,
				  "has its sum in the structure; remove \"sum\" from \"buckets\"");
	else if (buckets->n && field->n_buckets != buckets->n + 1)
		complain_of_field(collector, described->line, field->name,
				  "has %u bucket%s, but with %u bound%s there are %u, the last one for all above; make it bucket[%u], "
				  "or change \"buckets\"", field->n_buckets, plural(field->n_buckets), buckets->n, plural(buckets->n),
				  buckets->n + 1, buckets->n + 1);
}

struct metric *collector_find_metric(const struct collector *collector, const char *name)
{
	for (size_t i = 0; i < collector->n_metrics; i++)
		if (!strcmp(collector->metrics[i]->name, name))
			return collector->metrics[i];
	return NULL;
}

/* What one section makes of a member. The metric's bounds are those of the buckets. */
struct meaning {
	struct metric metric;
	uint64_t factor;
	struct buckets buckets;
};

/* The bounds of a section become raw numbers of its metric. What the grammar has complained of is passed over. */
static void read_buckets(const struct collector *collector, const struct descriptor_metric *described,
			 const struct field *field, struct meaning *meaning)
{
	struct buckets *buckets = &meaning->buckets;
	uint32_t n_buckets = field->class == FIELD_HISTOGRAM ? field->n_buckets : 0;
	const char *complaint = buckets_parse(described->buckets, n_buckets, buckets);
	bool is_too_large = false;

	array_for_each (bound, buckets->bounds, buckets->n)
		is_too_large |= __builtin_mul_overflow(bound->upper, meaning->factor, &bound->upper);
	if (is_too_large)
		complaint = "has bounds that are too large to be multiplied; make them or \"multiply\" smaller";
	if (complaint && !buckets_check(described->buckets))
		complain(collector, described->line, "buckets \"%s\" %s", described->buckets, complaint);
	if (!buckets->n)
		return;
	meaning->metric.kind = METRIC_HISTOGRAM;
	meaning->metric.layout = (struct histogram_layout){ .n_buckets = buckets->n + 1,
							    .has_no_sum = !n_buckets && !buckets->has_sum,
							    .bounds = buckets->bounds };
}

/* The bounds of a structure of hist.h move along, from one power of two to another. */
static void read_multiply(const struct collector *collector, const struct descriptor_metric *described,
			  const struct field *field, struct meaning *meaning)
{
	uint64_t *factor = &meaning->factor, *divisor = &meaning->metric.divisor;

	/* The grammar has read it already. */
	(void)multiply_parse(described->multiply, factor, divisor);
	if (!field->is_known)
		return;
	if ((*factor & (*factor - 1)) || (*divisor & (*divisor - 1)))
		complain(collector, described->line, "multiply \"%s\" would move the buckets of \"%s\" off the powers of "
			 "two that they are; write one, such as 1024 or 0.5", described->multiply, field->name);
	meaning->metric.layout.offset += __builtin_ctzll(*factor) - __builtin_ctzll(*divisor);
}

static void read_meaning(const struct collector *collector, const struct descriptor_metric *described,
			 const struct field *field, struct meaning *meaning)
{
	bool is_time = is_type(field, "val_ns");
	const char *complaint;

	*meaning = (struct meaning){
		.metric = { .scope = collector->name,
			    .name = described->name,
			    .unit = described->unit,
			    .description = described->description ? described->description : "",
			    .kind = described->kind ? METRIC_GAUGE : METRIC_SUM,
			    .is_updown = described->kind && *described->kind == 'u',
			    .divisor = is_time ? NS_PER_S : 1 },
		.factor = 1,
	};
	if (field->class == FIELD_HISTOGRAM) {
		meaning->metric.kind = METRIC_HISTOGRAM;
		/* bpf/include/hist.h: bucket[1] is (2^-30, 2^-29] s of a time, (2^-1, 2^0] of a value. */
		meaning->metric.layout = (struct histogram_layout){ 0, is_time ? -30 : -1, field->n_buckets };
	}
	if (described->multiply && !is_time)
		read_multiply(collector, described, field, meaning);
	complaint = field->is_known ? range_parse(described->range, described->unit, &meaning->metric.layout) : NULL;
	if (complaint)
		complain(collector, described->line, "range \"%s\" %s", described->range, complaint);
	if (described->buckets && !field->is_known)
		read_buckets(collector, described, field, meaning);
}

/* The metric of that name, shared by all sections that have it; they must agree on what it is. */
static int bind_metric(struct collector *collector, const struct descriptor_metric *described,
		       const struct meaning *meaning, struct metric **ret_metric)
{
	struct metric *metric = collector_find_metric(collector, described->name);
	size_t bounds_bytes = meaning->buckets.n * sizeof(meaning->buckets.bounds[0]);
	const struct metric *meant = &meaning->metric;

	if (metric) {
		if (strcmp(metric->unit, meant->unit) || strcmp(metric->description, meant->description) ||
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

static int add_run(struct source *source, struct source_run new)
{
	new.first_cell = source_n_cells(source);
	return array_append(&source->runs, &source->n_runs, &new);
}

static int add_metric(struct collector *collector, struct binding *binding, const struct descriptor_metric *described,
		      const struct field *field, const struct meaning *meaning)
{
	struct delta_metric *metric = array_add(&binding->delta.metrics, &binding->delta.n_metrics, sizeof(*metric));
	struct source *source = &binding->source;
	const char *cpus = described->cpus ?: is_type(field, "val_level") ? "max" : "sum";
	struct source_run run = { .offset_bytes = field->offset_bytes, .size_bytes = field->size_bytes, .count = 1,
				  .is_maximum = !strcmp(cpus, "max"), .is_last = !strcmp(cpus, "last") };
	int err;

	if (!metric)
		return -ENOMEM;
	if (run.is_last)
		run.count += (uint32_t)libbpf_num_possible_cpus();
	*metric = (struct delta_metric){ .factor = meaning->factor,
					 .first_cell = source_n_cells(source),
					 .is_signed = field->is_signed,
					 .is_tally = is_type(field, "val_tally"),
					 .has_zero = !strcmp(described->zero ?: "no", "yes"),
					 .sum_bits = (uint8_t)(8 * field->size_bytes),
					 .bucket_bits = (uint8_t)(8 * field->bucket_bytes),
					 .n_more = run.count - 1,
					 .user = described };
	if (binding->bucket && meaning->buckets.n)
		metric->bucket = (struct delta_bucket){ binding->bucket->offset_bytes, binding->bucket->size_bytes,
							meaning->buckets.has_sum, meaning->buckets.sum_key };
	binding->has_zero |= metric->has_zero;
	err = bind_metric(collector, described, meaning, &metric->metric) ?: add_run(source, run);
	if (!err && field->class == FIELD_HISTOGRAM)
		err = add_run(source, (struct source_run){ .offset_bytes = field->bucket_offset_bytes,
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
	read_meaning(collector, described, field, &meaning);
	if (field->class == FIELD_HISTOGRAM)
		check_bounds(collector, described, field, &meaning.buckets);
	return add_metric(collector, binding, described, field, &meaning);
}

int bindings_make(struct collector *collector)
{
	int err = 0;

	for (size_t i = 0; i < collector->descriptor->n_metrics && !err; i++)
		err = bind_section(collector, &collector->descriptor->metrics[i]);
	return err;
}

void bindings_done(struct collector *collector)
{
	array_for_each (binding, collector->bindings, collector->n_bindings) {
		binding_close(binding);
		key_labels_free(binding);
		shape_done(&binding->key);
		shape_done(&binding->value);
		free(binding->source.runs);
		free(binding->delta.metrics);
	}
	array_free(&collector->bindings, &collector->n_bindings);
}
