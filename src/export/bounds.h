/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The limits of a histogram's buckets, in the metric's unit and as the kernel counts, and what can be
 * said about the values between them. Explicit buckets are the layout's own: the upper limits of all but
 * the last bucket, the first of which is 0, so that nothing is sorted again:
 *     bounds  0, base^(offset+1), …, base^(offset+n-2)       counts  bucket[0], …, bucket[n-1]
 */

#include "metric/metric.h"

/* Of bucket i: base^(offset+i), 0 for bucket[0]; +infinity for the last one. */
double bounds_upper(const struct histogram_layout *layout, uint32_t i);
/* The largest raw number that bucket i counts, UINT64_MAX for the last one. */
uint64_t bounds_upper_raw(const struct histogram_layout *layout, uint64_t divisor, uint32_t i);
/*
 * The value below which the fraction (0 to 1) of the values lies, from the counts alone: exact at the
 * limits of buckets, evenly spread between them. 0 where there are none.
 */
double bounds_quantile(const struct histogram_layout *layout, const struct numbers *numbers, double fraction);
