/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/event.h"

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
	size_t begin = out->size;

	buf_append_text(out, event->kind->name);
	array_for_each (attribute, event->attributes.items, event->attributes.n) {
		size_t before = out->size;

		buf_printf(out, " %s=", attribute->name);
		attribute_append(out, attribute);
		if (!buf_error(out) && out->size - begin > EVENT_MESSAGE_BYTES)
			out->size = before;
	}
}
