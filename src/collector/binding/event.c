/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/binding/event.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/label/cgroup.h"
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
	source->losses_fd = source->unwanted_fd = -1;
	source->kind = (struct event_kind){ binding->collector->name, described->of.name,
					    described->of.description,
					    severity_named(described->severity),
					    described->is_span };
	source->event.kind = &source->kind;
	source->trace = trace_describe(binding, described->is_span);
	array_for_each (label, binding->labels, binding->key.n_fields)
		if (label->type && !strcmp(label->type->name, "cgroup"))
			source->owner = label;
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

static const struct bpf_map *find_companion(const struct binding *binding,
					    const struct bpf_object *object, const char *what)
{
	char name[128];

	snprintf(name, sizeof(name), "%s_%s", binding->map, what);
	return bpf_object__find_map_by_name(object, name);
}

static void forget_unwanted(int fd)
{
	uint64_t cgroup;

	while (!bpf_map_get_next_key(fd, NULL, &cgroup) && !bpf_map_delete_elem(fd, &cgroup))
		;
}

/* No more events of this owner are wanted: its programs need not tell them. */
static void reject_owner(const struct binding *binding, const void *record)
{
	const struct event_source *source = binding->event;
	const struct key_label *owner = source->owner;
	const uint8_t one = 1;
	uint64_t cgroup;

	if (source->unwanted_fd < 0 || !source->is_owner_final)
		return;
	cgroup = shape_load((const uint8_t *)record + owner->field->offset_bytes, sizeof(cgroup));
	if (bpf_map_update_elem(source->unwanted_fd, &cgroup, &one, BPF_NOEXIST) == -E2BIG)
		forget_unwanted(source->unwanted_fd);
}

bool event_is_chosen(const struct label_choice *choice)
{
	return choice->is_selective || choice->units.include.n_items ||
	       choice->units.exclude.n_items;
}

void event_open(struct binding *binding, const struct bpf_object *object)
{
	struct event_source *source = binding->event;
	const struct bpf_map *map = find_companion(binding, object, "unwanted");

	if (map && bpf_map__type(map) == BPF_MAP_TYPE_HASH &&
	    bpf_map__key_size(map) == sizeof(uint64_t) && bpf_map__value_size(map) == 1)
		source->unwanted_fd = bpf_map__fd(map);
	/* A process before may have wanted others. */
	if (source->unwanted_fd >= 0)
		forget_unwanted(source->unwanted_fd);
	map = find_companion(binding, object, "losses");
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

/*
 * Does the attribute say whose event it is, by a name that stays as long as the cgroup lives? What
 * is unwanted by its name is so without an attribute. r: of label_add().
 */
static bool is_final(const struct binding *binding, const void *record, int r)
{
	const struct field *field = binding->event->owner->field;
	uint64_t cgroup = shape_load((const uint8_t *)record + field->offset_bytes, sizeof(cgroup));
	struct cgroup_unit unit = { 0 };

	return cgroup && (!r || r == LABEL_UNWANTED) &&
	       !cgroups_get(binding->collector->labels->cgroups, cgroup, &unit) &&
	       !unit.is_cut;
}

/* False: the configuration excludes it. An attribute without room is left out. */
static bool fill_attributes(const struct binding *binding, const void *record,
			    struct attributes *attributes)
{
	struct event_source *source = binding->event;
	const struct descriptor_list *fixed = &source->described->of.attributes;

	source->is_owner_final = false;
	attributes_init(attributes);
	attributes->is_of_event = true;
	array_for_each (label, binding->labels, binding->key.n_fields) {
		bool is_name = label == source->trace.name_label;
		int r = is_name ? 0 : label_add(label, record, attributes);

		if (label == source->owner)
			source->is_owner_final = is_final(binding, record, r);
		if (r > 0 && r & LABEL_UNWANTED && label == source->owner)
			reject_owner(binding, record);
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
	if (trace_add_attributes(&source->trace, record, event) && !sink->take(sink->user, event))
		reject_owner(binding, record);
}
