/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/layout.h"

#include <string.h>

#include "export/text/text.h"
#include "util/cleanup.h"

#define WIDTH_MAX	48
#define WIDTH_MIN	8 /* what a column keeps on a screen that is too narrow */
#define OVERFLOW_TEXT	"(others: over the limit)"
#define CONTAINER_WIDTH 12 /* of an id's 64 digits, as everybody shows them */

static bool is_hidden(const struct layout *layout, unsigned int column)
{
	return layout->owner >= 0 && (int)column != layout->owner && attribute_is_owner(layout->columns.names[column]);
}

static bool is_overflow(const struct series *series)
{
	return series->metric->overflow == series;
}

/* The series that holds what the others have no room for says so in words, not in a column. */
static void drop_overflow_column(struct columns *columns)
{
	for (unsigned int i = 0; i < columns->n; i++) {
		if (strcmp(columns->names[i], "otel.metric.overflow"))
			continue;
		columns->n--;
		memmove(&columns->names[i], &columns->names[i + 1],
			(columns->n - i) * sizeof(columns->names[0]));
		return;
	}
}

void layout_find(struct layout *layout, const struct metric *metric)
{
	unsigned int n_owners = 0;

	columns_find(&layout->columns, metric);
	if (metric->overflow)
		drop_overflow_column(&layout->columns);
	layout->owner = -1;
	for (unsigned int i = 0; i < layout->columns.n; i++)
		if (attribute_is_owner(layout->columns.names[i])) {
			layout->owner = (int)i;
			n_owners++;
		}
	if (n_owners < 2)
		layout->owner = -1;
}

void layout_append_names(const struct layout *layout, struct buf *out)
{
	const char *before = " by ";

	for (unsigned int i = 0; i < layout->columns.n; i++) {
		if (is_hidden(layout, i))
			continue;
		buf_printf(out, "%s%s", before, (int)i == layout->owner ? "owner" : layout->columns.names[i]);
		before = ", ";
	}
}

static void match(const struct layout *layout, const struct series *series,
		  const struct attribute *ret_cells[ATTRIBUTES_MAX])
{
	columns_match(&layout->columns, series, ret_cells);
	for (unsigned int i = 0; i < layout->columns.n; i++)
		if (is_hidden(layout, i) && ret_cells[i])
			ret_cells[layout->owner] = ret_cells[i];
}

static void cell_text(struct buf *out, const struct attribute *cell)
{
	buf_reset(out);
	if (!cell)
		buf_append_byte(out, '-');
	else if (cell->type == ATTRIBUTE_TEXT && !strcmp(cell->name, "container.id") &&
		 strlen(cell->text) > CONTAINER_WIDTH)
		buf_append(out, cell->text, CONTAINER_WIDTH);
	else
		columns_append_cell(out, cell);
}

/* Of all columns together, with the blanks before each. */
static unsigned int total_width(const struct layout *layout)
{
	unsigned int total = 0;

	for (unsigned int i = 0; i < layout->columns.n; i++)
		total += is_hidden(layout, i) ? 0 : 2 + layout->widths[i];
	return total;
}

/* Room for the words across all columns. */
static void widen_for_overflow(struct layout *layout)
{
	unsigned int total = total_width(layout), wanted = 2 + sizeof(OVERFLOW_TEXT) - 1, i = 0;

	while (i < layout->columns.n && is_hidden(layout, i))
		i++;
	if (i < layout->columns.n && total < wanted)
		layout->widths[i] += wanted - total;
}

/* The widest column gives way until the line fits. */
static void narrow(struct layout *layout, unsigned int limit)
{
	unsigned int total = total_width(layout), widest;

	for (; total > limit; total--) {
		widest = 0;
		for (unsigned int i = 1; i < layout->columns.n; i++)
			widest = layout->widths[i] > layout->widths[widest] ? i : widest;
		if (layout->widths[widest] <= WIDTH_MIN)
			return;
		layout->widths[widest]--;
	}
}

int layout_fit(struct layout *layout, struct series *const *series, size_t n, unsigned int limit)
{
	const struct attribute *cells[ATTRIBUTES_MAX];
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	bool has_overflow = false;

	memset(layout->widths, 0, sizeof(layout->widths));
	for (size_t row = 0; row < n; row++) {
		if (is_overflow(series[row])) {
			has_overflow = true;
			continue;
		}
		match(layout, series[row], cells);
		for (unsigned int i = 0; i < layout->columns.n; i++) {
			unsigned int width;

			if (is_hidden(layout, i))
				continue;
			cell_text(&text, cells[i]);
			width = text_width(buf_text(&text));
			width = width > WIDTH_MAX ? WIDTH_MAX : width;
			layout->widths[i] = width > layout->widths[i] ? width : layout->widths[i];
		}
	}
	if (has_overflow)
		widen_for_overflow(layout);
	if (limit)
		narrow(layout, limit);
	return buf_error(&text);
}

static void append_overflow(const struct layout *layout, struct buf *out)
{
	unsigned int size = sizeof(OVERFLOW_TEXT) - 1, total = total_width(layout);
	unsigned int room = total ? total - 2 : size;

	text_append_blanks(out, 2);
	text_append_cut(out, OVERFLOW_TEXT, room);
	text_append_blanks(out, size < room ? room - size : 0);
}

int layout_append_cells(const struct layout *layout, const struct series *series, struct buf *out)
{
	const struct attribute *cells[ATTRIBUTES_MAX];
	_cleanup_(buf_done) struct buf text = BUF_INIT;

	if (is_overflow(series)) {
		append_overflow(layout, out);
		return 0;
	}
	match(layout, series, cells);
	for (unsigned int i = 0; i < layout->columns.n; i++) {
		unsigned int width;

		if (is_hidden(layout, i))
			continue;
		cell_text(&text, cells[i]);
		width = text_width(buf_text(&text));
		text_append_blanks(out, 2);
		text_append_cut(out, buf_text(&text), layout->widths[i]);
		text_append_blanks(out, width < layout->widths[i] ? layout->widths[i] - width : 0);
	}
	return buf_error(&text);
}
