/* SPDX-License-Identifier: Apache-2.0 */
#include "config/event-format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"
#include "util/cleanup.h"

/* "char comm[16]", "const char * name", "__data_loc char[] path": NULL, or how the text is found. */
static const char *text_of(const char *declaration)
{
	if (!strstr(declaration, "char") || strstr(declaration, "unsigned char"))
		return NULL;
	return !strncmp(declaration, "__data_loc", 10) ? "location" :
	       !strncmp(declaration, "__rel_loc", 9)   ? "relative" :
	       strchr(declaration, '*')		       ? "pointer" :
	       strchr(declaration, '[')		       ? "array" :
							 NULL;
}

/* Cuts the declaration after the name, of which it returns the beginning. */
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

int event_format_read(const char *event, struct event_format *ret_format)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	_cleanup_(fclosep) FILE *f = NULL;
	char line[512];
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(places) && !f; i++) {
		snprintf(line, sizeof(line), "%s/events/%s/format", places[i], event);
		f = fopen(line, "re");
		err = !f && errno == EACCES ? -EACCES : err;
	}
	ret_format->n = 0;
	while (f && ret_format->n < EVENT_FIELDS_MAX && fgets(line, sizeof(line), f)) {
		struct event_field *field = &ret_format->fields[ret_format->n];
		char *declaration = ret_format->lines[ret_format->n];
		unsigned int is_signed;

		if (sscanf(line, " field:%127[^;]; offset:%u; size:%u; signed:%u;", declaration, &field->offset, &field->bytes,
			   &is_signed) != 4)
			continue;
		field->is_signed = is_signed;
		field->text = text_of(declaration);
		field->name = cut_name(declaration);
		ret_format->n++;
	}
	return f ? 0 : err;
}
