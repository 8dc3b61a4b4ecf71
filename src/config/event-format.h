/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The fields of a classic tracepoint's record, as tracefs describes them (Documentation/trace/events.rst). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_field {
	const char *name; /* first, for array_find() */
	uint32_t offset, bytes;
	bool is_signed;
	const char *text; /* how its text is found: bpf/probe/read.h; NULL: it is a number */
};

#define EVENT_FIELDS_MAX 64

struct event_format {
	struct event_field fields[EVENT_FIELDS_MAX];
	size_t n;
	char lines[EVENT_FIELDS_MAX][128]; /* hold the names */
};

/* event: CATEGORY/NAME. -ENOENT: this kernel has no such event, or there is no tracefs. -EACCES. */
int event_format_read(const char *event, struct event_format *ret_format);
