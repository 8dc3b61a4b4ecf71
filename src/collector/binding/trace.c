/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/binding/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "collector/binding/binding.h"
#include "collector/binding/key.h"
#include "collector/descriptor.h"
#include "util/array.h"
#include "util/duration.h"

/* For those who show nothing but attributes. A span may lack the last. */
static const char *const added[] = { EVENT_TRACE_ID, EVENT_SPAN_ID, EVENT_DURATION,
				     EVENT_PARENT_SPAN_ID };

const char *trace_attribute(const struct trace_source *source, size_t i)
{
	size_t n = source->has_ids ? 2 : 0;

	if (source->is_span)
		n = ARRAY_SIZE(added);
	return i < n ? added[i] : NULL;
}

/* Of all members that have this role. */
static unsigned int count_bytes(const struct binding *binding, enum label_role role)
{
	unsigned int n = 0;

	array_for_each (label, binding->labels, binding->key.n_fields)
		if (label->type && label->type->role == role)
			n += label->field->size_bytes;
	return n;
}

static void check_time(const struct binding *binding, const struct descriptor_event *described)
{
	unsigned int bytes = count_bytes(binding, LABEL_TIME) +
			     count_bytes(binding, LABEL_MONOTONIC_TIME);

	if (!bytes)
		complain(binding->collector, described->of.line,
			 "record = %s: no member has the time of the event; add one of type val_boot_ns",
			 described->of.record);
	else if (bytes > sizeof(uint64_t))
		complain(binding->collector, described->of.line,
			 "record = %s: more than one member is the time of the event; keep one",
			 described->of.record);
	if (described->is_span && !count_bytes(binding, LABEL_DURATION))
		complain(binding->collector, described->of.line,
			 "record = %s: no member has the duration of the span; add one of type lbl_duration",
			 described->of.record);
}

static void check_roles(const struct binding *binding, const struct descriptor_event *described)
{
	static const struct {
		const char *name;
		unsigned int bytes;
		bool is_of_span;
	} roles[] = {
		[LABEL_DURATION] = { "duration", 8, true },
		[LABEL_TRACE_ID] = { "trace-id", 16, false },
		[LABEL_SPAN_ID] = { "span-id", 8, false },
		[LABEL_PARENT_SPAN_ID] = { "parent-span-id", 8, true },
	};

	for (size_t i = LABEL_DURATION; i < ARRAY_SIZE(roles); i++) {
		unsigned int bytes = count_bytes(binding, (enum label_role)i);

		if (bytes && bytes != roles[i].bytes)
			complain(binding->collector, described->of.line,
				 "record = %s: the members of type %s must have %u bytes together, and have %u",
				 described->of.record, roles[i].name, roles[i].bytes, bytes);
		else if (bytes && roles[i].is_of_span && !described->is_span)
			complain(binding->collector, described->of.line,
				 "record = %s: a member is of type %s, which only a span has; write [span %s]",
				 described->of.record, roles[i].name, described->of.map);
	}
}

/* Without it, an id of a span says nothing of others. */
static void check_trace_id(const struct binding *binding, const struct descriptor_event *described)
{
	enum label_role role = described->is_span ? LABEL_PARENT_SPAN_ID : LABEL_SPAN_ID;

	if (count_bytes(binding, role) && !count_bytes(binding, LABEL_TRACE_ID))
		complain(binding->collector, described->of.line,
			 "record = %s: a member is of type %s, but none is of type trace-id; add one",
			 described->of.record,
			 described->is_span ? "parent-span-id" : "span-id");
}

static void check_name(const struct binding *binding, const struct descriptor_event *described,
		       const char *name)
{
	array_for_each (label, binding->labels, binding->key.n_fields)
		if (key_label_makes(label, name))
			complain(binding->collector, described->of.line,
				 "member \"%s\" of the record of map \"%s\" becomes attribute \"%s\", which bpfpush adds itself; "
				 "give it another name in a [label] section",
				 label->field->name, binding->map, name);
}

struct trace_source trace_describe(const struct binding *binding, bool is_span)
{
	struct trace_source source = { .is_span = is_span };

	source.has_ids = count_bytes(binding, LABEL_TRACE_ID) ||
			 count_bytes(binding, LABEL_SPAN_ID);
	array_for_each (label, binding->labels, binding->key.n_fields)
		if (is_span && !strcmp(label->attribute ?: "", EVENT_SPAN_NAME))
			source.name_label = label;
	return source;
}

void trace_check(const struct binding *binding, const struct trace_source *source,
		 const struct descriptor_event *described)
{
	const char *name;

	check_time(binding, described);
	check_roles(binding, described);
	check_trace_id(binding, described);
	for (size_t i = 0; (name = trace_attribute(source, i)); i++)
		check_name(binding, described, name);
}

/* Of a trace id, a second number follows the first. */
static void read_id(const struct key_label *label, const uint8_t *raw, uint8_t *id, size_t *n)
{
	memcpy(id + *n, raw, label->field->size_bytes);
	*n += label->field->size_bytes;
}

static uint64_t load_ns(const uint8_t *raw)
{
	return shape_load(raw, sizeof(uint64_t));
}

static void read_roles(const struct binding *binding, const uint8_t *record, struct event *event)
{
	const struct labels *labels = binding->collector->labels;
	size_t n_trace = 0, n_span = 0, n_parent = 0;

	array_for_each (label, binding->labels, binding->key.n_fields) {
		const uint8_t *raw = record + label->field->offset_bytes;

		switch (label->type ? label->type->role : LABEL_ATTRIBUTE) {
		case LABEL_TIME:
			event->time_ns = labels->boottime_zero_ns + load_ns(raw);
			break;
		case LABEL_MONOTONIC_TIME:
			event->time_ns = labels->monotonic_zero_ns + load_ns(raw);
			break;
		case LABEL_DURATION:
			event->duration_ns = load_ns(raw);
			break;
		case LABEL_TRACE_ID: read_id(label, raw, event->trace.trace_id, &n_trace); break;
		case LABEL_SPAN_ID: read_id(label, raw, event->trace.span_id, &n_span); break;
		case LABEL_PARENT_SPAN_ID:
			read_id(label, raw, event->trace.parent_span_id, &n_parent);
			break;
		case LABEL_ATTRIBUTE: break;
		}
	}
}

static bool id_is_set(const uint8_t *id, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (id[i])
			return true;
	return false;
}

/* Ids that a program does not set are random. In a trace of its own, a span is without a parent. */
static void fill_ids(struct trace_context *trace)
{
	if (!id_is_set(trace->trace_id, sizeof(trace->trace_id))) {
		(void)getrandom(trace->trace_id, sizeof(trace->trace_id), 0);
		memset(trace->parent_span_id, 0, sizeof(trace->parent_span_id));
	}
	if (!id_is_set(trace->span_id, sizeof(trace->span_id)))
		(void)getrandom(trace->span_id, sizeof(trace->span_id), 0);
}

static void add_id(struct attributes *attributes, const char *name, const uint8_t *id, size_t size)
{
	char text[2 * sizeof(((struct trace_context *)NULL)->trace_id) + 1];

	if (!id_is_set(id, size))
		return;
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	(void)attributes_add_text(attributes, name, text, 2 * size);
}

void trace_read(const struct binding *binding, const void *record, struct event *event)
{
	memset(&event->trace, 0, sizeof(event->trace));
	read_roles(binding, record, event);
	if (event->kind->is_span)
		fill_ids(&event->trace);
}

/* A name is a text; else the attribute is one like others. LABEL_UNWANTED, -errno. */
static int add_span_name(const struct key_label *label, const void *record, struct event *event)
{
	struct attributes *attributes = &event->attributes;
	int r = label_add(label, record, attributes);

	if (attributes->n == event->n_own)
		return r;
	if (attributes->items[event->n_own].type == ATTRIBUTE_TEXT)
		event->span_name = attributes->items[event->n_own].text;
	else
		event->n_own = attributes->n;
	return r;
}

bool trace_add_attributes(const struct trace_source *source, const void *record,
			  struct event *event)
{
	struct attributes *attributes = &event->attributes;
	const struct trace_context *trace = &event->trace;
	int r;

	event->n_own = attributes->n;
	event->span_name = NULL;
	r = source->name_label ? add_span_name(source->name_label, record, event) : 0;
	if (r > 0 && r & LABEL_UNWANTED)
		return false;
	if (event->kind->is_span)
		(void)attributes_add_real(attributes, EVENT_DURATION,
					  (double)event->duration_ns / (double)NS_PER_S);
	add_id(attributes, EVENT_TRACE_ID, trace->trace_id, sizeof(trace->trace_id));
	add_id(attributes, EVENT_SPAN_ID, trace->span_id, sizeof(trace->span_id));
	add_id(attributes, EVENT_PARENT_SPAN_ID, trace->parent_span_id,
	       sizeof(trace->parent_span_id));
	return true;
}
