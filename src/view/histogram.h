/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the buckets of a histogram look like in a terminal. first, end: a range of them. */

#include "metric/metric.h"
#include "util/buf.h"

/*
 * A bar for each bucket of the range, or for some neighbours together, so that 32 bars are enough.
 */
void histogram_bars(const uint64_t *bucket, uint32_t first, uint32_t end, struct buf *out);
/* "1.02µs…8.19ms": what bars of that range extend from and to. */
void histogram_axis(const struct metric *metric, uint32_t first, uint32_t end, char *ret_text,
		    size_t size);
/*
 * The buckets as bcc prints them: a line a bucket with its limits in the metric's unit, its count,
 * and a bar.
 *
 *              value            : count     distribution
 *          1.02µs -> 2.05µs     : 12       |*****               |
 *
 * Values of 0 have a line with "0", after which empty buckets are left out.
 */
void histogram_print(const struct metric *metric, const uint64_t *bucket, unsigned int width,
		     struct buf *out);
