/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps are never reset, so each reading shows totals, and what goes to a series is the difference to the
 * reading before. Sums and histograms add it to the series' total and delta. A gauge begins each
 * collection at 0 and is given what its cells hold now (or, for a tally, what they have grown by).
 *
 * Decoding a key into attributes and finding the series is expensive, so a row does it once and keeps the
 * series. Two kinds of answers are not for life: the overflow series, given up as soon as there is room,
 * and a series whose names were not all known.
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
 * What a gauge of so many bits holds: cells are sums over CPUs modulo 2^64, of which each may have wrapped
 * (begun on one, ended on another), so only the low bits count.
 */
static uint64_t level(uint64_t cell, unsigned int bits, bool is_signed)
{
	unsigned int unused = 64 - bits;

	return is_signed ? (uint64_t)((int64_t)(cell << unused) >> unused) : cell << unused >> unused;
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

/* Is there a chance that the row finds a better series than the one it has? */
static bool is_makeshift(const struct metric *metric, const struct series *series)
{
	return series->is_provisional || (series == metric->overflow && series_has_room(metric));
}

static int find_series(const struct visit *visit, uint32_t m, struct series **ret_series)
{
	const struct delta *delta = visit->delta;
	struct metric *metric = delta->metrics[m].metric;
	struct attributes attributes;
	int r, err;

	if (!visit->key)
		return series_get_overflow(metric, visit->previous_ns, ret_series);
	attributes_init(&attributes);
	r = delta->attributes(delta->user, visit->key, &delta->metrics[m], &attributes);
	if (r < 0)
		return r;
	err = series_get(metric, &attributes, visit->previous_ns, ret_series);
	if (err)
		return err;
	(*ret_series)->is_provisional = r > 0 && *ret_series != metric->overflow;
	return 0;
}

/* The series of the row for one metric, kept with the row. */
static int row_series(const struct visit *visit, uint32_t m, struct series **ret_series)
{
	struct series **kept = &visit->series[m];
	int err;

	if (!*kept || (visit->key && is_makeshift(visit->delta->metrics[m].metric, *kept))) {
		struct series *found;

		err = find_series(visit, m, &found);
		if (err)
			return err;
		series_put(*kept);
		*kept = found;
	}
	*ret_series = *kept;
	return 0;
}

static int add_number(const struct visit *visit, uint32_t m, bool *ret_grown)
{
	const struct delta_metric *of = &visit->delta->metrics[m];
	uint64_t now = visit->now[of->first_cell];
	uint64_t grown = delta_grown(now, visit->before[of->first_cell], of->sum_bits);
	bool is_level = of->metric->kind == METRIC_GAUGE && !of->is_tally;
	struct series *series;
	int err;

	*ret_grown = grown != 0;
	if (of->metric->is_held || (!grown && !is_level))
		return 0;
	if (!visit->key && !now)
		return 0;
	err = row_series(visit, m, &series);
	if (err)
		return err;
	series_add(series, is_level ? level(now, of->sum_bits, of->is_signed) : grown);
	return 0;
}

static int add_histogram(const struct visit *visit, uint32_t m, bool *ret_grown)
{
	const struct delta_metric *of = &visit->delta->metrics[m];
	const uint64_t *now = visit->now + of->first_cell, *before = visit->before + of->first_cell;
	uint32_t n_buckets = of->metric->layout.n_buckets;
	uint64_t bucket[HISTOGRAM_BUCKETS_MAX];
	struct series *series;
	int err;

	*ret_grown = memcmp(now, before, (1 + n_buckets) * sizeof(*now)) != 0;
	if (!*ret_grown)
		return 0;
	for (uint32_t i = 0; i < n_buckets; i++)
		bucket[i] = delta_grown(now[1 + i], before[1 + i], of->bucket_bits);
	err = row_series(visit, m, &series);
	if (err)
		return err;
	series_add_histogram(series, delta_grown(now[0], before[0], of->sum_bits), bucket);
	return 0;
}

/* What the metric's cells hold now has been accounted for. */
static void settle(const struct delta_metric *of, const uint64_t *now, uint64_t *before)
{
	before[of->first_cell] = now[of->first_cell];
	if (of->metric->kind == METRIC_HISTOGRAM)
		memcpy(before + of->first_cell + 1, now + of->first_cell + 1,
		       of->metric->layout.n_buckets * sizeof(uint64_t));
}

static int row_compute(const struct delta *delta, struct rows *rows, uint32_t row, uint64_t previous_ns)
{
	const struct visit visit = { delta, row == ROWS_OVERFLOW ? NULL : rows_key(rows, row), rows_cells(rows, row),
				     rows_previous(rows, row), rows_series(rows, row), previous_ns };
	uint32_t *idle = rows_idle(rows, row);
	int err = 0;

	++*idle;
	for (uint32_t m = 0; m < delta->n_metrics; m++) {
		const struct delta_metric *of = &delta->metrics[m];
		bool is_grown;
		int r = (of->metric->kind == METRIC_HISTOGRAM ? add_histogram : add_number)(&visit, m, &is_grown);

		if (is_grown)
			*idle = 0;
		/* Growth that found no series is still to be given: it counts as growth the next time too. */
		if (r)
			err = r;
		else
			settle(of, visit.now, visit.before);
	}
	return err;
}

static void row_release(const struct delta *delta, struct rows *rows, uint32_t row)
{
	for (uint32_t m = 0; m < delta->n_metrics; m++) {
		series_put(rows_series(rows, row)[m]);
		rows_series(rows, row)[m] = NULL;
	}
}

int delta_compute(const struct delta *delta, struct rows *rows, uint64_t previous_ns)
{
	int err = 0;

	for (uint32_t row = 0; row < rows->n; row++) {
		int r = 0;

		if (!rows_is_live(rows, row))
			continue;
		if (rows_is_touched(rows, row)) {
			r = row_compute(delta, rows, row, previous_ns);
		} else {
			row_release(delta, rows, row);
			rows_remove(rows, row);
		}
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

void delta_baseline(const struct delta *delta, struct rows *rows, bool is_whole)
{
	for (uint32_t row = 0; row < rows->n; row++)
		for (uint32_t m = 0; rows_is_live(rows, row) && m < delta->n_metrics; m++)
			if (is_whole || delta->metrics[m].is_tally)
				settle(&delta->metrics[m], rows_cells(rows, row), rows_previous(rows, row));
}
