/* SPDX-License-Identifier: Apache-2.0 */
/* Documentation/trace/events.rst */
#include "config/probe-internal.h"

#include <stdio.h>
#include <string.h>

#include "collector/hook/target.h"
#include "util/cleanup.h"

/* "char comm[16]", "const char * name", "__data_loc char[] path", "unsigned char flags", "int pid" */
static const char *text_of(const char *declaration)
{
	if (!strstr(declaration, "char") || strstr(declaration, "unsigned char"))
		return NULL;
	if (!strncmp(declaration, "__data_loc", 10))
		return "location";
	if (!strncmp(declaration, "__rel_loc", 9))
		return "relative";
	return strchr(declaration, '*') ? "pointer" : strchr(declaration, '[') ? "array" : NULL;
}

/* Cuts the declaration after the name, and returns where that begins. */
static char *cut_name(char *declaration)
{
	char *end = declaration + strlen(declaration), *bracket = strrchr(declaration, '[');

	if (bracket && end[-1] == ']')
		end = bracket;
	*end = '\0';
	while (end > declaration && end[-1] != ' ' && end[-1] != '*')
		end--;
	return end;
}

void event_fields_read(const char *event, struct event_fields *ret_fields)
{
	int category = (int)strcspn(event, ":");
	_cleanup_(fclosep) FILE *f = NULL;
	char line[512];

	snprintf(line, sizeof(line), "events/%.*s/%s/format", category, event, event + category + 1);
	f = target_open_trace(line);
	ret_fields->n = 0;
	while (f && ret_fields->n < EVENT_FIELDS && fgets(line, sizeof(line), f)) {
		struct probe_value *field = &ret_fields->items[ret_fields->n];
		char *declaration = ret_fields->declarations[ret_fields->n];

		if (sscanf(line, " field:%127[^;]; offset:%u; size:%u; signed:%u;", declaration, &field->offset, &field->bytes,
			   &field->is_signed) != 4)
			continue;
		field->from = "field";
		field->text = text_of(declaration);
		field->name = cut_name(declaration);
		if (field->text && field->bytes > 64)
			field->bytes = 64;
		ret_fields->n++;
	}
}
