/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/table.h"

#include <string.h>

#include "util/cleanup.h"

#define WIDTH_MAX	48
#define WIDTH_MIN	8 /* what a column keeps on a screen that is too narrow */
#define OVERFLOW_TEXT	"(others: over the limit)"
#define CONTAINER_WIDTH 12 /* of an id's 64 digits, as everybody shows them */

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

static bool is_overflow(const struct series *series)
{
	return series->metric->overflow == series;
}

static bool is_hidden(const struct table *table, unsigned int column)
{
	const char *name = table->columns.names[column];

	return !strcmp(name, "otel.metric.overflow") ||
	       (table->owner >= 0 && (int)column != table->owner && attribute_is_owner(name));
}

void table_find(struct table *table, const struct metric *metric)
{
	unsigned int n_owners = 0;

	columns_find(&table->columns, metric);
	for (unsigned int i = 0; i < table->columns.n; i++)
		if (attribute_is_owner(table->columns.names[i])) {
			table->owner = (int)i;
			n_owners++;
		}
	if (n_owners < 2)
		table->owner = -1;
}

void table_append_names(const struct table *table, struct buf *out)
{
	const char *before = " by ";

	for (unsigned int i = 0; i < table->columns.n; i++) {
		if (is_hidden(table, i))
			continue;
		buf_printf(out, "%s%s", before, (int)i == table->owner ? "owner" : table->columns.names[i]);
		before = ", ";
	}
}

static void match(const struct table *table, const struct series *series,
		  const struct attribute *ret_cells[ATTRIBUTES_MAX])
{
	columns_match(&table->columns, series, ret_cells);
	for (unsigned int i = 0; i < table->columns.n; i++)
		if (table->owner >= 0 && ret_cells[i] && attribute_is_owner(ret_cells[i]->name))
			ret_cells[table->owner] = ret_cells[i];
}

static void cell_text(struct buf *out, const struct attribute *cell)
{
	buf_reset(out);
	if (!cell)
		buf_append_byte(out, '-');
	else if (!strcmp(cell->name, "container.id") && strlen(cell->text) > CONTAINER_WIDTH)
		buf_append(out, cell->text, CONTAINER_WIDTH);
	else
		attribute_append(out, cell);
}

/* Of all columns together, with the blanks before each. */
static unsigned int total_width(const struct table *table)
{
	unsigned int total = 0;

	for (unsigned int i = 0; i < table->columns.n; i++)
		total += is_hidden(table, i) ? 0 : 2 + table->widths[i];
	return total;
}

/* The first column takes what is missing. */
static void widen(struct table *table, unsigned int wanted)
{
	unsigned int total = total_width(table), first = 0;

	while (first < table->columns.n && is_hidden(table, first))
		first++;
	if (first < table->columns.n && total < wanted)
		table->widths[first] += wanted - total;
}

/* The widest column gives way until the line fits. */
static void narrow(struct table *table, unsigned int limit)
{
	for (unsigned int total = total_width(table); total > limit; total--) {
		unsigned int widest = 0;

		for (unsigned int i = 1; i < table->columns.n; i++)
			widest = table->widths[i] > table->widths[widest] ? i : widest;
		if (table->widths[widest] <= WIDTH_MIN)
			return;
		table->widths[widest]--;
	}
}

int table_fit(struct table *table, struct series *const *series, size_t n, unsigned int limit)
{
	const struct attribute *cells[ATTRIBUTES_MAX];
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	bool has_overflow = false;

	memset(table->widths, 0, sizeof(table->widths));
	for (size_t row = 0; row < n; row++) {
		match(table, series[row], cells);
		has_overflow |= is_overflow(series[row]);
		for (unsigned int i = 0; i < table->columns.n && !is_overflow(series[row]); i++) {
			unsigned int width;

			if (is_hidden(table, i))
				continue;
			cell_text(&text, cells[i]);
			width = text_width(buf_text(&text));
			width = width > WIDTH_MAX ? WIDTH_MAX : width;
			table->widths[i] = width > table->widths[i] ? width : table->widths[i];
		}
	}
	if (has_overflow)
		widen(table, 2 + strlen(OVERFLOW_TEXT));
	if (limit)
		narrow(table, limit);
	return buf_error(&text);
}

static void append_cell(struct buf *out, const char *text, unsigned int width)
{
	unsigned int taken = text_width(text);

	buf_append_text(out, "  ");
	text_append_cut(out, text, width);
	buf_printf(out, "%*s", taken < width ? (int)(width - taken) : 0, "");
}

int table_append_cells(const struct table *table, const struct series *series, struct buf *out)
{
	const struct attribute *cells[ATTRIBUTES_MAX];
	_cleanup_(buf_done) struct buf text = BUF_INIT;

	if (is_overflow(series)) {
		unsigned int total = total_width(table);

		append_cell(out, OVERFLOW_TEXT, total ? total - 2 : strlen(OVERFLOW_TEXT));
		return 0;
	}
	match(table, series, cells);
	for (unsigned int i = 0; i < table->columns.n; i++) {
		if (is_hidden(table, i))
			continue;
		cell_text(&text, cells[i]);
		append_cell(out, buf_text(&text), table->widths[i]);
	}
	return buf_error(&text);
}
