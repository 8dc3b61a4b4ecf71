/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mistake names the descriptor's line and what the object has instead. Nothing here stops at the first
 * one: what is wrong is left out, and the rest goes on being checked.
 */
#include "collector/binding.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "metric/series.h"
#include "util/parse.h"

#define NANOSECONDS 1000000000u

static void *grow(void *list, size_t n, size_t item_bytes)
{
	void **items = list, *grown = reallocarray(*items, n + 1, item_bytes);

	if (!grown)
		return NULL;
	*items = grown;
	return memset((char *)grown + n * item_bytes, 0, item_bytes);
}

static size_t map_names(const struct collector *collector, const char **names, size_t max)
{
	struct bpf_map *map;
	size_t n = 0;

	bpf_object__for_each_map (map, collector->object)
		if (n < max && !bpf_map__is_internal(map))
			names[n++] = bpf_map__name(map);
	return n;
}

/* A type of the map's definition as a shape, or none after a complaint, which names the member in the way. -ENOMEM. */
static int bind_shape(struct binder *binder, const char *map, const char *what, uint32_t type_id,
		       unsigned int line, struct shape *shape)
{
	_cleanup_(freep) char *culprit = NULL;
	int err;

	if (!type_id) {
		complain(binder, line, "map \"%s\" has no type for its %s; write __type(%s, …) in its definition", map, what, what);
		return 0;
	}
	err = shape_from_btf(binder->collector->btf, type_id, shape, &culprit);
	if (err != -EINVAL)
		return err;
	complain(binder, line,
		 "the %s of map \"%s\" cannot be read%s%s; use integers, enums, arrays of them and structures of those", what,
		 map, culprit ? ": member " : "", culprit ? culprit : "");
	return 0;
}

/* {state, key, value} in a mmapable array: a flat table. */
static bool bind_table(struct binder *binder, struct binding *binding, struct bpf_map *map, uint32_t *key_id,
		       uint32_t *value_id)
{
	const struct btf *btf = binder->collector->btf;
	uint32_t id, state_id, slot_id = *value_id, offset;

	if (bpf_map__type(map) != BPF_MAP_TYPE_ARRAY || !(bpf_map__map_flags(map) & BPF_F_MMAPABLE) ||
	    shape_member(btf, slot_id, "state", &state_id, &offset) || offset ||
	    btf__resolve_size(btf, state_id) != sizeof(uint64_t) ||
	    shape_member(btf, slot_id, "key", &id, &binding->source.key_offset_bytes) ||
	    shape_member(btf, slot_id, "value", value_id, &binding->source.value_offset_bytes))
		return false;
	*key_id = id;
	return binding->source.is_table = true;
}

static bool is_readable_type(enum bpf_map_type type)
{
	return type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_LRU_HASH || type == BPF_MAP_TYPE_PERCPU_HASH ||
	       type == BPF_MAP_TYPE_LRU_PERCPU_HASH || type == BPF_MAP_TYPE_ARRAY ||
	       type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

struct binding *binding_find(const struct collector *collector, const char *map)
{
	for (size_t i = 0; i < collector->n_bindings; i++)
		if (!strcmp(collector->bindings[i].map, map))
			return &collector->bindings[i];
	return NULL;
}

/* A member that only fills a gap: "unused", "owner.unused_2". */
static bool is_filler(const struct field *field)
{
	const char *dot = strrchr(field->name, '.');

	return !strncmp(dot ? dot + 1 : field->name, "unused", 6);
}

/* Names of the members of a key (NULL: no attribute): from [label], else the type, else COLLECTOR.MEMBER. */
static int bind_labels(struct binder *binder, struct binding *binding, unsigned int line)
{
	struct collector *collector = binder->collector;

	binding->label_names = calloc(binding->key.n_fields + 1, sizeof(*binding->label_names));
	if (!binding->label_names)
		return -ENOMEM;
	for (uint32_t i = 0; i < binding->key.n_fields; i++) {
		const struct field *field = &binding->key.fields[i];
		const char *name = label_default_name(field);
		char *made;

		if (is_filler(field))
			continue;
		if (!label_is_known(field))
			complain(binder, line, "member \"%s\" of the key of map \"%s\" (type %s) cannot become an attribute; use an "
					       "integer, an enum, a char array or a lbl_ type of <bpfpush/label.h>",
				 field->name, binding->map, *field->type_name ? field->type_name : "an array");
		for (size_t j = 0; j < collector->descriptor->n_labels; j++) {
			const struct descriptor_label *label = &collector->descriptor->labels[j];

			if (!strcmp(label->map, binding->map) && !strcmp(label->member, field->name) && label->name)
				name = label->name;
		}
		if (asprintf(&made, "%s%s%s", name ? name : collector->name, name ? "" : ".",
			     name ? "" : *field->name ? field->name :
							"key") < 0)
			return -ENOMEM;
		binding->label_names[i] = made;
	}
	return 0;
}

/* The kernel reads and writes as many bytes as the map says, the shapes look at as many as their types have. */
static bool is_fit(const struct binding *binding, const struct bpf_map *map)
{
	const struct source *source = &binding->source;
	uint32_t slot = bpf_map__value_size(map);

	if (!source->is_table)
		return binding->key.size_bytes == bpf_map__key_size(map) && binding->value.size_bytes == slot;
	return (uint64_t)source->key_offset_bytes + binding->key.size_bytes <= slot &&
	       (uint64_t)source->value_offset_bytes + binding->value.size_bytes <= slot &&
	       source->key_offset_bytes >= sizeof(uint64_t) && source->value_offset_bytes >= sizeof(uint64_t);
}

static int binding_make(struct binder *binder, const char *name, unsigned int line, struct binding **ret_binding)
{
	struct collector *collector = binder->collector;
	struct bpf_map *map = bpf_object__find_map_by_name(collector->object, name);
	uint32_t key_id, value_id;
	struct binding *binding;
	int err;

	binding = grow(&collector->bindings, collector->n_bindings, sizeof(*binding));
	if (!binding)
		return -ENOMEM;
	binding->map = name;
	binding->line = line;
	binding->source.fd = -1;
	collector->n_bindings++;
	*ret_binding = binding;
	if (!is_readable_type(bpf_map__type(map))) {
		complain(binder, line, "map \"%s\" is of a type that cannot be exported; use a flat table (TABLE), a hash or an array", name);
		return 0;
	}
	key_id = bpf_map__btf_key_type_id(map);
	value_id = bpf_map__btf_value_type_id(map);
	bind_table(binder, binding, map, &key_id, &value_id);
	err = bind_shape(binder, name, "key", key_id, line, &binding->key);
	if (!err && binding->key.n_fields)
		err = bind_shape(binder, name, "value", value_id, line, &binding->value);
	if (err || !binding->value.n_fields)
		return err;
	if (!is_fit(binding, map)) {
		complain(binder, line, "map \"%s\" has other sizes than the types of its key and value; compile the object again", name);
		return 0;
	}
	binding->source.type = (int)bpf_map__type(map);
	binding->source.key_bytes = binding->source.is_table ? binding->key.size_bytes : bpf_map__key_size(map);
	binding->source.value_bytes = bpf_map__value_size(map);
	return bind_labels(binder, binding, line);
}

/* The field that [metric MAP.MEMBER] means; NULL after a complaint. */
static const struct field *find_field(struct binder *binder, const struct binding *binding,
				      const struct descriptor_metric *described)
{
	const struct field *field = shape_find(&binding->value, described->member);
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	const char *names[32];
	size_t n = binding_field_names(&binding->value, names, ARRAY_SIZE(names));
	bool is_single = binding->value.n_fields == 1 && !*binding->value.fields[0].name;

	if (!field && !*described->member && binding->value.n_fields == 1)
		field = &binding->value.fields[0];
	if (!field && is_single)
		complain(binder, described->line, "the value of map \"%s\" has no members; write [metric %s]", binding->map,
			 binding->map);
	else if (!field && !*described->member)
		complain(binder, described->line, "the value of map \"%s\" has several members; write [metric %s.MEMBER]: %s", binding->map,
			 binding->map, binding_instead("", names, n, "it", &text));
	else if (!field)
		complain(binder, described->line, "the value of map \"%s\" has no member \"%s\"; %s", binding->map, described->member,
			 binding_instead(described->member, names, n, "it", &text));
	else if (field->class != FIELD_INTEGER && field->class != FIELD_HISTOGRAM)
		complain(binder, described->line, "%s%s%s of map \"%s\" is no number; export an integer or a structure with sum and bucket",
			 is_single ? "the value" : "member \"", field->name, is_single ? "" : "\"", binding->map);
	else
		return field;
	return NULL;
}

/* A sum only grows, so it is unsigned, and wide enough not to wrap twice between two readings. */
static void check_sum(struct binder *binder, const struct descriptor_metric *described, const struct field *field)
{
	if (described->is_gauge || field->class == FIELD_HISTOGRAM)
		return;
	if (field->is_signed)
		complain(binder, described->line,
			 "member \"%s\" is signed, and a sum only grows; make it a u64, or write kind = gauge", field->name);
	else if (field->size_bytes < 4)
		complain(binder, described->line,
			 "member \"%s\" has %u bits, too few for a sum that is read every few seconds; make it a u64 or u32",
			 field->name, 8 * field->size_bytes);
}

static void check_kind(struct binder *binder, const struct descriptor_metric *described, const struct field *field)
{
	check_sum(binder, described, field);
	if (described->is_gauge && field->class == FIELD_HISTOGRAM)
		complain(binder, described->line, "\"%s\" is a histogram, which cannot be a gauge; leave kind = gauge out", field->name);
	if (!described->is_gauge && !strcmp(field->type_name, "val_tally"))
		complain(binder, described->line, "member \"%s\" is a val_tally, which only makes sense as a gauge; write kind = gauge", field->name);
	if (described->unit && !strcmp(field->type_name, "val_ns") && strcmp(described->unit, "s"))
		complain(binder, described->line, "member \"%s\" holds nanoseconds (val_ns), which are shown as seconds; write unit = s, not %s",
			 field->name, described->unit);
}

static struct metric *metric_find(const struct collector *collector, const char *name)
{
	for (size_t i = 0; i < collector->n_metrics; i++)
		if (!strcmp(collector->metrics[i]->name, name))
			return collector->metrics[i];
	return NULL;
}

static struct metric meaning_of(const struct collector *collector, const struct descriptor_metric *described,
				const struct field *field)
{
	bool is_time = !strcmp(field->type_name, "val_ns");
	struct metric metric = {
		.scope = collector->name,
		.name = described->name,
		.unit = described->unit,
		.description = described->description ? described->description : "",
		.kind = described->is_gauge ? METRIC_GAUGE : METRIC_SUM,
		.divisor = is_time ? NANOSECONDS : 1,
	};

	if (field->class == FIELD_HISTOGRAM) {
		metric.kind = METRIC_HISTOGRAM;
		/* bpf/include/hist.h: bucket[1] is (2^-30, 2^-29] s of a time, (2^-1, 2^0] of a value. */
		metric.layout = (struct histogram_layout){ 0, is_time ? -30 : -1, field->n_buckets };
	}
	return metric;
}

/* The metric of that name, shared by all sections that have it; they must agree on what it is. */
static int bind_metric(struct binder *binder, const struct descriptor_metric *described, const struct field *field,
		       struct metric **ret_metric)
{
	struct collector *collector = binder->collector;
	struct metric meaning = meaning_of(collector, described, field),
		      *metric = metric_find(collector, described->name);
	struct metric **slot;

	if (metric) {
		if (strcmp(metric->unit, meaning.unit) || strcmp(metric->description, meaning.description) ||
		    metric->kind != meaning.kind || metric->divisor != meaning.divisor ||
		    memcmp(&metric->layout, &meaning.layout, sizeof(meaning.layout)))
			complain(binder, described->line,
				 "metric \"%s\" is described differently by another section; unit, description, kind and type must be the same",
				 described->name);
		*ret_metric = metric;
		return 0;
	}
	metric = malloc(sizeof(*metric));
	slot = metric ? grow(&collector->metrics, collector->n_metrics, sizeof(*slot)) : NULL;
	if (!slot) {
		free(metric);
		return -ENOMEM;
	}
	*metric = meaning;
	metric_init_series(metric, collector->series_limit);
	*slot = *ret_metric = metric;
	collector->n_metrics++;
	return 0;
}

static int add_run(struct binding *binding, uint32_t offset, uint32_t size, uint32_t count, uint32_t *cell)
{
	struct source_run *run = grow(&binding->runs, binding->source.n_runs, sizeof(*run));

	if (!run)
		return -ENOMEM;
	*run = (struct source_run){ offset, size, count, *cell };
	binding->source.n_runs++;
	*cell += count;
	return 0;
}

static uint32_t count_cells(const struct binding *binding)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < binding->source.n_runs; i++)
		n += binding->runs[i].count;
	return n;
}

static int add_metric(struct binder *binder, struct binding *binding, const struct descriptor_metric *described,
		      const struct field *field)
{
	uint32_t n = binding->delta.n_metrics, cell = count_cells(binding);
	struct delta_metric *metric = grow(&binding->metrics, n, sizeof(*metric));
	const struct descriptor_metric **slot = grow(&binding->described, n, sizeof(*slot));
	int err;

	if (!metric || !slot)
		return -ENOMEM;
	metric->first_cell = cell;
	metric->is_signed = field->is_signed;
	metric->is_tally = !strcmp(field->type_name, "val_tally");
	metric->sum_bits = (uint8_t)(8 * (field->class == FIELD_HISTOGRAM ? field->sum_bytes : field->size_bytes));
	metric->bucket_bits = (uint8_t)(8 * field->bucket_bytes);
	*slot = described;
	err = bind_metric(binder, described, field, &metric->metric);
	if (!err)
		err = add_run(binding, field->offset_bytes, metric->sum_bits / 8, 1, &cell);
	if (!err && field->class == FIELD_HISTOGRAM)
		err = add_run(binding, field->bucket_offset_bytes, field->bucket_bytes, field->n_buckets, &cell);
	if (!err)
		binding->delta.n_metrics++;
	return err;
}

static int bind_section(struct binder *binder, const struct descriptor_metric *described)
{
	struct collector *collector = binder->collector;
	struct binding *binding = binding_find(collector, described->map);
	struct bpf_map *map = bpf_object__find_map_by_name(collector->object, described->map);
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	const struct field *field;
	const char *names[64];
	size_t n = map_names(collector, names, ARRAY_SIZE(names));
	int err = 0;

	if (!map || bpf_map__is_internal(map)) {
		complain(binder, described->line, "the object has no map \"%s\"; %s", described->map,
			 binding_instead(described->map, names, n, "it", &text));
		return 0;
	}
	if (!binding)
		err = binding_make(binder, described->map, described->line, &binding);
	if (err || !binding->label_names || !described->name || !described->unit)
		return err;
	field = find_field(binder, binding, described);
	if (!field)
		return 0;
	check_kind(binder, described, field);
	return add_metric(binder, binding, described, field);
}

/* What a key becomes for one metric: its own attributes, then those that the section fixes. */
static int key_attributes(void *user, const void *key, uint32_t metric, struct attributes *attributes)
{
	const struct binding *binding = user;
	const struct descriptor_metric *described = binding->described[metric];
	int err = 0;

	for (uint32_t i = 0; i < binding->key.n_fields && !err; i++) {
		const struct field *field = &binding->key.fields[i];

		if (binding->label_names[i])
			err = label_add(&binding->collector->context, field, binding->label_names[i],
					(const uint8_t *)key + field->offset_bytes, attributes);
	}
	for (unsigned int i = 0; i < described->n_attributes && !err; i++)
		err = attributes_add_text(attributes, described->attributes[i].name, described->attributes[i].value,
					  strlen(described->attributes[i].value));
	return err;
}

int bindings_make(struct collector *collector, struct diag *diag)
{
	struct binder binder = { collector, diag };
	int err = 0;

	for (size_t i = 0; i < collector->descriptor->n_metrics && !err; i++)
		err = bind_section(&binder, &collector->descriptor->metrics[i]);
	return err ? err : bindings_check(&binder);
}

int bindings_open(struct collector *collector)
{
	uint32_t n_cpus = (uint32_t)libbpf_num_possible_cpus();

	for (size_t i = 0; i < collector->n_bindings; i++) {
		struct binding *binding = &collector->bindings[i];
		struct bpf_map *map = bpf_object__find_map_by_name(collector->object, binding->map);
		uint32_t buckets = 1;
		int err;

		for (uint32_t j = 0; j < binding->delta.n_metrics; j++)
			if (binding->metrics[j].metric->layout.n_buckets > buckets)
				buckets = binding->metrics[j].metric->layout.n_buckets;
		binding->collector = collector;
		binding->source.fd = bpf_map__fd(map);
		binding->source.max_entries = bpf_map__max_entries(map);
		binding->source.runs = binding->runs;
		if (binding->source.is_table)
			binding->source.slots_per_cpu = binding->source.max_entries / n_cpus;
		binding->delta.metrics = binding->metrics;
		binding->delta.attributes = key_attributes;
		binding->delta.user = binding;
		binding->delta.scratch = calloc(buckets, sizeof(uint64_t));
		if (!binding->delta.scratch)
			return -ENOMEM;
		err = rows_new(binding->source.key_bytes, count_cells(binding), binding->delta.n_metrics,
			       &binding->delta.rows);
		if (err)
			return err;
		binding->source.rows = binding->delta.rows;
		err = source_open(&binding->source);
		if (err)
			return err;
	}
	return 0;
}

void bindings_done(struct collector *collector)
{
	for (size_t i = 0; i < collector->n_bindings; i++) {
		struct binding *binding = &collector->bindings[i];

		if (binding->delta.rows)
			delta_release(&binding->delta);
		source_close(&binding->source);
		rows_free(binding->delta.rows);
		for (uint32_t j = 0; binding->label_names && j < binding->key.n_fields; j++)
			free((void *)binding->label_names[j]);
		free(binding->label_names);
		shape_done(&binding->key);
		shape_done(&binding->value);
		free(binding->runs);
		free(binding->metrics);
		free(binding->described);
		free(binding->delta.scratch);
	}
	free(collector->bindings);
	collector->bindings = NULL;
	collector->n_bindings = 0;
}
