/* SPDX-License-Identifier: Apache-2.0 */
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

/* The series of a row for one metric, found once and then remembered with the row. */
static int row_series(struct delta *delta, uint32_t index, uint32_t m, uint64_t previous_ns,
		      struct series **ret_series)
{
	struct metric *metric = delta->metrics[m].metric;
	struct series **series = &rows_series(delta->rows, index)[m];
	struct attributes attributes;
	int err = 0;

	if (!*series && index == ROWS_OVERFLOW)
		err = series_get_overflow(metric, previous_ns, series);
	else if (!*series) {
		attributes_init(&attributes);
		err = delta->attributes(delta->user, rows_key(delta->rows, index), m, &attributes);
		if (!err)
			err = series_get(metric, &attributes, previous_ns, series);
	}
	if (err)
		return err;
	*ret_series = *series;
	return 0;
}

static int add_number(struct delta *delta, uint32_t index, uint32_t m, uint64_t previous_ns, bool *ret_grown)
{
	const struct delta_metric *of = &delta->metrics[m];
	uint64_t now = rows_cells(delta->rows, index)[of->first_cell];
	uint64_t grown = delta_grown(now, rows_previous(delta->rows, index)[of->first_cell], of->sum_bits);
	bool is_level = of->metric->kind == METRIC_GAUGE && !of->is_tally;
	struct series *series;
	int err;

	*ret_grown = grown != 0;
	if (!grown && !is_level)
		return 0;
	if (index == ROWS_OVERFLOW && !now)
		return 0;
	err = row_series(delta, index, m, previous_ns, &series);
	if (err)
		return err;
	series_add(series, is_level ? level(now, of->sum_bits, of->is_signed) : grown);
	return 0;
}

static int add_histogram(struct delta *delta, uint32_t index, uint32_t m, uint64_t previous_ns, bool *ret_grown)
{
	const struct delta_metric *of = &delta->metrics[m];
	const uint64_t *now = rows_cells(delta->rows, index) + of->first_cell;
	const uint64_t *before = rows_previous(delta->rows, index) + of->first_cell;
	uint32_t n_buckets = of->metric->layout.n_buckets;
	struct series *series;
	int err;

	*ret_grown = false;
	if (!memcmp(now, before, (1 + n_buckets) * sizeof(*now)))
		return 0;
	for (uint32_t i = 0; i < n_buckets; i++)
		delta->scratch[i] = delta_grown(now[1 + i], before[1 + i], of->bucket_bits);
	*ret_grown = true;
	err = row_series(delta, index, m, previous_ns, &series);
	if (err)
		return err;
	series_add_histogram(series, delta_grown(now[0], before[0], of->sum_bits), delta->scratch);
	return 0;
}

static void row_release(struct delta *delta, uint32_t index)
{
	struct series **series = rows_series(delta->rows, index);

	for (uint32_t m = 0; m < delta->n_metrics; m++) {
		series_put(series[m]);
		series[m] = NULL;
	}
}

static uint32_t count_cells(const struct metric *metric)
{
	return 1 + (metric->kind == METRIC_HISTOGRAM ? metric->layout.n_buckets : 0);
}

static int row_compute(struct delta *delta, uint32_t index, uint64_t previous_ns)
{
	uint32_t *idle = rows_idle(delta->rows, index);
	int err = 0;

	++*idle;
	for (uint32_t m = 0; m < delta->n_metrics; m++) {
		const struct delta_metric *of = &delta->metrics[m];
		bool is_histogram = of->metric->kind == METRIC_HISTOGRAM, is_grown;
		int r = (is_histogram ? add_histogram : add_number)(delta, index, m, previous_ns, &is_grown);

		if (is_grown)
			*idle = 0;
		/* What found no series has still to be given: it counts as grown the next time too. */
		if (r)
			err = r;
		else
			memcpy(rows_previous(delta->rows, index) + of->first_cell,
			       rows_cells(delta->rows, index) + of->first_cell,
			       count_cells(of->metric) * sizeof(uint64_t));
	}
	return err;
}

int delta_compute(struct delta *delta, uint64_t previous_ns)
{
	int err = 0;

	for (uint32_t index = 0; index < rows_n(delta->rows); index++) {
		int r = 0;

		if (!rows_is_live(delta->rows, index))
			continue;
		if (rows_is_touched(delta->rows, index)) {
			r = row_compute(delta, index, previous_ns);
		} else {
			row_release(delta, index);
			rows_remove(delta->rows, index);
		}
		if (r)
			err = r;
	}
	return err;
}

void delta_release(struct delta *delta)
{
	for (uint32_t index = 0; index < rows_n(delta->rows); index++)
		if (rows_is_live(delta->rows, index))
			row_release(delta, index);
}
