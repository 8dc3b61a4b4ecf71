/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/table.h"

#include <string.h>

#include "util/cleanup.h"

#define WIDTH_MAX 48

/* One for each character of UTF-8. */
static bool is_first_byte(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

unsigned int text_width(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += is_first_byte(*text);
	return n;
}

void text_append_cut(struct buf *out, const char *text, unsigned int width)
{
	unsigned int n = 0, kept = text_width(text) > width ? width - 1 : width;
	const char *end = text;

	if (!width)
		return;
	for (; *end; end++) {
		n += is_first_byte(*end);
		if (n > kept)
			break;
	}
	buf_append(out, text, (size_t)(end - text));
	if (*end)
		buf_append_text(out, "\xe2\x80\xa6");
}

void table_find(struct table *table, const struct metric *metric)
{
	columns_find(&table->columns, metric);
	table->owner = NULL;
	for (unsigned int i = 0; i < table->columns.n; i++)
		if (attribute_is_owner(table->columns.names[i]))
			table->owner = table->owner ? "owner" : table->columns.names[i];
}

/* Has this attribute no place of its own? */
static bool is_hidden(const char *name)
{
	return attribute_is_owner(name) || !strcmp(name, "otel.metric.overflow");
}

void table_append_names(const struct table *table, struct buf *out)
{
	const char *before = " by ";

	for (unsigned int i = 0; i < table->columns.n; i++) {
		if (is_hidden(table->columns.names[i]))
			continue;
		buf_printf(out, "%s%s", before, table->columns.names[i]);
		before = ", ";
	}
	if (table->owner)
		buf_printf(out, "%s%s", before, table->owner);
}

static const struct attribute *find_owner(const struct series *series)
{
	for (unsigned int i = 0; i < series->n_attributes; i++)
		if (attribute_is_owner(series->attributes[i].name))
			return &series->attributes[i];
	return NULL;
}

static void append_value(struct buf *out, const struct attribute *attribute)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;

	if (!attribute)
		buf_append_byte(&text, '-');
	else if (!strcmp(attribute->name, "container.id")) /* of 64 digits, as everybody shows them */
		buf_printf(&text, "%.12s", attribute->text);
	else
		attribute_append(&text, attribute);
	buf_append_text(out, "  ");
	text_append_cut(out, buf_text(&text), WIDTH_MAX);
	if (buf_error(&text))
		out->error = buf_error(&text);
}

void table_append_values(const struct table *table, const struct series *series, struct buf *out)
{
	const struct attribute *cells[ATTRIBUTES_MAX];

	if (series->metric->overflow == series) {
		buf_append_text(out, "  (others: over the limit)");
		return;
	}
	columns_match(&table->columns, series, cells);
	for (unsigned int i = 0; i < table->columns.n; i++)
		if (!is_hidden(table->columns.names[i]))
			append_value(out, cells[i]);
	if (table->owner)
		append_value(out, find_owner(series));
}
