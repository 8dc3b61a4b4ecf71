/* SPDX-License-Identifier: Apache-2.0 */
#include "view/grid.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metric/bounds.h"
#include "metric/decimal.h"
#include "util/array.h"
#include "view/columns.h"
#include "view/histogram.h"

#define CONTAINER_WIDTH 12

const char *grid_heading(const char *attribute)
{
	/* What does not say alone what it is. */
	static const char *const general[] = { "address", "code", "from", "id", "name", "number", "port",
					       "state", "time", "to", "type" };
	const char *last = strrchr(attribute, '.');

	if (attribute_owner(attribute))
		return "unit";
	if (!last || !array_find(general, ARRAY_SIZE(general), last + 1))
		return last ? last + 1 : attribute;
	while (last > attribute && last[-1] != '.')
		last--;
	return last;
}

enum quantity { TOTAL, RATE, SUM, MEAN, QUANTILE, MAX };

/* The columns after those of attributes. */
static const struct number_column {
	const char *heading, *about;
	unsigned int kinds; /* a set of enum metric_kind */
	enum quantity quantity;
	double fraction; /* of a quantile */
} number_columns[GRID_NUMBERS_MAX] = {
	{ "total", "of what is counted", 1 << METRIC_SUM, TOTAL, 0 },
	{ "value", "at this time", 1 << METRIC_GAUGE, TOTAL, 0 },
	{ "count", "how many values", 1 << METRIC_HISTOGRAM, TOTAL, 0 },
	{ "rate", "per second; of a time in % of a CPU", 1 << METRIC_SUM | 1 << METRIC_HISTOGRAM, RATE, 0 },
	{ "sum", "of all values", 1 << METRIC_HISTOGRAM, SUM, 0 },
	{ "mean", "of all values", 1 << METRIC_HISTOGRAM, MEAN, 0 },
	{ "p50", "half of the values are below", 1 << METRIC_HISTOGRAM, QUANTILE, 0.5 },
	{ "p90", "90 % of the values are below", 1 << METRIC_HISTOGRAM, QUANTILE, 0.9 },
	{ "p99", "99 % of the values are below", 1 << METRIC_HISTOGRAM, QUANTILE, 0.99 },
	{ "max", "no value is above, or some are", 1 << METRIC_HISTOGRAM, MAX, 0 },
};

size_t grid_list_numbers(unsigned int kinds, const char **ret_headings)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(number_columns); i++)
		if (number_columns[i].kinds & kinds)
			ret_headings[n++] = number_columns[i].heading;
	return n;
}

struct layout {
	const struct metric *metric;
	enum grid_span span;
	double seconds;
	struct columns columns; /* attributes; of owners only the first one is shown, for all */
	uint32_t first, end;	/* of all buckets that hold something */
};

static const struct numbers *shown_numbers(const struct layout *layout, const struct series *series)
{
	bool is_interval = layout->span == GRID_INTERVAL && layout->metric->kind != METRIC_GAUGE;

	return is_interval ? &series->delta : &series->total;
}

/* NAN: it has none. */
static double number_of(const struct layout *layout, const struct series *series,
			const struct number_column *column, const char **ret_before)
{
	const struct metric *metric = layout->metric;
	const struct numbers *total = shown_numbers(layout, series);
	const struct numbers *growth = layout->span == GRID_WHOLE ? &series->total : &series->delta;
	bool is_histogram = metric->kind == METRIC_HISTOGRAM, is_open;
	double divisor = is_histogram ? 1 : (double)metric->divisor;
	uint32_t first = 0, end = metric->layout.n_buckets;

	if (column->quantity == TOTAL && metric->kind == METRIC_GAUGE)
		return (double)(int64_t)total->sum / divisor;
	if (column->quantity == TOTAL)
		return (double)(is_histogram ? total->count : total->sum) / divisor;
	if (column->quantity == RATE)
		return (double)(is_histogram ? growth->count : growth->sum) / divisor /
		       layout->seconds;
	if (!total->count || (column->quantity <= MEAN && metric->layout.has_no_sum))
		return NAN;
	if (column->quantity <= MEAN)
		return (double)total->sum / (double)metric->divisor /
		       (column->quantity == MEAN ? (double)total->count : 1);
	if (column->quantity == QUANTILE)
		return bounds_quantile(metric, total, column->fraction);
	bounds_trim(total->bucket, &first, &end);
	/* then what the last bucket begins with */
	is_open = end > 1 && end == metric->layout.n_buckets;
	*ret_before = is_open ? "> " : "\xe2\x89\xa4 ";
	return bounds_upper(metric, end - 1 - is_open);
}

void grid_append_rate(struct buf *out, double value, const char *unit)
{
	bool is_time = !strcmp(unit, "s");
	double shown = is_time ? value * 100 : value;

	decimal_human(out, shown, is_time ? "" : unit);
	buf_append_text(out, is_time ? "%" : "/s");
}

static void end_number(struct grid *grid, const struct layout *layout, const struct series *series,
		       const struct number_column *column)
{
	const struct metric *metric = layout->metric;
	bool is_count = metric->kind == METRIC_HISTOGRAM && column->quantity <= RATE;
	const char *unit = is_count ? "" : metric->unit, *before = "";
	bool is_human = !strcmp(unit, "s") || !strcmp(unit, "By");
	uint64_t divisor = is_count ? 1 : metric->divisor;
	const struct numbers *total = shown_numbers(layout, series);
	double value = number_of(layout, series, column, &before);
	enum level level;

	buf_append_text(&grid->text, before);
	if (isnan(value))
		buf_append_byte(&grid->text, '-');
	else if (column->quantity == TOTAL && (!is_human || metric->kind == METRIC_GAUGE))
		decimal_quotient(&grid->text, is_count ? total->count : total->sum, divisor,
				 metric->kind == METRIC_GAUGE);
	else if (column->quantity == RATE)
		grid_append_rate(&grid->text, value, unit);
	else
		decimal_human(&grid->text, value, unit);
	level = isnan(value) || !value ? LEVEL_NONE : LEVEL_PLAIN;
	grid_end_cell(grid, isnan(value) ? -INFINITY : value, level);
}

/* The unit first, then the process, and when it began last. */
static int rank_attribute(const char *name)
{
	static const char *const known[] = { "process.creation.time", "process.pid", "process.executable.name" };
	const char *const *found = array_find(known, ARRAY_SIZE(known), name);

	if (attribute_owner(name))
		return -3;
	if (found == &known[0])
		return 1;
	return found ? (int)(known - found) : 0;
}

static int by_rank(const void *left, const void *right)
{
	const char *a = *(const char *const *)left, *b = *(const char *const *)right;

	return rank_attribute(a) - rank_attribute(b) ?: strcmp(a, b);
}

/*
 * When the process began comes after the numbers: the last column is the first to go if a line is
 * too long.
 */
static bool is_shown(const struct columns *columns, size_t i, bool is_last)
{
	const char *name = columns->names[i];

	return (rank_attribute(name) > 0) == is_last && strcmp(name, "otel.metric.overflow") &&
	       strcmp(name, "bpfpush.overflow.reason") && !(i && attribute_owner(name));
}

static void find_layout(struct layout *layout, const struct metric *metric)
{
	struct series *series;

	layout->first = UINT32_MAX;
	metric_for_each_series(series, metric) {
		uint32_t first = 0, end = metric->layout.n_buckets;

		if (metric->kind != METRIC_HISTOGRAM || !shown_numbers(layout, series)->count)
			continue;
		bounds_trim(shown_numbers(layout, series)->bucket, &first, &end);
		layout->first = first < layout->first ? first : layout->first;
		layout->end = end > layout->end ? end : layout->end;
	}
}

static void add_attribute_columns(struct grid *grid, const struct columns *columns, bool is_last)
{
	for (size_t i = 0; i < columns->n; i++)
		if (is_shown(columns, i, is_last))
			grid_add_column(grid, grid_heading(columns->names[i]),
					columns->names[i], true);
}

static void add_columns(struct grid *grid, const struct layout *layout)
{
	unsigned int kind = 1U << layout->metric->kind;

	add_attribute_columns(grid, &layout->columns, false);
	if (!grid->n_columns &&
	    (layout->metric->overflow[OVERFLOW_TABLE] || layout->metric->overflow[OVERFLOW_SERIES]))
		grid_add_column(grid, "", NULL, false); /* for what an overflow series is called */
	for (size_t i = 0; i < ARRAY_SIZE(number_columns); i++)
		if (number_columns[i].kinds & kind)
			grid_add_column(grid, number_columns[i].heading,
					number_columns[i].about, true);
	histogram_axis(layout->metric, layout->first, layout->end, grid->axis, sizeof(grid->axis));
	if (layout->metric->kind == METRIC_HISTOGRAM)
		grid_add_column(grid, grid->axis, "how many values, from the least to the greatest", false);
	add_attribute_columns(grid, &layout->columns, true);
}

void grid_end_attribute(struct grid *grid, const struct series *series,
			const struct attribute *found, const char *none)
{
	size_t i = grid->n_ended % grid->n_columns;
	double number = found ? (double)found->number : -INFINITY;

	if (found && found->type != ATTRIBUTE_NUMBER)
		grid->columns[i].is_number = false;
	if (!i && series_is_overflow(series))
		buf_append_text(&grid->text, series == series->metric->overflow[OVERFLOW_TABLE] ?
				"(others: no place in the table)" : "(others: over the limit)");
	else if (!found)
		buf_append_text(&grid->text, none);
	else if (!strcmp(found->name, "container.id")) /* of 64 digits, as everybody shows them */
		buf_append(&grid->text, found->text, strnlen(found->text, CONTAINER_WIDTH));
	else
		attribute_append(&grid->text, found);
	if (found && attribute_owner(found->name) && !strcmp(found->text, "/"))
		buf_append_text(&grid->text, " (no unit)");
	grid_end_cell(grid, number, found ? LEVEL_PLAIN : LEVEL_NONE);
}

static void end_attribute(struct grid *grid, const struct series *series, const char *name)
{
	const struct attribute *found = array_find(series->attributes, series->n_attributes, name);

	if (!found && attribute_owner(name))
		found = series_owner(series);
	/* Processes that live for less than an interval are counted together. */
	grid_end_attribute(grid, series, found,
			   !strcmp(name, "process.pid") && series_owner(series) ? "(brief)" : "-");
}

static void add_series(struct grid *grid, const struct layout *layout, const struct series *series)
{
	const struct columns *columns = &layout->columns;
	unsigned int kind = 1U << layout->metric->kind;

	grid_add_row(grid, series);
	for (size_t i = 0; i < columns->n; i++)
		if (is_shown(columns, i, false))
			end_attribute(grid, series, columns->names[i]);
	if (!*grid->columns[0].heading)
		end_attribute(grid, series, "");
	for (size_t i = 0; i < ARRAY_SIZE(number_columns); i++)
		if (number_columns[i].kinds & kind)
			end_number(grid, layout, series, &number_columns[i]);
	if (layout->metric->kind == METRIC_HISTOGRAM) {
		histogram_bars(shown_numbers(layout, series)->bucket, layout->first, layout->end,
			       &grid->text);
		grid_end_cell(grid, 0, LEVEL_PLAIN);
	}
	for (size_t i = 0; i < columns->n; i++)
		if (is_shown(columns, i, true))
			end_attribute(grid, series, columns->names[i]);
}

/* What series are sorted by: of histograms the sum, which says more than the count. */
static uint64_t weigh_series(const struct series *series, const struct numbers *numbers)
{
	const struct metric *metric = series->metric;

	return metric->kind == METRIC_HISTOGRAM && metric->layout.has_no_sum ? numbers->count :
	       numbers->sum;
}

/* The overflow series first, then the growth, the total, and for an order that stays, the hash. */
static int by_growth(const void *left_, const void *right_)
{
	const struct series *left = *(struct series *const *)left_,
		*right = *(struct series *const *)right_;
	const uint64_t keys[][2] = {
		{ series_is_overflow(left), series_is_overflow(right) },
		{ weigh_series(left, &left->delta), weigh_series(right, &right->delta) },
		{ weigh_series(left, &left->total), weigh_series(right, &right->total) },
		{ left->hash, right->hash },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] > keys[i][1] ? -1 : 1;
	return 0;
}

static int by_total(const void *left, const void *right)
{
	const struct series *const *series[] = { left, right };
	uint64_t weights[ARRAY_SIZE(series)];

	for (size_t i = 0; i < ARRAY_SIZE(series); i++) {
		const struct series *one = *series[i];

		weights[i] = series_is_overflow(one) ? UINT64_MAX : weigh_series(one, &one->total);
	}
	return (weights[0] < weights[1]) - (weights[0] > weights[1]) ?: by_growth(left, right);
}

/* "{call}" is UCUM's way to write a plain word. What the numbers lack stands next to it. */
static void append_title(struct buf *out, const struct metric *metric)
{
	size_t size = strlen(metric->unit),
		at = metric->unit[0] == '{' && metric->unit[size - 1] == '}';

	buf_printf(out, "%s (%.*s)", metric->name, (int)(size - 2 * at), metric->unit + at);
	if (!metric->loss.missed)
		return;
	buf_append_text(out, ", ");
	loss_append(&metric->loss, out);
	buf_append_text(out, " missed");
}

void grid_of_metric(struct grid *grid, const struct metric *metric, uint64_t elapsed_ns,
		    enum grid_span span)
{
	struct layout layout = {
		.metric = metric, .span = span,
				 .seconds = elapsed_ns ? (double)elapsed_ns / 1e9 : NAN,
	};
	_cleanup_(freep) struct series **sorted = NULL;
	size_t n;

	grid_begin(grid);
	append_title(&grid->title, metric);
	find_layout(&layout, metric);
	sorted = columns_sort(metric, span == GRID_WHOLE ? by_total : by_growth, &n);
	if (!sorted || columns_add(&layout.columns, metric, by_rank))
		grid->text.error = -ENOMEM;
	add_columns(grid, &layout);
	for (size_t i = 0; i < n; i++)
		add_series(grid, &layout, sorted[i]);
	columns_done(&layout.columns);
}
