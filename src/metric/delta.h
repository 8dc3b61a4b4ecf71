/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Growth: what rows hold now less what they held at the reading before, given to the series.
 *
 * A cell of b bits counts modulo 2^b, so growth is (now - before) mod 2^b. More than half of that range
 * cannot be growth within one interval: the kernel side began anew, and all that is there now is growth.
 * A key seen for the first time has grown by what it holds; one that is no longer there has ended: its
 * series lose a source, and no number.
 */

#include <stdint.h>

#include "metric/metric.h"
#include "metric/rows.h"

/* How the cells of a row become numbers of one metric. */
struct delta_metric {
	struct metric *metric;
	uint32_t first_cell; /* sum, gauge: the number; histogram: the sum, the buckets behind it */
	uint8_t sum_bits;    /* width in the kernel: 8, 16, 32, 64 */
	uint8_t bucket_bits;
	bool is_signed; /* a gauge that may be below 0 */
	bool is_tally; /* a gauge whose value is the growth since the last reading */
};

struct delta {
	struct rows *rows;
	const struct delta_metric *metrics;
	uint32_t n_metrics;
	uint64_t *scratch; /* room for the buckets of the largest histogram */
	/* Decodes a key into the attributes of metrics[metric]; called once a row and metric. 0 or -errno. */
	int (*attributes)(void *user, const void *key, uint32_t metric, struct attributes *attributes);
	void *user;
};

/*
 * Between series_begin() and series_end() of the metrics. previous_ns: Unix time of the reading before,
 * the start of series that are new. -ENOMEM or what attributes() returned; the rest is done all the same.
 */
int delta_compute(struct delta *delta, uint64_t previous_ns);
/* Takes the rows' series back, when the rows end before the metrics do. */
void delta_release(struct delta *delta);

uint64_t delta_grown(uint64_t now, uint64_t before, unsigned int bits);
