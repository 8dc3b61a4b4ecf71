/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a descriptor that need its metrics bound to the object's maps. */
#include "collector/binding/bindings.h"
#include "collector/binding/event.h"
#include "collector/binding/key.h"
#include "collector/hook/check.h"
#include "util/array.h"

#include <bpf/libbpf.h>
#include <string.h>

/* [label]s whose map is exported and whose member is there. */
static void check_labels(const struct collector *collector)
{
	array_for_each (label, collector->descriptor->labels, collector->descriptor->n_labels) {
		const struct binding *binding = binding_find(collector, label->map);
		bool is_found = false;

		if (binding && binding->key.n_fields && !shape_find(&binding->key, label->member))
			binding_complain_of_member(binding, "label", label->line, label->member);
		if (binding)
			continue;
		array_for_each (other, collector->bindings, collector->n_bindings)
			is_found |= shape_find(&other->key, label->member) != NULL;
		if (strcmp(label->map, "*"))
			complain_of_unknown(collector, label->line, "exported map", label->map,
					    collector->bindings, collector->n_bindings);
		else if (!is_found)
			complain(collector, label->line, "no key of an exported map has a member \"%s\"; correct the name, or remove this section",
				 label->member);
	}
}

/* The i-th that an event has besides those of its members; NULL: there are fewer. */
static const char *added_attribute(const struct binding *binding,
				   const struct descriptor_metric *metric, size_t i)
{
	return metric->unit ? NULL : trace_attribute(&binding->event->trace, i);
}

static bool has_attribute(const struct binding *binding, const struct descriptor_metric *metric,
			  size_t before, const char *name)
{
	const char *added;

	for (size_t i = 0; (added = added_attribute(binding, metric, i)); i++)
		if (!strcmp(added, name))
			return true;
	for (uint32_t i = 0; i < binding->key.n_fields; i++)
		if (key_label_makes(&binding->labels[i], name))
			return true;
	return array_find(metric->attributes.items, before, name);
}

static void check_when(const struct collector *collector, unsigned int line, const char *when)
{
	const struct variables *variables = collector_variables_for(collector, when);

	if (when && !variable_find(variables, when))
		complain_of_unknown(collector, line, "setting", when, variables->items, variables->n);
}

static const char *what_is(const struct binding *binding, const struct descriptor_metric *metric)
{
	if (metric->unit)
		return "metric";
	return binding->event->kind.is_span ? "span" : "event";
}

static void check_metric(const struct binding *binding, const struct descriptor_metric *metric)
{
	const char *what = what_is(binding, metric);
	size_t n = metric->attributes.n + (metric->cpu != NULL);

	check_when(binding->collector, metric->line, metric->when);
	array_for_each (label, binding->labels, binding->key.n_fields)
		if (label->type && label->attribute)
			n += label->type->n_own ?: 1;
	for (size_t i = 0; added_attribute(binding, metric, i); i++)
		n++;
	if (n > ATTRIBUTES_MAX)
		complain(binding->collector, metric->line, "%s \"%s\" would have %zu attributes; at most %d are possible, so remove some, or members of the key",
			 what, metric->name, n, ATTRIBUTES_MAX);
	if (metric->cpu && has_attribute(binding, metric, 0, metric->cpu))
		complain(binding->collector, metric->line, "metric \"%s\" has an attribute \"%s\" already; use another name for \"cpu\"",
			 metric->name, metric->cpu);
	array_for_each (fixed, metric->attributes.items, metric->attributes.n)
		if (has_attribute(binding, metric, (size_t)(fixed - metric->attributes.items),
				  fixed->text) ||
		    !strcmp(fixed->text, metric->cpu ?: ""))
			complain(binding->collector, fixed->line,
				 "%s \"%s\" has an attribute \"%s\" already; remove this line, or use another name",
				 what, metric->name, fixed->text);
}

/*
 * A program looks for a key in a flat table byte by byte. Whatever was in the gaps of a key would
 * make another key of it, so the members must leave none.
 */
static void check_gaps(const struct binding *binding)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i <= binding->key.n_fields; i++) {
		bool is_end = i == binding->key.n_fields;
		uint32_t start = is_end ? binding->key.size_bytes :
				 binding->key.fields[i].offset_bytes;

		if (start > end)
			complain(binding->collector, binding->first->line,
				 "the key of table \"%s\" has a gap of %u byte%s after member \"%s\", and random bytes there "
				 "would split one key into several; fill it with a member whose name begins with \"unused\"",
				 binding->map, start - end, plural(start - end),
				 i ? binding->key.fields[i - 1].name : "");
		if (!is_end)
			end = start + binding->key.fields[i].size_bytes;
	}
}

static void check_attributes(const struct collector *collector)
{
	array_for_each (binding, collector->bindings, collector->n_bindings) {
		if (!binding->labels)
			continue;
		if (binding->reader.is_table)
			check_gaps(binding);
		key_labels_check(binding);
		for (uint32_t j = 0; j < binding->delta.n_metrics; j++)
			check_metric(binding, binding->delta.metrics[j].user);
		if (binding->event)
			check_metric(binding, &binding->event->described->of);
	}
}

static void check_settings(struct collector *collector)
{
	struct variables *variables = &collector->variables;

	array_for_each (param, collector->descriptor->params, collector->descriptor->n_params) {
		struct variable *variable = variable_find(variables, param->name);
		const char *complaint = NULL;

		if (!variable)
			complain_of_unknown(collector, param->line, "\"const volatile\" variable", param->name,
					    variables->items, variables->n);
		else if (param->symbol &&
			 (param->default_text || variable->field.class != FIELD_INTEGER ||
					   variable->size_bytes != sizeof(uint64_t)))
			complain(collector, param->line, "symbol = %s: the variable \"%s\" must be a u64 without a default, for the "
				 "address of that symbol", param->symbol, param->name);
		else if (param->default_text)
			complaint = variable_set(variables, variable, param->default_text);
		if (complaint)
			complain(collector, param->line, "default \"%s\" of \"%s\" %s", param->default_text, param->name,
				 complaint);
	}
}

/*
 * An iterator over the elements of a map must be told which. Its alternative may visit something
 * else.
 */
static void check_iterator(const struct collector *collector, const struct program *program)
{
	const struct descriptor_program *described = collector_describes(collector, program);
	const char *map = described ? described->map : NULL;

	if (program_is_over_map(program) && !map)
		complain(collector, described ? described->line : 0,
			 "program \"%s\" visits the elements of a map; name the map in [program %s]: map = …", program->name,
			 program->name);
	else if (map && program_is_over_map(program) &&
		 !bpf_object__find_map_by_name(collector->object->bpf, map))
		collector_complain_of_map(collector, described->line, map);
}

/* NULL is none. */
static void check_program_name(const struct collector *collector, unsigned int line,
			       const char *name)
{
	const struct programs *programs = &collector->object->programs;
	bool is_found = !name;

	for (uint32_t i = 0; i < programs->n && !is_found; i++)
		is_found = program_is_called(&programs->items[i], name);
	if (!is_found)
		complain_of_unknown(collector, line, "program or hook", name, programs->items, programs->n);
}

/* A program does not see what it misses. */
static void check_backup(const struct collector *collector,
			 const struct descriptor_program *described)
{
	const struct programs *programs = &collector->object->programs;

	check_program_name(collector, described->line, described->backup);
	for (uint32_t i = 0; described->backup && i < programs->n; i++)
		if (program_is_called(&programs->items[i], described->name) &&
		    program_is_called(&programs->items[i], described->backup)) {
			complain(collector, described->line,
				 "program \"%s\" cannot count what it misses itself; name another program as its backup, "
				 "or remove the line", programs->items[i].name);
			return;
		}
}

static void check_events(const struct collector *collector,
			 const struct descriptor_program *described)
{
	const struct descriptor *descriptor = collector->descriptor;
	_cleanup_(buf_done) struct buf sums = BUF_INIT;

	for (const struct descriptor_program *other = descriptor->programs;
	     other < described; other++)
		if (other->events && !strcmp(other->events, described->events))
			complain(collector, described->line, "events = %s: program \"%s\" has that line already; each run would count twice, "
				 "so name another sum, or remove the line", described->events, other->name);
	if (binding_find_sum(collector, described->events))
		return;
	array_for_each (binding, collector->bindings, collector->n_bindings)
		array_for_each (of, binding->delta.metrics, binding->delta.n_metrics) {
			const struct descriptor_metric *metric = of->user;

			if (of->metric->kind != METRIC_SUM)
				continue;
			buf_printf(&sums, "%s%s", sums.size ? ", " : "", metric->map);
			if (*metric->member)
				buf_printf(&sums, ".%s", metric->member);
		}
	complain(collector, described->line, "events = %s: no section [metric %s] makes a sum; name one that grows by one with "
		 "each run of the program: %s", described->events, described->events, sums.size ? buf_text(&sums) : "there is none");
}

static void check_programs(const struct collector *collector)
{
	const struct programs *programs = &collector->object->programs;

	array_for_each (described, collector->descriptor->programs,
			collector->descriptor->n_programs) {
		check_program_name(collector, described->line, described->name);
		check_backup(collector, described);
		check_when(collector, described->line, described->when);
		if (described->events)
			check_events(collector, described);
	}
	array_for_each (program, programs->items, programs->n) {
		if (!collector_uses(collector, program))
			continue;
		/*
		 * Only one of a hook's alternatives counts, so it must be sure that they are some.
		 */
		if (program->is_doubtful)
			complain(collector, 0,
				 "program \"%s\" (%s) looks like an alternative for hook \"%s\", of which only one would count; "
				 "end its name in the type of its section (%s__btf, %s__fexit …), or use a name without \"__\"",
				 program->name, program->section, program->hook, program->hook,
				 program->hook);
		hook_check(collector, program);
		check_iterator(collector, program);
	}
	if (programs->n && collector->descriptor->object && !collector->descriptor->n_programs)
		complain(collector, 0, "no [program] section, so no program of the shared object would run; add one for each that counts for this collector");
	if (!programs->n)
		complain(collector, 0, "%s has no program, so nothing would be counted", collector->object->path);
}

static void check_variables_differ(const struct collector *collector, const struct collector *other)
{
	array_for_each (mine, collector->variables.items, collector->variables.n) {
		const struct descriptor_param *param = descriptor_find_param(collector->descriptor,
									     mine->name);
		unsigned int line = param ? param->line : 0;

		array_for_each (theirs, other->variables.items, other->variables.n)
			if (mine->offset_bytes == theirs->offset_bytes)
				complain(collector, line, "setting \"%s\" is the same variable as \"%s\" of collector %s; "
					 "give each collector its own variable, %s_%s", mine->name, theirs->name, other->name,
					 collector->name, mine->name);
	}
}

/* Nothing that one collector sets or reads may be another's. */
static void check_sharing(const struct collector *collector, const struct collector *other)
{
	const struct descriptor *descriptor = collector->descriptor;

	if (!descriptor->object || !other->descriptor->object) {
		complain(collector, 0, "collector %s uses %s too, so [collector] of both must name it: object = …", other->name,
			 collector->object->path);
		return;
	}
	check_variables_differ(collector, other);
	hook_check_sharing(collector, other);
	for (size_t i = 0; i < collector->n_bindings; i++)
		if (binding_find(other, collector->bindings[i].map))
			complain(collector, collector->bindings[i].first->line, "map \"%s\" is exported by collector %s too; only one can export it",
				 collector->bindings[i].map, other->name);
}

void bindings_check(struct collector *collector)
{
	check_settings(collector);
	check_labels(collector);
	check_attributes(collector);
	check_programs(collector);
	for (size_t i = 0; i < collector->object->n_collectors; i++)
		if (collector->object->collectors[i] != collector)
			check_sharing(collector, collector->object->collectors[i]);
}
