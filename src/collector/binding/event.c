/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/binding/event.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

/* Of one CPU, as event.h has it. */
struct counted {
	uint64_t limited, full;
};

int event_bind(struct binding *binding, const struct descriptor_event *described)
{
	struct event_source *source;

	if (binding->event && binding->event->kind.is_span == described->is_span)
		return 0; /* that the section is there twice is said already */
	if (binding->event) {
		complain(binding->collector, described->of.line, "map \"%s\" has both [event %s] and [span %s]; keep one",
			 binding->map, binding->map, binding->map);
		return 0;
	}
	source = binding->event = calloc(1, sizeof(*source));
	if (!source)
		return -ENOMEM;
	source->described = described;
	source->losses_fd = -1;
	source->kind = (struct event_kind){ binding->collector->name, described->of.name,
					    described->of.description,
					    severity_named(described->severity),
					    described->is_span };
	source->event.kind = &source->kind;
	source->trace = trace_describe(binding, described->is_span);
	if (strcmp(binding->first->record ?: "", described->of.record))
		complain(binding->collector, described->of.line,
			 "\"record\" differs from that on line %u; it must be the same for all of map \"%s\"",
			 binding->first->line, binding->map);
	else
		trace_check(binding, &source->trace, described);
	return 0;
}

void event_unbind(struct binding *binding)
{
	free(binding->event);
	binding->event = NULL;
}

/* What the programs have counted. */
static struct event_losses read_losses(int fd)
{
	struct event_losses losses = { 0 };
	size_t n = (size_t)libbpf_num_possible_cpus();
	struct counted *counted = calloc(n, sizeof(*counted));
	const uint32_t zero = 0;

	if (fd >= 0 && counted && !bpf_map_lookup_elem(fd, &zero, counted))
		for (size_t i = 0; i < n; i++) {
			losses.limited += counted[i].limited;
			losses.full += counted[i].full;
		}
	free(counted);
	return losses;
}

void event_open(struct binding *binding, const struct bpf_object *object)
{
	struct event_source *source = binding->event;
	char name[128];
	const struct bpf_map *map;

	snprintf(name, sizeof(name), "%s_losses", binding->map);
	map = bpf_object__find_map_by_name(object, name);
	if (map && bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY &&
	    bpf_map__value_size(map) == sizeof(struct counted))
		source->losses_fd = bpf_map__fd(map);
	source->past = read_losses(source->losses_fd);
}

struct event_losses event_losses(const struct binding *binding)
{
	const struct event_source *source = binding->event;
	struct event_losses losses = read_losses(source->losses_fd);
	struct records_lost lost = records_lost(binding->reader.records);

	losses.limited -= source->past.limited;
	losses.full += lost.n_full - source->past.full;
	losses.damaged = lost.n_short;
	return losses;
}

/* False: the configuration excludes it. An attribute without room is left out. */
static bool fill_attributes(const struct binding *binding, const void *record,
			    struct attributes *attributes)
{
	const struct descriptor_list *fixed = &binding->event->described->of.attributes;

	attributes_init(attributes);
	attributes->is_of_event = true;
	array_for_each (label, binding->labels, binding->key.n_fields) {
		bool is_name = label == binding->event->trace.name_label;
		int r = is_name ? 0 : label_add(label, record, attributes);

		if (r > 0 && r & LABEL_UNWANTED)
			return false;
	}
	array_for_each (item, fixed->items, fixed->n)
		(void)attributes_add_text(attributes, item->text, item->value, strlen(item->value));
	return true;
}

void events_end(const struct collector *collector)
{
	const struct event_sink *sink = collector->sink;

	if (sink && sink->end && collector->descriptor->n_events)
		sink->end(sink->user);
}

void event_take(void *user, const void *record)
{
	const struct binding *binding = user;
	struct event_source *source = binding->event;
	const struct event_sink *sink = binding->collector->sink;
	struct event *event = &source->event;

	if (!sink ||
	    !variable_is_on(&binding->collector->variables, source->described->of.when) ||
	    !fill_attributes(binding, record, &event->attributes))
		return;
	trace_read(binding, record, event);
	if (trace_add_attributes(&source->trace, record, event))
		sink->take(sink->user, event);
}
