/* SPDX-License-Identifier: Apache-2.0 */
#include "view/heat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "metric/bounds.h"
#include "metric/decimal.h"
#include "util/duration.h"

struct heat {
	struct metric metric; /* without series */
	size_t room, n_added; /* columns; the i-th is at i % room */
	bool is_of_many;      /* several series of one collection have values */
	uint64_t *ends_ns;
	uint64_t *counts;
};

struct heat *heat_new(const struct metric *metric, size_t n_columns)
{
	struct heat *heat = calloc(1, sizeof(*heat));

	if (!heat)
		return NULL;
	heat->room = n_columns > 2 ? n_columns : 2;
	heat->metric = (struct metric){ .name = metric->name, .unit = metric->unit,
					.divisor = metric->divisor, .layout = metric->layout };
	heat->ends_ns = calloc(heat->room, sizeof(*heat->ends_ns));
	heat->counts = calloc(heat->room * metric->layout.n_buckets + 1, sizeof(*heat->counts));
	return heat->ends_ns && heat->counts ? heat : heat_free(heat);
}

struct heat *heat_free(struct heat *heat)
{
	if (!heat)
		return NULL;
	free(heat->ends_ns);
	free(heat->counts);
	free(heat);
	return NULL;
}

void heat_append_name(struct buf *out, const struct heat *heat)
{
	buf_printf(out, "%s%s", heat->metric.name, heat->is_of_many ? ", all series together" : "");
}

static uint64_t end_ns(const struct heat *heat, size_t column)
{
	return heat->ends_ns[column % heat->room];
}

static uint64_t *column_buckets(const struct heat *heat, size_t column)
{
	return heat->counts + column % heat->room * heat->metric.layout.n_buckets;
}

static size_t oldest_column(const struct heat *heat)
{
	return heat->n_added > heat->room ? heat->n_added - heat->room : 0;
}

static bool is_rest(const struct heat *heat, uint64_t time_ns)
{
	size_t n = heat->n_added;

	return n >= 2 &&
	       (time_ns - end_ns(heat, n - 1)) * 2 < end_ns(heat, n - 1) - end_ns(heat, n - 2);
}

void heat_add(struct heat *heat, const struct metric *metric, uint64_t time_ns)
{
	uint32_t n_buckets = heat->metric.layout.n_buckets;
	struct series *series;
	uint64_t *bucket;
	size_t n_series = 0;

	if (!is_rest(heat, time_ns))
		memset(column_buckets(heat, heat->n_added++), 0, n_buckets * sizeof(*bucket));
	bucket = column_buckets(heat, heat->n_added - 1);
	heat->ends_ns[(heat->n_added - 1) % heat->room] = time_ns;
	metric_for_each_series(series, metric) {
		n_series += series->total.count > 0;
		for (uint32_t i = 0; i < n_buckets; i++)
			bucket[i] += series->delta.bucket[i];
	}
	heat->is_of_many |= n_series > 1;
}

/* The buckets that hold something, among those of from on; *first is at least *end if none does. */
static void find_range(const struct heat *heat, uint32_t from, uint32_t *first, uint32_t *end)
{
	*first = heat->metric.layout.n_buckets;
	*end = 0;
	for (size_t column = oldest_column(heat); column < heat->n_added; column++) {
		uint32_t low = from, high = heat->metric.layout.n_buckets;

		bounds_trim(column_buckets(heat, column), &low, &high);
		if (low == high)
			continue;
		*first = low < *first ? low : *first;
		*end = high > *end ? high : *end;
	}
}

bool heat_is_empty(const struct heat *heat)
{
	uint32_t first, end;

	find_range(heat, 0, &first, &end);
	return first >= end;
}

static uint64_t begin_ns(const struct heat *heat, size_t column)
{
	if (column > oldest_column(heat))
		return end_ns(heat, column - 1);
	/* It is not known: as long as the next one. */
	return column + 1 < heat->n_added ? 2 * end_ns(heat, column) - end_ns(heat, column + 1) :
	       end_ns(heat, column);
}

static uint32_t row_bucket(const struct heat_cells *cells, size_t row)
{
	return row ? cells->second + (uint32_t)(row - 1) * cells->step : cells->first;
}

static void fill_cells(struct heat_cells *cells, const struct heat *heat, size_t group)
{
	uint32_t n_buckets = heat->metric.layout.n_buckets;
	size_t first_group = oldest_column(heat) / group;

	for (size_t column = oldest_column(heat); column < heat->n_added; column++) {
		size_t at = column / group - first_group;
		const uint64_t *bucket = column_buckets(heat, column);

		if (column == oldest_column(heat) || !(column % group))
			cells->times_ns[at] = begin_ns(heat, column);
		cells->times_ns[at + 1] = end_ns(heat, column);
		for (size_t row = 0; row < cells->n_rows; row++) {
			uint64_t *cell = &cells->counts[row * cells->n_columns + at];

			for (uint32_t i = row_bucket(cells, row);
			     i < row_bucket(cells, row + 1) && i < n_buckets; i++)
				*cell += bucket[i];
			cells->most = *cell > cells->most ? *cell : cells->most;
		}
	}
}

int heat_cells_init(struct heat_cells *cells, const struct heat *heat, size_t columns_max,
		    size_t rows_max)
{
	size_t group = 0, n_zeros = 0; /* rows */
	uint32_t end, last = 0;

	*cells = (struct heat_cells){ .step = 1, .stretch = columns_max > heat->room ?
							    columns_max / heat->room : 1 };
	find_range(heat, 0, &cells->first, &end);
	if (cells->first >= end)
		return 0;
	/* Groups stay what they are while columns come and go. */
	do {
		group++;
		cells->n_columns = (heat->n_added - 1) / group - oldest_column(heat) / group + 1;
	} while (cells->n_columns > (columns_max ?: 1));
	if (!cells->first && !heat->metric.layout.bounds && rows_max > 1)
		find_range(heat, 1, &cells->second, &last);
	n_zeros = last > 0;
	if (!n_zeros)
		cells->second = cells->first;
	while ((end - cells->second - 1) / cells->step + n_zeros >= (rows_max ?: 1))
		cells->step++;
	cells->n_rows = (end - cells->second - 1) / cells->step + 1 + n_zeros;
	cells->second += n_zeros ? 0 : cells->step;
	cells->counts = calloc((cells->n_rows + 1) * cells->n_columns + 1, sizeof(*cells->counts));
	if (!cells->counts) {
		cells->n_rows = 0;
		return -ENOMEM;
	}
	cells->times_ns = cells->counts + cells->n_rows * cells->n_columns;
	fill_cells(cells, heat, group);
	return 0;
}

void heat_cells_done(struct heat_cells *cells)
{
	free(cells->counts);
	*cells = (struct heat_cells){ 0 };
}

unsigned int heat_level(const struct heat_cells *cells, uint64_t count)
{
	if (!count || cells->most <= 1)
		return count ? HEAT_LEVELS : 0;
	return 1 + (unsigned int)((HEAT_LEVELS - 1) * log((double)count) /
				  log((double)cells->most) + 0.5);
}

void heat_append_limit(struct buf *out, const struct heat *heat,
		       const struct heat_cells *cells, size_t row)
{
	uint32_t bucket = row_bucket(cells, row), n_buckets = heat->metric.layout.n_buckets;

	if (bucket >= n_buckets)
		buf_append_text(out, "more");
	else
		decimal_human(out, bucket ? bounds_upper(&heat->metric, bucket - 1) : 0,
			      heat->metric.unit);
}

void heat_append_time(struct buf *out, uint64_t time_ns, int n_digits)
{
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	char digits[16];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	snprintf(digits, sizeof(digits), ".%09u", (unsigned int)(time_ns % NS_PER_S));
	buf_printf(out, "%02d:%02d:%02d%.*s", tm.tm_hour, tm.tm_min, tm.tm_sec, n_digits ? n_digits + 1 : 0, digits);
}
