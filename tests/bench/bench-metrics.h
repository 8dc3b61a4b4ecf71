/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Metrics as collectors have them, whose series have four attributes, and numbers that grow. */

#include "metric/series.h"

struct bench_metrics {
	size_t n_metrics, n_series; /* of each metric */
	struct metric *metrics;
	struct metric **all; /* of the batch */
	struct series **series;
	char (*names)[48];
	struct batch batch;
	uint64_t round;
};

/* kind, unit and divisor are those of struct metric. Aborts without memory, as all of this does. */
void bench_metrics_init(struct bench_metrics *bench, enum metric_kind kind, const char *unit, uint64_t divisor,
			size_t n_metrics, size_t n_series);
/* The next batch: each series has grown, each gauge is another one. What they have grown by, or are, in all. */
uint64_t bench_metrics_grow(struct bench_metrics *bench);
void bench_metrics_done(struct bench_metrics *bench);

uint64_t bench_now_ns(void);
int bench_compare(const void *left, const void *right); /* of two uint64_t, for qsort() */
