/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The fields of a classic tracepoint's record, as tracefs describes them (Documentation/trace/events.rst). */

#include <stdbool.h>
#include <stddef.h>

#define EVENT_FIELDS 64

struct event_fields {
	struct event_field {
		const char *name; /* first, for array_find() */
		unsigned int offset, bytes, is_signed;
		const char *text; /* how its text is found: enum probe_text of bpf/probe/read.h; NULL: it is a number */
	} items[EVENT_FIELDS];
	char declarations[EVENT_FIELDS][128]; /* hold the names */
	size_t n; /* 0: this kernel has no such event, or nobody here may know */
};

/* event: CATEGORY:NAME. */
void event_fields_read(const char *event, struct event_fields *ret_fields);
