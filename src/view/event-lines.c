/* SPDX-License-Identifier: Apache-2.0 */
#include "view/event-lines.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "metric/decimal.h"
#include "util/array.h"
#include "util/duration.h"
#include "view/grid.h"

#define RED   "\033[31m"
#define PLAIN "\033[0m"

/* A column is at least that wide, and at most so wide that the next ones stay in view. */
enum { WIDTH_MIN = 6, WIDTH_MAX = 40 };

/* All names of owners are one column. */
static bool is_same(const char *left, const char *right)
{
	return !strcmp(left, right) || (attribute_owner(left) && attribute_owner(right));
}

void event_lines_add_column(struct event_lines *lines, const char *attribute)
{
	for (size_t i = 0; i < lines->n_columns; i++) {
		const char *known = lines->columns[i].attribute;

		if (!strcmp(known, attribute) ||
		    (!lines->has_all_owners && is_same(known, attribute)))
			return;
	}
	if (lines->n_columns == EVENT_COLUMNS_MAX ||
	    (lines->is_alone && attribute_owner(attribute)))
		return;
	lines->columns[lines->n_columns++] = (struct event_column){
		attribute, grid_width(grid_heading(attribute)) };
}

static void append_time(struct buf *out, uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	char text[16];
	struct tm tm;

	strftime(text, sizeof(text), "%T", gmtime_r(&seconds, &tm));
	buf_printf(out, "%s.%03u", text, (unsigned int)(time_ns % NS_PER_S / NS_PER_MS));
}

/* As people read it: a time with its unit, a text that cannot do anything to a terminal. */
static void append_value(struct buf *out, const struct attribute *attribute)
{
	if (attribute->type == ATTRIBUTE_REAL)
		decimal_human(out, attribute->real, "s");
	else
		attribute_append(out, attribute);
}

static const struct attribute *find_value(const struct event *event, const char *name)
{
	array_for_each (attribute, event->attributes.items, event->attributes.n)
		if (is_same(attribute->name, name))
			return attribute;
	return NULL;
}

static bool is_number(const struct attribute *attribute)
{
	return attribute && attribute->type != ATTRIBUTE_TEXT && attribute->type != ATTRIBUTE_TEXTS;
}

/* Text at the left, numbers at the right. No blanks follow the last. */
static void append_cell(struct buf *out, struct event_column *column, const char *text,
			bool is_right, bool is_last)
{
	unsigned int width = grid_width(text);

	if (width > column->width)
		column->width = width < WIDTH_MAX ? width : WIDTH_MAX;
	if (is_right)
		buf_printf(out, "%*s", width < column->width ? (int)(column->width - width) : 0, "");
	buf_append_text(out, text);
	if (!is_right && !is_last && width < column->width)
		buf_printf(out, "%*s", (int)(column->width - width), "");
}

static void append_headings(struct event_lines *lines, const struct event *first,
			    struct buf *out)
{
	buf_printf(out, "%-12s", "time UTC");
	for (size_t i = 0; i < lines->n_columns; i++) {
		struct event_column *column = &lines->columns[i];
		bool is_right = is_number(find_value(first, column->attribute));

		if (column->width < WIDTH_MIN)
			column->width = WIDTH_MIN;
		buf_append_text(out, "  ");
		append_cell(out, column, grid_heading(column->attribute), is_right,
			    i + 1 == lines->n_columns);
	}
}

static void append_columns(struct event_lines *lines, const struct event *event, struct buf *out)
{
	for (size_t i = 0; i < lines->n_columns; i++) {
		const struct attribute *found = find_value(event, lines->columns[i].attribute);
		_cleanup_(buf_done) struct buf text = BUF_INIT;

		if (found)
			append_value(&text, found);
		buf_append_text(out, "  ");
		append_cell(out, &lines->columns[i], found ? buf_text(&text) : "-",
			    is_number(found), i + 1 == lines->n_columns);
	}
}

static void append_pairs(const struct event_lines *lines, const struct event *event,
			 struct buf *out)
{
	const struct attribute *owner = find_value(event, "systemd.unit.name");

	buf_printf(out, "  %-16s", event->kind->name);
	if (owner && !lines->is_alone)
		buf_printf(out, "  %s", owner->text);
	array_for_each (attribute, event->attributes.items, event->attributes.n) {
		if (attribute == owner)
			continue;
		buf_printf(out, "  %s=", grid_heading(attribute->name));
		append_value(out, attribute);
	}
}

/* Cut at the edge of the terminal, in the colour of its severity. */
static void append_line(const struct event_lines *lines, struct buf *line, bool is_red,
			struct buf *out)
{
	char *text = buf_error(line) ? NULL : (char *)buf_text(line);

	if (!text) {
		out->error = buf_error(line);
		return;
	}
	grid_clean(text);
	grid_to_locale(text);
	is_red &= lines->has_colour;
	buf_append_text(out, is_red ? RED : "");
	buf_append(out, text, lines->width ? grid_fit(text, lines->width) : strlen(text));
	buf_append_text(out, is_red ? PLAIN "\n" : "\n");
}

void event_lines_append(struct event_lines *lines, const struct event *event, struct buf *out)
{
	bool is_red = event->kind->severity >= SEVERITY_WARN || find_value(event, "error.type");
	_cleanup_(buf_done) struct buf line = BUF_INIT, head = BUF_INIT;

	if (!lines->has_headings && !lines->has_several) {
		append_headings(lines, event, &head);
		append_line(lines, &head, false, out);
	}
	lines->has_headings = true;
	append_time(&line, event->time_ns);
	if (lines->has_several)
		append_pairs(lines, event, &line);
	else
		append_columns(lines, event, &line);
	append_line(lines, &line, is_red, out);
}

void event_append_json(const struct event *event, struct buf *out)
{
	const struct event_kind *kind = event->kind;

	buf_begin_object(out, "collector", kind->scope, "event", kind->name, "severity",
			 severity_name(kind->severity));
	buf_printf(out, "\"time_ns\":%" PRIu64 ",\"attributes\":{", event->time_ns);
	array_for_each (attribute, event->attributes.items, event->attributes.n) {
		buf_append_text(out, attribute == event->attributes.items ? "" : ",");
		attribute_append_json(out, attribute);
	}
	buf_append_text(out, "}}\n");
}

void event_lines_append_csv(struct event_lines *lines, const struct event *event, struct buf *out)
{
	if (!lines->has_headings) {
		buf_append_text(out, "time_ns,collector,event,severity");
		for (size_t i = 0; i < lines->n_columns; i++)
			buf_printf(out, ",%s", lines->columns[i].attribute);
		buf_append_text(out, "\r\n");
	}
	lines->has_headings = true;
	buf_printf(out, "%" PRIu64 ",%s,%s,%s", event->time_ns, event->kind->scope, event->kind->name,
		   severity_name(event->kind->severity));
	for (size_t i = 0; i < lines->n_columns; i++) {
		const struct attribute *found = array_find(event->attributes.items,
							   event->attributes.n,
							   lines->columns[i].attribute);
		_cleanup_(buf_done) struct buf text = BUF_INIT;

		buf_append_byte(out, ',');
		if (!found)
			continue;
		attribute_append(&text, found);
		if (found->type == ATTRIBUTE_TEXT || found->type == ATTRIBUTE_TEXTS)
			buf_append_csv(out, buf_text(&text));
		else
			buf_append_text(out, buf_text(&text));
	}
	buf_append_text(out, "\r\n");
}
