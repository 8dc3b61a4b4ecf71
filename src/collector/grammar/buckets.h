/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a [metric] section says of numbers: buckets = …, range = … and multiply = …. Numbers in the
 * first are as the map counts them, so bounds are whole numbers.
 *
 * A map has its buckets in one of two places. In the structure { sum; bucket[N] }, bucket[i] counts
 * what is above the bound before and not above bound i; the last one counts all above. If the key
 * says the bucket, its number has the meaning that ebpf_exporter's examples give it:
 *     exp2        key k     values in (2^(k-1), 2^k]
 *     exp2 floor  key k     values in [2^k, 2^(k+1)), and 0 in key 0
 *     exp2zero    key 0     zeros; key k: values in (2^(k-2), 2^(k-1)]
 *     linear      key k     values from k * step on, below (k + 1) * step
 *     fixed       key k     values not above k, and above the bound before
 */

#include <stdbool.h>
#include <stdint.h>

#include "metric/metric.h"

struct buckets {
	uint32_t n; /* of bounds; 0: none are given */
	struct histogram_bound bounds[HISTOGRAM_BUCKETS_MAX - 1];
	bool has_sum;
	uint64_t sum_key; /* which holds the sum of all values */
};

/*
 * n_buckets: of the structure, which exp2 and exp2zero without a range take up; 0: the number of
 * the bucket is in the key. NULL, or why text cannot be read: the end of a message. Then .n is 0.
 */
const char *buckets_parse(const char *text, uint32_t n_buckets, struct buckets *ret_buckets);
/*
 * A range of powers of two in the metric's unit becomes the explicit buckets of an exponential
 * layout of scale 0. NULL: the usual one of the unit, as far as there are such buckets.
 */
const char *range_parse(const char *text, const char *unit, struct histogram_layout *layout);
/* Reads a decimal as a fraction in lowest terms. Returns NULL, or the end of a message. */
const char *multiply_parse(const char *text, uint64_t *ret_factor, uint64_t *ret_divisor);

/* For grammar_keys[]. */
const char *buckets_check(const char *text);
const char *range_check(const char *text);
const char *multiply_check(const char *text);
