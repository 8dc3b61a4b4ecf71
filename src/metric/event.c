/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/event.h"

#include <string.h>
#include <strings.h>

#include "util/array.h"
#include "util/buf.h"

/* Every fourth number. */
static const char *const names[] = { "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL" };

const char *severity_name(enum severity severity)
{
	return names[(severity - 1) / 4 % ARRAY_SIZE(names)];
}

enum severity severity_named(const char *name)
{
	for (unsigned int i = 0; name && i < ARRAY_SIZE(names); i++)
		if (!strcasecmp(names[i], name))
			return (enum severity)(4 * i + 1);
	return SEVERITY_INFO;
}

void event_append_message(const struct event *event, struct buf *out)
{
	/* The ids of a record's trace are where receivers look for them. */
	unsigned int n = event->kind->is_span ? event->attributes.n : event->n_own;
	size_t begin = out->size;

	buf_append_text(out, event->kind->name);
	array_for_each (attribute, event->attributes.items, n) {
		size_t before = out->size;

		buf_printf(out, " %s=", attribute->name);
		attribute_append(out, attribute);
		if (buf_error(out))
			return;
		if (out->size - begin > EVENT_MESSAGE_BYTES ||
		    memchr(out->data + before, '\n', out->size - before))
			out->size = before;
	}
}
