/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/event.h"

#include <strings.h>

#include "util/cleanup.h"

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
