/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/parts.h"

#include <string.h>

#include "util/array.h"

struct collector *collector_named(struct collector *const *items, size_t n, const char *name)
{
	array_for_each (item, items, n)
		if (!strcmp((*item)->name, name))
			return *item;
	return NULL;
}

struct metric *collector_find_metric(const struct collector *collector, const char *name)
{
	for (size_t i = 0; i < collector->n_metrics; i++)
		if (!strcmp(collector->metrics[i]->name, name))
			return collector->metrics[i];
	return NULL;
}

const struct descriptor_program *collector_describes(const struct collector *collector,
						     const struct program *program)
{
	for (size_t i = 0; i < collector->descriptor->n_programs; i++)
		if (program_is_called(program, collector->descriptor->programs[i].name))
			return &collector->descriptor->programs[i];
	return NULL;
}

bool collector_uses(const struct collector *collector, const struct program *program)
{
	return !collector->descriptor->object || collector_describes(collector, program);
}

const struct variables *collector_variables_for(const struct collector *collector, const char *when)
{
	bool is_of_object = when && !strcmp(when, VARIABLE_PREEMPTIBLE);

	return is_of_object ? &collector->object->variables : &collector->variables;
}
