/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Growth: the numbers in rows now, minus those at the reading before. It is given to the series.
 *
 * A cell of b bits counts modulo 2^b, so growth is (now - before) mod 2^b. No number grows by more
 * than half of that range within one interval. If it seems to, the kernel side began again at 0,
 * and the whole number is growth. A key seen for the first time has grown by its whole number. A
 * key that has disappeared has ended: its series lose a source, and keep their numbers.
 */

#include <stdint.h>

#include "metric/metric.h"
#include "metric/rows.h"

/*
 * For a histogram of which each row is one bucket: a number in the key says which. The only cell of
 * a row is the count of its bucket; in the row whose number is sum_key, it is the sum.
 */
struct delta_bucket {
	/* of the number in the key; 0: the rows are not such ones */
	uint32_t offset_bytes, size_bytes;
	bool has_sum;
	uint64_t sum_key; /* the number that says the sum */
};

/* How the cells of a row become numbers of one metric. */
struct delta_metric {
	struct metric *metric;
	uint64_t factor; /* numbers and sums are raw numbers of the metric, times this */
	struct delta_bucket bucket;
	/* sum, gauge: the number; histogram: the sum, followed by the buckets */
	uint32_t first_cell;
	uint8_t sum_bits;    /* width in the kernel: 8, 16, 32, 64 */
	uint8_t bucket_bits;
	bool is_signed; /* a gauge that may be below 0 */
	uint32_t n_more; /* cells of a gauge that follow: reader.c keeps them (cpus = last) */
	bool is_tally; /* a gauge whose value is the growth since the last reading */
	bool has_zero; /* a row has its series before it grows */
	const void *user; /* for attributes() */
	/* what a sum has grown by in the last delta_compute(), over all rows, wanted or not */
	uint64_t grown;
};

#define DELTA_UNWANTED 2

/* The metrics of the rows of one map, and how their keys become attributes. */
struct delta {
	struct delta_metric *metrics;
	size_t n_metrics;
	/*
	 * Decodes a key into the attributes of one of metrics. 0 or -errno. 1: a name is not known
	 * yet; the row is decoded again when it grows next. DELTA_UNWANTED: it is never
	 * exported. DELTA_UNWANTED | 1: not by its present name; it is decoded again.
	 */
	int (*attributes)(void *user, const void *key, const struct delta_metric *of,
			  struct attributes *attributes);
	void *user;
};

/*
 * Ends the rows of keys that the last reading did not find. Called for all maps before any
 * delta_compute(), it makes room for what is new.
 */
void delta_end_gone(const struct delta *delta, struct rows *rows);
/*
 * Ends rows like delta_end_gone(), and then computes the growth of all rows. Between series_begin()
 * and series_end() of the metrics. previous_ns: Unix time of the reading before, the start of
 * series that are new. -ENOMEM or the error of attributes(); the other rows are still computed. A
 * row whose series has no room feeds the overflow series until it has.
 */
int delta_compute(const struct delta *delta, struct rows *rows, uint64_t previous_ns);
/*
 * A row of an earlier process goes on, with its series for the m-th metric; NULL: it is found by
 * the names that the key has now. -ENOMEM or the error of attributes().
 */
int delta_adopt(const struct delta *delta, struct rows *rows, uint32_t row, uint32_t m,
		struct series *series, uint64_t previous_ns);
/*
 * Sets the baseline: from now on growth counts from the present numbers. What delta_leave() took
 * along is growth.
 */
void delta_baseline(struct rows *rows);
/*
 * The rows go on with another map, whose first reading is the baseline. What they have grown by
 * until now is taken along, and those that count stay, found there or not.
 */
void delta_leave(const struct delta *delta, struct rows *rows);
/*
 * A row that goes on, but is not exported meanwhile, once its last growth has been given; and the
 * end of that.
 */
void delta_hide(const struct delta *delta, struct rows *rows, uint32_t row, bool is_hidden);
/* Takes the rows' series back, before the metrics forget them. */
void delta_release(const struct delta *delta, struct rows *rows);

uint64_t delta_grown(uint64_t now, uint64_t before, unsigned int bits);
