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
	*table = (struct table){ 0 };
	columns_find(&table->columns, metric);
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

/* The attributes of a series in the places of the table, NULL where it has none; their number. */
static unsigned int find_cells(const struct table *table, const struct series *series,
			       const struct attribute *ret_cells[ATTRIBUTES_MAX + 1])
{
	const struct attribute *all[ATTRIBUTES_MAX];
	unsigned int n = 0;

	columns_match(&table->columns, series, all);
	for (unsigned int i = 0; i < table->columns.n; i++)
		if (!is_hidden(table->columns.names[i]))
			ret_cells[n++] = all[i];
	if (table->owner)
		ret_cells[n++] = find_owner(series);
	return n;
}

/* Returns the width. */
static unsigned int append_cell(struct buf *out, const struct attribute *cell)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	unsigned int width;

	if (!cell)
		buf_append_byte(&text, '-');
	else if (!strcmp(cell->name, "container.id")) /* of 64 digits, as everybody shows them */
		buf_printf(&text, "%.12s", cell->text);
	else
		attribute_append(&text, cell);
	width = text_width(buf_text(&text));
	text_append_cut(out, buf_text(&text), WIDTH_MAX);
	if (buf_error(&text))
		out->error = buf_error(&text);
	return width < WIDTH_MAX ? width : WIDTH_MAX;
}

void table_widen(struct table *table, const struct series *series)
{
	const struct attribute *cells[ATTRIBUTES_MAX + 1];
	unsigned int n = find_cells(table, series, cells);
	_cleanup_(buf_done) struct buf text = BUF_INIT;

	for (unsigned int i = 0; i < n && series->metric->overflow != series; i++) {
		unsigned int width = append_cell(&text, cells[i]);

		table->widths[i] = width > table->widths[i] ? width : table->widths[i];
	}
}

void table_append_values(const struct table *table, const struct series *series, struct buf *out)
{
	const struct attribute *cells[ATTRIBUTES_MAX + 1];
	unsigned int n = find_cells(table, series, cells);

	if (series->metric->overflow == series) {
		buf_append_text(out, "  (others: over the limit)");
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		buf_append_text(out, "  ");
		buf_printf(out, "%*s", (int)(table->widths[i] - append_cell(out, cells[i])), "");
	}
}
