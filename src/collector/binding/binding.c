/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/binding/binding.h"

#include <bpf/libbpf.h>
#include <string.h>

#include "collector/table/layout.h"
#include "util/array.h"

struct binding *binding_find(const struct collector *collector, const char *map)
{
	return array_find(collector->bindings, collector->n_bindings, map);
}

bool binding_is_of_event(const struct binding *binding)
{
	const struct descriptor *descriptor = binding->collector->descriptor;

	array_for_each (event, descriptor->events, descriptor->n_events)
		if (!strcmp(event->of.map, binding->map))
			return true;
	return false;
}

const struct delta_metric *binding_find_sum(const struct collector *collector, const char *place)
{
	array_for_each (binding, collector->bindings, collector->n_bindings)
		array_for_each (of, binding->delta.metrics, binding->delta.n_metrics)
			if (of->metric->kind == METRIC_SUM &&
			    descriptor_is_metric_of(of->user, place))
				return of;
	return NULL;
}

struct binding *binding_of(const struct object *object, const char *map)
{
	struct binding *binding = NULL;

	for (size_t i = 0; i < object->n_collectors && !binding; i++)
		binding = binding_find(object->collectors[i], map);
	return binding;
}

void binding_complain_of_member(const struct binding *binding, const char *section,
				unsigned int line, const char *member)
{
	bool is_key = !strcmp(section, "label");
	const struct shape *shape = is_key ? &binding->key : &binding->value;
	const char *what = is_key ? "key" : "value";

	if (shape->n_fields == 1 && !*shape->fields[0].name)
		complain(binding->collector, line, "the %s of map \"%s\" has no members; write [%s %s]", what,
			 binding->map, section, binding->map);
	else if (!*member)
		complain(binding->collector, line, "the %s of map \"%s\" has members; write [%s %s.MEMBER]", what,
			 binding->map, section, binding->map);
	else
		complain_of_unknown(binding->collector, line, "member", member, shape->fields,
				    shape->n_fields);
}

void collector_complain_of_map(const struct collector *collector, unsigned int line,
			       const char *map)
{
	const struct bpf_object *bpf = collector->object->bpf;
	const char *names[64];
	struct bpf_map *other;
	size_t n = 0;

	bpf_object__for_each_map (other, bpf)
		if (n < ARRAY_SIZE(names) && !bpf_map__is_internal(other) &&
		    !table_is_part(bpf, other))
			names[n++] = bpf_map__name(other);
	complain_of_unknown(collector, line, "map", map, names, n);
}
