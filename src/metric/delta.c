/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps are never reset, so each reading shows totals, and what goes to a series is the difference
 * to the reading before. Sums and histograms add it to the series' total and delta. A gauge begins
 * each collection at 0 and is given what its cells hold now (or, for a tally, what they have grown
 * by).
 *
 * Decoding a key into attributes and finding the series is expensive, so a row does it once and
 * keeps the series. Two kinds of answers are not for life: the overflow series, given up as soon as
 * there is room, and a series whose names were not all known.
 */
#include "metric/delta.h"

#include <string.h>

#include "metric/series.h"

uint64_t delta_grown(uint64_t now, uint64_t before, unsigned int bits)
{
	uint64_t mask = bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;
	uint64_t grown = (now - before) & mask;

	return grown <= mask / 2 ? grown : now & mask;
}

/*
 * What a gauge of so many bits holds: cells are sums over CPUs modulo 2^64, of which each may have
 * wrapped (begun on one, ended on another), so only the low bits count.
 */
static uint64_t gauge_level(uint64_t cell, unsigned int bits, bool is_signed)
{
	unsigned int unused = 64 - bits;

	return is_signed ? (uint64_t)((int64_t)(cell << unused) >> unused) :
	       cell << unused >> unused;
}

/* A tally that becomes smaller was subtracted from: it has not begun at 0 again. */
static uint64_t cell_growth(const struct delta_metric *of, uint64_t now, uint64_t before)
{
	if (of->is_tally && of->is_signed)
		return gauge_level(now - before, of->sum_bits, true);
	return delta_grown(now, before, of->sum_bits);
}

/* One row while it is being computed. */
struct visit {
	const struct delta *delta;
	const void *key; /* NULL: the overflow row */
	const uint64_t *now;
	uint64_t *before;
	struct series **series;
	uint64_t previous_ns;
};

/*
 * If there is room, the row leaves the overflow series, and gets one of its own when it grows next.
 */
static void leave_overflow(const struct visit *visit, uint32_t m)
{
	const struct metric *metric = visit->delta->metrics[m].metric;
	struct series **kept = &visit->series[m];

	if (*kept != metric->overflow[OVERFLOW_SERIES] || !budget_has_room(metric->budget))
		return;
	series_put(*kept);
	*kept = NULL;
}

static int find_series(const struct visit *visit, uint32_t m, struct series **ret_series)
{
	const struct delta *delta = visit->delta;
	struct metric *metric = delta->metrics[m].metric;
	struct attributes attributes;
	int r, err;

	if (!visit->key)
		return series_get_overflow(metric, OVERFLOW_TABLE, visit->previous_ns, ret_series);
	attributes_init(&attributes);
	r = delta->attributes(delta->user, visit->key, &delta->metrics[m], &attributes);
	if (r < 0 || r & DELTA_UNWANTED)
		return r;
	err = series_get(metric, &attributes, visit->previous_ns, ret_series);
	if (err)
		return err;
	(*ret_series)->is_provisional = r > 0 && !series_is_overflow(*ret_series);
	return 0;
}

/* Sees to it that visit->series[m] is the series of the row for one metric. */
static int keep_series(const struct visit *visit, uint32_t m)
{
	struct series **kept = &visit->series[m], *found;
	int err;

	if (*kept && !(*kept)->is_provisional)
		return 0;
	err = find_series(visit, m, &found);
	if (err)
		return err;
	series_put(*kept);
	*kept = found;
	return 0;
}

/* How many cells follow the first. */
static uint32_t n_bucket_cells(const struct delta_metric *of)
{
	return of->bucket.size_bytes ? 0 : of->metric->layout.n_buckets;
}

/* Fills bucket[] with the growth of a row that is one bucket. Returns that of the sum. */
static uint64_t fill_buckets(const struct delta_metric *of, const uint8_t *key, uint64_t grown,
			     uint64_t *bucket)
{
	uint32_t n = of->metric->layout.n_buckets, i = 0;
	uint64_t number = 0;

	memset(bucket, 0, n * sizeof(*bucket));
	if (!key) { /* only a damaged state has an overflow row that has grown */
		bucket[n - 1] = grown;
		return 0;
	}
	memcpy(&number, key + of->bucket.offset_bytes, of->bucket.size_bytes); /* little endian */
	if (of->bucket.has_sum && number == of->bucket.sum_key)
		return grown;
	while (i + 1 < n && number > of->metric->layout.bounds[i].key)
		i++;
	bucket[i] = grown;
	return 0;
}

/*
 * Gives the growth of one metric's cells to the series: of its number (grown), and of its buckets
 * if it has any.
 */
static int add_growth(const struct visit *visit, uint32_t m, uint64_t grown, bool *ret_grown)
{
	const struct delta_metric *of = &visit->delta->metrics[m];
	const uint64_t *now = visit->now + of->first_cell, *before = visit->before + of->first_cell;
	bool is_level = of->metric->kind == METRIC_GAUGE && !of->is_tally;
	uint32_t n_buckets = n_bucket_cells(of);
	uint64_t bucket[HISTOGRAM_BUCKETS_MAX];
	int err;

	*ret_grown = grown ||
		     (n_buckets && memcmp(now + 1, before + 1, n_buckets * sizeof(*now)) != 0);
	if (of->metric->is_disabled || of->metric->is_held)
		return 0;
	if ((!*ret_grown && !is_level && !(of->has_zero && visit->key)) ||
	    (is_level && !visit->key && !now[0]))
		return 0;
	for (uint32_t i = 0; i < n_buckets; i++)
		bucket[i] = delta_grown(now[1 + i], before[1 + i], of->bucket_bits);
	if (is_level)
		grown = gauge_level(now[0], of->sum_bits, of->is_signed);
	if (of->bucket.size_bytes)
		grown = fill_buckets(of, visit->key, grown, bucket);
	err = keep_series(visit, m);
	if (!err)
		series_add_histogram(visit->series[m], grown * of->factor, bucket);
	return err;
}

/* What the metric's cells hold now has been accounted for. */
static void update_previous(const struct delta_metric *of, const uint64_t *now, uint64_t *before)
{
	uint32_t n_more = n_bucket_cells(of) + of->n_more;

	before[of->first_cell] = now[of->first_cell];
	if (n_more)
		memcpy(before + of->first_cell + 1, now + of->first_cell + 1,
		       n_more * sizeof(*now));
}

int delta_adopt(const struct delta *delta, struct rows *rows, uint32_t row, uint32_t m,
		struct series *series, uint64_t previous_ns)
{
	const struct visit visit = { .delta = delta,
				     .key = row == ROWS_OVERFLOW ? NULL : rows_key(rows, row),
				     .series = rows_series(rows, row), .previous_ns = previous_ns };
	int r;

	if (delta->metrics[m].metric->is_disabled)
		return 0;
	if (!series) {
		r = keep_series(&visit, m);
		return r > 0 ? 0 : r;
	}
	series_put(visit.series[m]); /* a row may come twice only in a damaged state */
	series_take(series);
	visit.series[m] = series;
	return 0;
}

static void row_release(const struct delta *delta, struct rows *rows, uint32_t row)
{
	for (uint32_t m = 0; m < delta->n_metrics; m++) {
		series_put(rows_series(rows, row)[m]);
		rows_series(rows, row)[m] = NULL;
	}
}

static int row_compute(const struct delta *delta, struct rows *rows, uint32_t row,
		       uint64_t previous_ns)
{
	const struct visit visit = { delta, row == ROWS_OVERFLOW ? NULL : rows_key(rows, row),
				     rows_cells(rows, row),
				     rows_previous(rows, row), rows_series(rows, row),
				     previous_ns };
	bool *is_unwanted = &rows_at(rows, row)->is_unwanted;
	uint32_t *idle = &rows_at(rows, row)->idle;
	int err = 0;

	++*idle;
	for (uint32_t m = 0; m < delta->n_metrics; m++) {
		struct delta_metric *of = &delta->metrics[m];
		uint32_t cell = of->first_cell;
		uint64_t grown = cell_growth(of, visit.now[cell], visit.before[cell]);
		bool is_grown = false;
		int r = 0;

		if (of->metric->overflow[OVERFLOW_SERIES])
			leave_overflow(&visit, m);
		if (!*is_unwanted)
			r = add_growth(&visit, m, grown, &is_grown);
		if (is_grown)
			*idle = 0;
		if (r > 0) {
			*is_unwanted = r == DELTA_UNWANTED;
			row_release(delta, rows, row);
		}
		/*
		 * Growth that found no series is still to be given: it counts as growth the next
		 * time too.
		 */
		if (r < 0) {
			err = r;
			continue;
		}
		of->grown += grown;
		update_previous(of, visit.now, visit.before);
	}
	if (!err && rows_at(rows, row)->stay == ROWS_ONCE)
		rows_at(rows, row)->stay = ROWS_GO;
	return err;
}

void delta_end_gone(const struct delta *delta, struct rows *rows)
{
	for (uint32_t row = 0; rows->n_touched <= rows->n_live && row < rows->n; row++) {
		if (!rows_is_live(rows, row) || rows_is_touched(rows, row))
			continue;
		row_release(delta, rows, row);
		rows_remove(rows, row);
	}
}

int delta_compute(const struct delta *delta, struct rows *rows, uint64_t previous_ns)
{
	int err = 0;

	delta_end_gone(delta, rows);
	for (uint32_t m = 0; m < delta->n_metrics; m++)
		delta->metrics[m].grown = 0;
	for (uint32_t row = 0; row < rows->n; row++) {
		int r = rows_is_live(rows, row) ? row_compute(delta, rows, row, previous_ns) : 0;

		if (r)
			err = r;
	}
	return err;
}

void delta_release(const struct delta *delta, struct rows *rows)
{
	for (uint32_t row = 0; row < rows->n; row++)
		if (rows_is_live(rows, row))
			row_release(delta, rows, row);
}

void delta_hide(const struct delta *delta, struct rows *rows, uint32_t row, bool is_hidden)
{
	if (is_hidden && !memcmp(rows_cells(rows, row), rows_previous(rows, row),
				 rows->n_cells * sizeof(uint64_t)))
		row_release(delta, rows, row);
	else
		is_hidden = false;
	rows_at(rows, row)->is_unwanted = is_hidden;
}

void delta_baseline(struct rows *rows)
{
	for (uint32_t row = 0; row < rows->n; row++)
		for (uint32_t i = 0;
		     rows_is_live(rows, row) && rows_is_touched(rows, row) &&
		     i < rows->n_cells; i++)
			rows_previous(rows, row)[i] += rows_cells(rows, row)[i];
}

static void row_leave(const struct delta_metric *of, struct rows *rows, uint32_t row)
{
	bool is_count = rows_is_touched(rows, row) && of->metric->kind != METRIC_GAUGE;
	uint64_t *now = rows_cells(rows, row) + of->first_cell,
		*before = rows_previous(rows, row) + of->first_cell;

	for (uint32_t i = 0; i < 1 + n_bucket_cells(of); i++) {
		unsigned int bits = i ? of->bucket_bits : of->sum_bits;

		before[i] = is_count ? -delta_grown(now[i], before[i], bits) : 0;
	}
	if (is_count)
		rows_at(rows, row)->stay = ROWS_KEPT;
}

void delta_leave(const struct delta *delta, struct rows *rows)
{
	for (uint32_t row = 0; row < rows->n; row++)
		for (uint32_t m = 0; rows_is_live(rows, row) && m < delta->n_metrics; m++)
			row_leave(&delta->metrics[m], rows, row);
}
