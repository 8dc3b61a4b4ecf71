/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector tells about its programs, maps and metrics, and shares with others. */
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/binding/event.h"
#include "collector/collector.h"
#include "collector/label/cgroup.h"
#include "util/array.h"
#include "util/buf.h"
#include "util/log.h"

/* A table counts as full until its overflow has not grown in this many readings. */
#define OVERFLOW_READINGS 6

uint64_t collector_map_kernel_bytes(const struct collector_map *map)
{
	uint64_t bytes = 0, part;
	char path[64], line[128];

	for (size_t i = 0; i < map->n_fds; i++) {
		_cleanup_(fclosep) FILE *f = NULL;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map->fds[i]);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "memlock: %" SCNu64, &part) == 1)
				bytes += part;
	}
	return bytes;
}

/* A flat table is one map for those who ask. The first of an object has the words of all. */
static void describe_table(const struct collector *collector, const struct table_parts *parts,
			   struct collector_map *map)
{
	const struct bpf_map *more[] = { parts->keys, parts->more, parts->words };

	map->type = "table";
	map->max_entries = *parts->capacity + bpf_map__max_entries(parts->more);
	for (size_t i = 0;
	     i < ARRAY_SIZE(more) - (*parts->base || !map->binding) && collector->is_started; i++)
		map->fds[map->n_fds++] = bpf_map__fd(more[i]);
}

/*
 * Names and types are compared only once: the agent asks at each collection. Without memory some
 * are left out.
 */
static void find_maps(struct collector *collector)
{
	const struct object *object = collector->object;
	struct table_parts parts;
	struct bpf_map *map;

	bpf_object__for_each_map (map, object->bpf) {
		const struct binding *binding = binding_of(object, bpf_map__name(map));
		struct collector_map item = {
			.fds = { bpf_map__fd(map) },
			.n_fds = collector->is_started,
			.name = bpf_map__name(map),
			.type = libbpf_bpf_map_type_str(bpf_map__type(map)),
			.max_entries = bpf_map__max_entries(map),
			.binding = binding,
		};

		if ((binding ? binding->collector : object->collectors[0]) != collector ||
		    table_is_part(object->bpf, map))
			continue;
		if (table_find(object->bpf, item.name, &parts))
			describe_table(collector, &parts, &item);
		(void)array_append(&collector->maps, &collector->n_maps, &item);
	}
}

void collector_find_maps(struct collector *collector)
{
	if (!collector->maps)
		find_maps(collector);
	array_for_each (map, collector->maps, collector->n_maps) {
		const struct binding *binding = map->binding;

		map->is_overflowing = binding && binding->rows &&
				      rows_at(binding->rows,
					      ROWS_OVERFLOW)->idle < OVERFLOW_READINGS;
		map->has_records = binding && binding->reader.records;
		if (binding && binding->reader.is_table)
			map->n_keys = binding->reader.table.n_live + binding->reader.n_spilled;
		else if (binding && binding->rows)
			map->n_keys = binding->rows->n_live;
	}
}

int collector_wake_fd(const struct collector *collector, size_t i)
{
	for (size_t j = 0; j < collector->n_bindings; j++)
		if (collector->bindings[j].reader.records && !i--)
			return records_wake_fd(collector->bindings[j].reader.records);
	return -1;
}

void collector_wake(struct collector *collector)
{
	array_for_each (binding, collector->bindings, collector->n_bindings)
		if (binding->reader.records && binding->rows)
			records_take(binding->reader.records, binding->rows, false);
	events_end(collector);
}

struct loss program_loss(const struct program *program)
{
	uint64_t runs = program->runs - program->last_runs,
		missed = program->missed - program->last_missed;

	return program->events ? (struct loss){ missed, program->events->grown, true } :
				 (struct loss){ missed, runs, runs != 0 };
}

static void add_loss(const struct collector *collector, const struct program *program,
		     const struct loss *loss)
{
	array_for_each (binding, collector->bindings, collector->n_bindings) {
		bool is_fed = loss->missed && program_uses_map(program, binding->reader.fd);

		array_for_each (of, binding->delta.metrics, binding->delta.n_metrics)
			if (is_fed && loss->missed > of->metric->loss.missed)
				of->metric->loss = *loss;
	}
}

void collector_find_losses(struct collector *collector)
{
	for (size_t i = 0; i < collector->n_metrics; i++)
		collector->metrics[i]->loss = (struct loss){ 0 };
	array_for_each (program, collector->object->programs.items, collector->object->programs.n) {
		const struct loss loss = program_loss(program);

		add_loss(collector, program, &loss);
	}
}

int collector_share(struct collector *collector)
{
	struct bpf_map *ring = bpf_object__find_map_by_name(collector->object->bpf, "cgroup_names");
	struct bpf_map *lost = bpf_object__find_map_by_name(collector->object->bpf, "cgroup_names_lost");

	if (!ring || bpf_map__type(ring) != BPF_MAP_TYPE_RINGBUF || !lost ||
	    bpf_map__value_size(lost) != sizeof(uint64_t))
		return 0;
	return cgroups_listen(collector->labels->cgroups, bpf_map__fd(ring), bpf_map__fd(lost));
}

static void names_add(struct names *names, const char *name)
{
	if (names->n < ARRAY_SIZE(names->items) && !array_find(names->items, names->n, name))
		names->items[names->n++] = name;
}

static void add_attributes(const struct binding *binding, const struct descriptor_metric *described,
			   struct names *names)
{
	array_for_each (label, binding->labels, binding->key.n_fields) {
		if (label->type && label->type->is_of_event && described->unit)
			continue; /* a metric's records are counted without it */
		if (label->attribute && !label->type->n_own)
			names_add(names, label->attribute);
		for (size_t j = 0; label->attribute && label->type->own[j]; j++)
			names_add(names, label->type->own[j]);
	}
	if (described->cpu)
		names_add(names, described->cpu);
	for (size_t i = 0; i < described->attributes.n; i++)
		names_add(names, described->attributes.items[i].text);
	for (size_t i = 0; !described->unit && trace_attribute(&binding->event->trace, i); i++)
		names_add(names, trace_attribute(&binding->event->trace, i));
}

bool collector_names_functions(const struct collector *collector)
{
	array_for_each (binding, collector->bindings, collector->n_bindings)
		for (size_t i = 0; binding->labels && i < binding->key.n_fields; i++) {
			const struct key_label *label = &binding->labels[i];
			const char *name = label->field->name;

			/* A setting with the name of the member says whether it is filled. */
			if (label->attribute && label->type && label->type->is_function &&
			    (!variable_find(&collector->variables, name) ||
			     variable_is_on(&collector->variables, name)))
				return true;
		}
	return false;
}

void collectors_find_symbols(struct collector *const *items, size_t n, struct kept *kept)
{
	const char *complaint = NULL;

	for (size_t i = 0; i < n && !complaint; i++) {
		if (!collector_names_functions(items[i]))
			continue;
		complaint = labels_find_symbols(items[i]->labels, kept);
		if (*complaint)
			log_warning("%s %s: %s", collector_kind(items[i]), items[i]->name, complaint);
	}
}

void collector_list_attributes(const struct collector *collector, const struct metric *metric,
			       struct names *names)
{
	array_for_each (binding, collector->bindings, collector->n_bindings)
		array_for_each (of, binding->delta.metrics, binding->delta.n_metrics)
			if (of->metric == metric)
				add_attributes(binding, of->user, names);
}

const struct event_kind *collector_event(const struct collector *collector, size_t i,
					 struct names *names)
{
	array_for_each (binding, collector->bindings, collector->n_bindings) {
		if (!binding->event || i--)
			continue;
		if (names)
			add_attributes(binding, &binding->event->described->of, names);
		return &binding->event->kind;
	}
	return NULL;
}

struct event_losses collector_event_losses(const struct collector *collector, size_t i)
{
	struct event_losses losses = { 0 };

	array_for_each (binding, collector->bindings, collector->n_bindings)
		if (binding->event && binding->reader.records && !i--)
			return event_losses(binding);
	return losses;
}

int collector_set_metric(struct collector *collector, const char *name,
			 const struct assignment *setting, struct diag *diag)
{
	const struct setting_list *dropped = NULL;
	struct names names = { 0 };
	size_t n_before = 0;
	int err = 0;

	for (size_t i = 0; i < collector->n_metrics && !err; i++) {
		struct metric *metric = collector->metrics[i];

		if (name && strcmp(metric->name, name))
			continue;
		dropped = &metric->dropped;
		n_before = *setting->value ? dropped->n_items : 0;
		if (metric->kind != METRIC_HISTOGRAM && !strcmp(setting->key, "buckets"))
			diag_add(diag, setting->path, setting->line, "buckets: %s is a %s, not a histogram", name,
				 metric_kinds[metric->kind]);
		err = setting_table_set(&metric_settings, metric, setting, diag);
		collector_list_attributes(collector, metric, &names);
	}
	for (size_t i = n_before; dropped && i < dropped->n_items; i++)
		if (strcmp(dropped->items[i], "unit") &&
		    !array_find(names.items, names.n, dropped->items[i]))
			diag_add_unknown(diag, setting->path, setting->line, "attribute", dropped->items[i],
					 names.items, names.n);
	return err;
}

/* Was no alternative of its hook attached, and is it the first of them? */
static bool is_hook_refused(const struct programs *programs, const struct program *program)
{
	return program->state == PROGRAM_REFUSED &&
	       !programs_find(programs, program->hook, PROGRAM_ATTACHED) &&
	       programs_find(programs, program->hook, PROGRAM_REFUSED) == program;
}

static const char *error_of(const struct program *program)
{
	return program->error ?: "out of memory";
}

void collector_each_refusal(const struct collector *collector, collector_tell *tell, void *user)
{
	const struct programs *programs = &collector->object->programs;
	_cleanup_(buf_done) struct buf names = BUF_INIT;
	const char *last = NULL;

	array_for_each (program, programs->items, programs->n) {
		if (!collector_uses(collector, program) || !is_hook_refused(programs, program))
			continue;
		if (last && strcmp(error_of(program), last)) {
			tell(collector, buf_text(&names), last, user);
			buf_reset(&names);
		}
		last = error_of(program);
		buf_append_text(&names, names.size ? ", " : "");
		/* Programs of probes are not the user's. */
		if (collector->is_probe)
			buf_append_text(&names, program->section);
		else
			buf_printf(&names, "%s (%s)", program->name, program->section);
	}
	if (last)
		tell(collector, buf_text(&names), last, user);
}

static void log_refusal(const struct collector *collector, const char *programs,
			const char *error, void *user)
{
	const struct log_field fields[] = {
		{ "BPFPUSH_COLLECTOR", collector->name },
		{ "BPFPUSH_PROGRAM", programs },
		{ NULL, NULL },
	};

	log_event(LOG_LEVEL_WARNING, LOG_ID_PARTIAL, fields, "%s %s is partial: the kernel refused %s: %s",
		  collector_kind(collector), collector->name, programs, error);
}

bool collector_report_hooks(const struct collector *collector)
{
	const struct programs *programs = &collector->object->programs;
	bool is_complete = true;

	array_for_each (program, programs->items, programs->n) {
		if (!collector_uses(collector, program))
			continue;
		if (program->state == PROGRAM_ATTACHED && program_choice(program))
			log_debug("collector %s: %s attached as %s: %s", collector->name, program->hook, program->section,
				  program_choice(program));
		else if (program->state == PROGRAM_ATTACHED)
			log_debug("collector %s: %s attached as %s", collector->name, program->hook, program->section);
		if (program->state != PROGRAM_REFUSED)
			continue;
		is_complete &= !!programs_find(programs, program->hook, PROGRAM_ATTACHED);
		if (!is_hook_refused(programs, program))
			log_debug("collector %s: the kernel refused %s (%s): %s%s", collector->name, program->name,
				  program->section, error_of(program),
				  programs_find(programs, program->hook, PROGRAM_ATTACHED) ? "; an alternative is used" :
				  "");
	}
	collector_each_refusal(collector, log_refusal, NULL);
	return is_complete;
}
