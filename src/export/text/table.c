/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

#define WIDTH_MAX	48
#define CONTAINER_WIDTH 12

static void add_name(struct columns *columns, const char *name)
{
	unsigned int at = 0;

	while (at < columns->n && strcmp(columns->names[at], name) < 0)
		at++;
	if ((at < columns->n && !strcmp(columns->names[at], name)) || columns->n == ATTRIBUTES_MAX)
		return;
	memmove(&columns->names[at + 1], &columns->names[at], (columns->n - at) * sizeof(columns->names[0]));
	columns->names[at] = name;
	columns->n++;
}

size_t columns_count(const struct metric *metric)
{
	struct series *series;
	size_t n = 0;

	metric_for_each_series(series, metric)
		n++;
	return n;
}

void columns_find(struct columns *columns, const struct metric *metric)
{
	struct series *series;

	columns->n = 0;
	metric_for_each_series(series, metric)
		for (unsigned int i = 0; i < series->n_attributes; i++)
			add_name(columns, series->attributes[i].name);
}

void columns_match(const struct columns *columns, const struct series *series,
		   const struct attribute *ret_cells[ATTRIBUTES_MAX])
{
	unsigned int at = 0;

	for (unsigned int i = 0; i < columns->n; i++) {
		ret_cells[i] = NULL;
		while (at < series->n_attributes && strcmp(series->attributes[at].name, columns->names[i]) < 0)
			at++;
		if (at < series->n_attributes && !strcmp(series->attributes[at].name, columns->names[i]))
			ret_cells[i] = &series->attributes[at];
	}
}

struct series **columns_sort(const struct metric *metric, columns_order_fn *order, struct buf *out, size_t *ret_n)
{
	struct series *series, **sorted = calloc(metric->n_series + 1, sizeof(struct series *));

	*ret_n = 0;
	if (!sorted) {
		out->error = -ENOMEM;
		return NULL;
	}
	metric_for_each_series(series, metric)
		sorted[(*ret_n)++] = series;
	qsort(sorted, *ret_n, sizeof(struct series *), order);
	return sorted;
}

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
	unsigned int n = 0;
	const char *end = text;

	if (text_width(text) <= width) {
		buf_append_text(out, text);
		return;
	}
	while (*end && (n += is_first_byte(*end)) < width)
		end++;
	buf_append(out, text, (size_t)(end - text));
	if (width)
		buf_append_text(out, "\xe2\x80\xa6");
}

/* What an overflow series has in place of attributes; NULL: series is none. */
static const char *overflow_text(const struct series *series)
{
	if (!series_is_overflow(series))
		return NULL;
	return series == series->metric->overflow[OVERFLOW_TABLE] ? "  (others: no place in the table)" :
								    "  (others: over the limit)";
}

void table_find(struct table *table, const struct metric *metric)
{
	*table = (struct table){ 0 };
	columns_find(&table->columns, metric);
	for (unsigned int i = 0; i < table->columns.n; i++) {
		const char *name = table->columns.names[i];

		if (attribute_owner(name)) {
			table->owner = table->owner ? "owner" : name;
			table->owners[table->n_owners++] = i;
		} else if (strcmp(name, "otel.metric.overflow") && strcmp(name, "bpfpush.overflow.reason")) {
			table->places[table->n_places++] = i;
		}
	}
}

void table_append_names(const struct table *table, struct buf *out)
{
	const char *before = " by ";

	for (unsigned int i = 0; i < table->n_places; i++) {
		buf_printf(out, "%s%s", before, table->columns.names[table->places[i]]);
		before = ", ";
	}
	if (table->owner)
		buf_printf(out, "%s%s", before, table->owner);
}

/* The attributes of a series in the places of the table, NULL where it has none; their number. */
static unsigned int find_cells(const struct table *table, const struct series *series,
			       const struct attribute *ret_cells[ATTRIBUTES_MAX + 1])
{
	const struct attribute *all[ATTRIBUTES_MAX], *owner = NULL;

	columns_match(&table->columns, series, all);
	for (unsigned int i = 0; i < table->n_places; i++)
		ret_cells[i] = all[table->places[i]];
	for (unsigned int i = 0; i < table->n_owners; i++)
		owner = all[table->owners[i]] ?: owner;
	ret_cells[table->n_places] = owner;
	return table->n_places + (table->owner != NULL);
}

/* Without memory to measure a cell, its column is too narrow. */
static void append_blanks(struct buf *out, unsigned int width, unsigned int wanted)
{
	unsigned int n = wanted > width ? wanted - width : 0;
	uint8_t *at = buf_reserve(out, n);

	if (!at)
		return;
	memset(at, ' ', n);
	out->size += n;
}

/* Returns the width. */
static unsigned int append_cell(struct buf *out, const struct attribute *cell)
{
	size_t start = out->size;
	unsigned int width;

	if (!cell)
		buf_append_byte(out, '-');
	else if (!strcmp(cell->name, "container.id")) /* of 64 digits, as everybody shows them */
		buf_append(out, cell->text, strnlen(cell->text, CONTAINER_WIDTH));
	else
		attribute_append(out, cell);
	buf_text(out); /* ends the text */
	if (buf_error(out))
		return 0;
	for (char *line = (char *)out->data + start; (line = strchr(line, '\n'));)
		*line = ' ';
	width = text_width((const char *)out->data + start);
	if (width > WIDTH_MAX) {
		_cleanup_(freep) char *whole = strdup((const char *)out->data + start);

		out->size = start;
		text_append_cut(out, whole ?: "", WIDTH_MAX);
		if (!whole)
			out->error = -ENOMEM;
	}
	return width < WIDTH_MAX ? width : WIDTH_MAX;
}

void table_widen(struct table *table, const struct series *series, struct buf *scratch)
{
	const struct attribute *cells[ATTRIBUTES_MAX + 1];
	unsigned int n = find_cells(table, series, cells), width = 0;
	const char *overflow = overflow_text(series);

	for (unsigned int i = 0; i < n && !overflow; i++) {
		unsigned int needed;

		buf_reset(scratch);
		needed = append_cell(scratch, cells[i]);
		table->widths[i] = needed > table->widths[i] ? needed : table->widths[i];
		width += 2 + table->widths[i];
	}
	if (overflow)
		width = text_width(overflow);
	table->width = width > table->width ? width : table->width;
}

void table_append_values(const struct table *table, const struct series *series, struct buf *out)
{
	const struct attribute *cells[ATTRIBUTES_MAX + 1];
	unsigned int n = find_cells(table, series, cells), width = 0;
	const char *overflow = overflow_text(series);

	if (overflow) {
		buf_append_text(out, overflow);
		width = text_width(overflow);
		n = 0;
	}
	for (unsigned int i = 0; i < n; i++) {
		buf_append_text(out, "  ");
		append_blanks(out, append_cell(out, cells[i]), table->widths[i]);
		width += 2 + table->widths[i];
	}
	append_blanks(out, width, table->width);
}
