/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What members of a record say in place of an attribute (enum label_role): when an event was, how
 * long a span took, and where both belong in a trace.
 */

#include <stdbool.h>
#include <stddef.h>

#include "metric/event.h"

struct binding;
struct descriptor_event;
struct key_label;

struct trace_source {
	bool is_span;
	bool has_ids; /* of a trace or of a span may be in a record */
	/* of the attribute EVENT_SPAN_NAME of a span; NULL: none is called so */
	const struct key_label *name_label;
};

/* The binding has its labels. */
struct trace_source trace_describe(const struct binding *binding, bool is_span);
/* Reports what a record lacks, has twice, or may not have. */
void trace_check(const struct binding *binding, const struct trace_source *source,
		 const struct descriptor_event *described);
/* Into the fields of the event. Ids that a span lacks are random, as each tracer makes them. */
void trace_read(const struct binding *binding, const void *record, struct event *event);
/* The same as attributes of the event, after its own. False: the configuration excludes it. */
bool trace_add_attributes(const struct trace_source *source, const void *record,
			  struct event *event);
/* The i-th attribute that this adds; NULL: there are fewer. */
const char *trace_attribute(const struct trace_source *source, size_t i);
