/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rows of a map with one metric, whose keys are numbers (u64). */

#include "metric/delta.h"
#include "metric/series.h"

static int by_number(void *user, const void *key, const struct delta_metric *of, struct attributes *attributes)
{
	uint64_t number;

	memcpy(&number, key, sizeof(number));
	return attributes_add_number(attributes, "n", (int64_t)(number % 1000));
}

struct fixture {
	struct budget budget;
	struct metric metric;
	struct delta_metric of;
	struct delta delta;
	struct rows *rows;
};

static void setup(struct fixture *f, enum metric_kind kind, uint8_t bits)
{
	uint32_t n_buckets = kind == METRIC_HISTOGRAM ? 4 : 0;

	*f = (struct fixture){ .metric = { .kind = kind, .divisor = 1, .layout.n_buckets = n_buckets } };
	metric_init_series(&f->metric, &f->budget);
	f->of = (struct delta_metric){ .metric = &f->metric, .factor = 1, .sum_bits = bits, .bucket_bits = 32 };
	f->delta = (struct delta){ .metrics = &f->of, .n_metrics = 1, .attributes = by_number };
	assert_ok(rows_new(8, 1 + n_buckets, 1, &f->rows));
}

static void teardown(struct fixture *f)
{
	delta_release(&f->delta, f->rows);
	for (int i = 0; i < 2; i++) { /* in the first one, series end */
		series_begin(&f->metric);
		series_end(&f->metric);
	}
	assert_int_equal(f->metric.n_series, 0);
	assert_int_equal(f->budget.n_series, 0);
	assert_int_equal(f->budget.series_bytes, 0);
	rows_free(f->rows);
	metric_done_series(&f->metric);
}

static uint64_t *touch(struct fixture *f, uint64_t key)
{
	uint32_t index;

	assert_ok(rows_touch(f->rows, &key, &index));
	return rows_cells(f->rows, index);
}

static void begin(struct fixture *f)
{
	rows_begin(f->rows);
	series_begin(&f->metric);
}

static void end(struct fixture *f, uint64_t previous_ns)
{
	assert_ok(delta_compute(&f->delta, f->rows, previous_ns));
	series_end(&f->metric);
}
