/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector is data: an object says what the kernel counts, a descriptor what the numbers mean.
 * This file joins the parts that understand them. Opening checks everything that can be checked
 * without a right, so that each mistake is reported with its line. Starting loads the object and
 * attaches its programs. From then on a reading is always the same: run the iterators, read the
 * maps, give the growth to the series.
 */
#include "collector/collector.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/binding/bindings.h"
#include "collector/binding/cgroups.h"
#include "collector/binding/event.h"
#include "collector/binding/size.h"
#include "collector/hook/alternative.h"
#include "collector/hook/target.h"
#include "collector/kernel/kernel.h"
#include "collector/start.h"
#include "metric/series.h"
#include "util/array.h"
#include "util/parse.h"
#include "util/trust.h"

static int read_descriptor(struct collector *collector)
{
	struct diag *diag = collector->diag;
	_cleanup_(fclosep) FILE *f = NULL;
	int err = trust_open(collector->conf_path, false, diag, &f) ?:
		  descriptor_parse(f, collector->conf_path, diag, &collector->descriptor);

	if (err == -ENOENT)
		diag_add(diag, collector->conf_path, 0, "is missing; a collector is a descriptor, NAME.conf, and an object, usually NAME.bpf.o");
	else if (err && err != -ENOMEM)
		diag_add(diag, collector->conf_path, 0, "cannot be read: %s", strerror(-err));
	return err == -ENOMEM ? err : 0;
}

/* The object that the descriptor asks for: one of the others has it open, or it is opened now. */
static int take_object(struct collector *collector, const struct collector_options *options)
{
	const char *shared = collector->descriptor ? collector->descriptor->object : NULL;
	_cleanup_(freep) char *path = NULL;
	struct object *object = NULL;
	int err = 0;

	if (asprintf(&path, "%s/%s.bpf.o", collector->directory, shared ?: collector->name) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < options->n_others && !options->entries; i++)
		if (!options->others[i]->is_probe &&
		    !strcmp(options->others[i]->object->path, path) &&
		    !options->others[i]->object->is_tried)
			object = options->others[i]->object;
	if (!object)
		err = object_open(path, collector->conf_path, collector->diag, &object);
	if (err || !object)
		return err;
	if (array_append(&object->collectors, &object->n_collectors, &collector)) {
		if (!object->n_collectors)
			object_free(object);
		return -ENOMEM;
	}
	collector->object = object;
	object->kernel_types = options->labels->choice->kernel_types;
	return 0;
}

static void leave_object(struct collector *collector)
{
	struct object *object = collector->object;
	size_t n = 0;

	if (!object)
		return;
	for (size_t i = 0; i < object->n_collectors; i++)
		if (object->collectors[i] != collector)
			object->collectors[n++] = object->collectors[i];
	object->n_collectors = n;
	if (n)
		programs_choose(object, false);
	else
		object_free(object);
}

/*
 * S of a variable COLLECTOR_S, or NULL. Characters that a variable's name cannot have are "_"
 * there.
 */
static const char *own_name(const struct collector *collector, const char *variable)
{
	for (const char *at = collector->name; *at; at++, variable++)
		if (*variable != (strchr("-.", *at) ? '_' : *at))
			return NULL;
	return *variable == '_' ? variable + 1 : NULL;
}

static bool is_set_by_bpfpush(const char *variable)
{
	return !strcmp(variable, VARIABLE_PREEMPTIBLE) || !strcmp(variable, VARIABLE_CHOOSING);
}

/*
 * Of a shared object's variables those that begin with the collector's name, and those that its
 * [param]s name. COLLECTOR_on says that the collector is on.
 */
static int select_variables(struct collector *collector)
{
	const struct variables *all = &collector->object->variables;
	struct variable *items = calloc(all->n + 1, sizeof(*items));
	bool is_shared = collector->descriptor->object && !collector->is_probe;
	const struct variable *choosing;
	size_t n = 0;

	for (size_t i = 0; items && i < all->n; i++) {
		const char *own = is_shared ? own_name(collector, all->items[i].name) : NULL;

		items[n] = all->items[i];
		if (own)
			items[n].name = own;
		if (own && !strcmp(own, "on"))
			all->data[items[n].offset_bytes] = true;
		else
			n += own || descriptor_find_param(collector->descriptor, items[n].name) ||
			     (!is_shared && !is_set_by_bpfpush(items[n].name));
	}
	choosing = variable_find(all, VARIABLE_CHOOSING);
	/* A part of what an object is: where it makes no events, it is not another one. */
	if (choosing && collector->descriptor->n_events)
		all->data[choosing->offset_bytes] = event_is_chosen(collector->labels->choice);
	collector->variables = (struct variables){ all->btf, all->data, all->size_bytes, items, n };
	return items ? 0 : -ENOMEM;
}

/*
 * Metrics of one name are told apart by their scope, which not all exporters have, so probes may
 * not make them.
 */
static void check_names(const struct collector *collector, const struct collector *other)
{
	const struct collector *probe = collector->is_probe ? collector : other;
	const struct collector *second = probe == other ? collector : other;
	const struct descriptor *mine = probe->descriptor, *theirs = second->descriptor;

	if (!probe->is_probe)
		return;
	array_for_each (same, theirs->metrics, theirs->n_metrics)
		array_for_each (metric, mine->metrics, mine->n_metrics) {
			if (strcmp(metric->name, same->name) ||
			    (metric->attributes.n && same->attributes.n))
				continue;
			diag_add(collector->diag, probe->conf_path, metric->line,
				 "%s makes metric \"%s\", too (%s:%u); give the probe another one: name = …",
				 second->name, metric->name, second->conf_path, same->line);
			return;
		}
}

static int join_parts(struct collector *collector)
{
	int err = targets_set(&collector->object->programs, collector->descriptor);

	err = err ?: select_variables(collector);
	err = err ?: bindings_make(collector);
	return err ?: cgroup_maps_new(collector);
}

int collector_open(const char *directory, const char *name, const struct collector_options *options,
		   struct diag *diag, struct collector **ret_collector)
{
	_cleanup_(collector_freep) struct collector *collector = calloc(1, sizeof(*collector));
	unsigned int n_before = diag->n_errors;
	int err;

	if (!collector)
		return -ENOMEM;
	*collector = (struct collector){ .labels = options->labels, .budget = options->budget,
					 .is_strict = options->is_strict, .diag = diag,
					 .name = strdup(name), .directory = strdup(directory),
					 .context = { .labels = options->labels,
						      .process_names.fd = -1 },
					 .is_probe = options->entries };
	if (options->entries)
		collector->conf_path = strdup(options->entries->path);
	else if (asprintf(&collector->conf_path, "%s/%s.conf", directory, name) < 0)
		collector->conf_path = NULL;
	if (!collector->name || !collector->directory || !collector->conf_path)
		return -ENOMEM;
	err = options->entries ?
	      descriptor_read_entries(options->entries, diag, &collector->descriptor) :
			      read_descriptor(collector);
	err = err ?: take_object(collector, options);
	if (!err && collector->descriptor && collector->object)
		err = join_parts(collector);
	if (err)
		return err;
	if (collector->descriptor && collector->object) {
		alternatives_find(&collector->object->programs);
		bindings_check(collector);
	}
	for (size_t i = 0; i < options->n_others && diag->n_errors == n_before; i++)
		check_names(collector, options->others[i]);
	*ret_collector = NULL;
	if (diag->n_errors > n_before)
		return 0;
	collector->context.btf = collector->object->btf;
	collector->diag = NULL;
	*ret_collector = TAKE_PTR(collector);
	return 0;
}

void collector_free(struct collector *collector)
{
	if (!collector)
		return;
	cgroup_maps_free(collector);
	bindings_done(collector);
	for (size_t i = 0; i < collector->n_metrics; i++) {
		metric_done_series(collector->metrics[i]);
		setting_table_done(&metric_settings, collector->metrics[i]);
		free(collector->metrics[i]);
	}
	free(collector->metrics);
	free(collector->variables.items);
	free(collector->maps);
	leave_object(collector);
	descriptor_free(collector->descriptor);
	free(collector->name);
	free(collector->directory);
	free(collector->conf_path);
	free(collector);
}

int collector_set(struct collector *collector, const struct assignment *wanted, struct diag *diag)
{
	struct variable *variable = variable_find(&collector->variables, wanted->key);
	/* which every collector has */
	const char *complaint, *names[64] = { "enabled", "drop_attributes", "strict" };
	size_t n = 3;

	if (!strcmp(wanted->key, "drop_attributes"))
		return collector_set_metric(collector, NULL, wanted, diag);
	if (!strcmp(wanted->key, "strict")) {
		if (parse_bool(wanted->value, &collector->is_strict))
			diag_add(diag, wanted->path, wanted->line, "strict = %s: is neither yes nor no", wanted->value);
		return 0;
	}
	if (!variable) {
		for (size_t i = 0; i < collector->variables.n && n < ARRAY_SIZE(names); i++)
			names[n++] = collector->variables.items[i].name;
		diag_add_unknown(diag, wanted->path, wanted->line, "setting", wanted->key, names, n);
		return 0;
	}
	complaint = variable_set(&collector->variables, variable, wanted->value);
	if (complaint)
		diag_add(diag, wanted->path, wanted->line, "%s = %s: %s", wanted->key,
			 wanted->value, complaint);
	return 0;
}

int collector_start(struct collector *collector, struct buf *why)
{
	struct object *object = collector->object;
	char line[256];
	int err;

	if (!object->is_tried)
		object->err = object_start(object);
	object->is_tried = true;
	if (object->err) {
		refusal_cause(buf_text(&object->why), line, sizeof(line));
		buf_append_text(why, refusal_error(object->err));
		if (*line)
			buf_printf(why, " (%s)", line);
		return object->err;
	}
	err = collector_check_counting(collector, why);
	if (err)
		return err;
	collector->is_started = true;
	array_free(&collector->maps, &collector->n_maps);
	object_find_names(object, &collector->context.process_names);
	return 0;
}

/* The first of an object's collectors runs the iterators for all of them. */
static int run_iterators(struct collector *collector)
{
	struct object *object = collector->object;

	if (object->collectors[0] == collector) {
		(void)programs_renew(&object->programs, object->bpf);
		programs_stats(&object->programs, !collector->bindings->has_baseline);
		object->err = programs_iterate(&object->programs, false);
	}
	return object->err;
}

int collector_read(struct collector *collector)
{
	int err = run_iterators(collector);

	array_for_each (binding, collector->bindings, collector->n_bindings) {
		int r = binding_read(binding, collector->object->err != 0);

		err = err ? err : r;
		/* Rows that a broken reading did not reach are not gone. */
		if (!r)
			delta_end_gone(&binding->delta, binding->rows);
	}
	events_end(collector);
	return err;
}

int collector_compute(struct collector *collector, uint64_t previous_ns)
{
	int err = 0;

	for (size_t i = 0; i < collector->n_metrics; i++)
		series_begin(collector->metrics[i]);
	array_for_each (binding, collector->bindings, collector->n_bindings) {
		int r = binding_compute(binding, previous_ns);

		err = err ? err : r;
	}
	for (size_t i = 0; i < collector->n_metrics; i++)
		series_end(collector->metrics[i]);
	return err;
}

uint64_t collector_sweep(struct collector *collector, uint64_t now_ns, uint64_t saved_ns,
			 int64_t *left_ns)
{
	struct sweep_turn turn = { now_ns, saved_ns, *left_ns };
	uint64_t soonest_ns = SWEEP_DONE;

	for (size_t i = 0; i < collector->n_bindings; i++) {
		uint64_t wait_ns = binding_sweep(&collector->bindings[i], &turn);

		soonest_ns = wait_ns < soonest_ns ? wait_ns : soonest_ns;
	}
	*left_ns = turn.left_ns;
	return soonest_ns;
}

void collector_restart(struct collector *collector)
{
	for (size_t i = 0; i < collector->n_bindings; i++)
		delta_release(&collector->bindings[i].delta, collector->bindings[i].rows);
	for (size_t i = 0; i < collector->n_metrics; i++)
		metric_done_series(collector->metrics[i]);
}

uint64_t collectors_size(struct collector *const *collectors, size_t n, uint64_t units)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		struct object *object = collectors[i]->object;

		object->units = units;
		if (object->collectors[0] == collectors[i])
			bytes += sizes_set(object, object->bpf);
	}
	return bytes;
}
