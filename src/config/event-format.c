/* SPDX-License-Identifier: Apache-2.0 */
/* Documentation/trace/events.rst */
#include "config/probe-internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/descriptor.h"
#include "collector/hook/target.h"
#include "util/cleanup.h"

/*
 * "char comm[16]", "const char * name", "__data_loc char[] path", "unsigned char flags", "int pid"
 */
static const char *text_of(const char *declaration)
{
	if (!strstr(declaration, "char") || strstr(declaration, "unsigned char"))
		return NULL;
	if (!strncmp(declaration, "__data_loc", 10))
		return "location";
	if (!strncmp(declaration, "__rel_loc", 9))
		return "relative";
	if (strchr(declaration, '*'))
		return "pointer";
	return strchr(declaration, '[') ? "array" : NULL;
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

/* A name may be written in parts. */
static void join_texts(char *line)
{
	for (char *gap = line; (gap = strstr(gap, "\" \"")) != NULL;)
		memmove(gap, gap + 3, strlen(gap + 3) + 1);
}

void event_fields_read(const char *event, struct event_fields *ret_fields)
{
	int category = (int)strcspn(event, ":");
	_cleanup_(fclosep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	char path[512];
	size_t room = 0;

	snprintf(path, sizeof(path), "events/%.*s/%s/format", category, event, event + category + 1);
	f = target_open_trace(path);
	ret_fields->n = 0;
	while (f && ret_fields->n < EVENT_FIELDS && getline(&line, &room, f) > 0) {
		struct probe_value *field = &ret_fields->items[ret_fields->n];
		char *declaration = ret_fields->declarations[ret_fields->n];

		if (!strncmp(line, "print fmt:", 10)) {
			join_texts(line);
			ret_fields->print = TAKE_PTR(line);
			break;
		}
		if (sscanf(line, " field:%127[^;]; offset:%u; size:%u; signed:%u;", declaration, &field->offset, &field->bytes,
			   &field->is_signed) != 4)
			continue;
		field->from = "field";
		field->text = text_of(declaration);
		field->is_placed = !field->text && !strncmp(declaration, "__", 2) &&
				   strstr(declaration, "_loc ");
		field->is_array = !field->text && strchr(declaration, '[') &&
				  !strstr(declaration, "[1]");
		field->name = cut_name(declaration);
		if (!strncmp(field->name, "common_", 7)) /* the kernel keeps them from programs */
			continue;
		if (field->text && field->bytes > 64)
			field->bytes = 64;
		ret_fields->n++;
	}
}

static bool is_plain(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_-+./:| ", *c))
			return false;
	return *name;
}

/* Of two names for a number, the first one is printed. */
static void write_name(int64_t number, const char *name, size_t begin, struct buf *out)
{
	char key[32] = "value";
	int n = snprintf(key + sizeof("value"), sizeof(key) - sizeof("value"), "%" PRId64 "=", number);
	size_t bytes = sizeof("value") + (size_t)n, length = strlen(name);

	while (length && name[length - 1] == ' ')
		length--;
	if (!is_plain(name) || buf_error(out))
		return;
	if (out->size == begin || !memmem(out->data + begin, out->size - begin, key, bytes))
		descriptor_write_key(out, "value", "%" PRId64 "=%.*s", number, (int)length, name);
}

/* __print_symbolic(REC->FIELD, { 1, "ONE" }, { 0x2, "TWO" }) */
bool event_names_write(const struct event_fields *fields, const char *field, struct buf *out)
{
	size_t begin = out->size;
	char head[160], name[64];
	const char *at;
	int64_t number;
	int n = 0;

	snprintf(head, sizeof(head), "__print_symbolic(REC->%s,", field);
	at = fields->print ? strstr(fields->print, head) : NULL;
	for (at = at ? at + strlen(head) - 1 : "";
	     sscanf(at, ", { %" SCNi64 " , \"%63[^\"]\" }%n", &number, name, &n) == 2 && n; n = 0) {
		write_name(number, name, begin, out);
		at += n;
	}
	return out->size > begin;
}
