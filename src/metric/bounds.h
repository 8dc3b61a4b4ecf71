/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The bounds of a histogram's buckets, in the metric's unit and as the kernel counts, and an
 * estimate of the values between them. The bounds of an explicit histogram are the upper bounds of
 * all buckets but the last; of exponential buckets, the first is 0. So the counts stay as they are:
 *     bounds  0, base^(offset+1), …, base^(offset+n-2)       counts  bucket[0], …, bucket[n-1]
 */

#include "metric/metric.h"

/*
 * The upper bound of bucket i: explicit, or base^(offset+i), and 0 for bucket[0]; infinity for the
 * last one.
 */
double bounds_upper(const struct metric *metric, uint32_t i);
/* The largest raw number that bucket i counts; UINT64_MAX for the last one. */
uint64_t bounds_upper_raw(const struct metric *metric, uint32_t i);
/*
 * The value in bucket i with the smallest relative error for any value there: it is as far from one
 * bound as from the other, in parts of each. Half of the upper bound if the lower is 0. The last
 * bucket: its lower bound, or if the buckets are exponential, as if it were as wide as the others.
 */
double bounds_middle(const struct metric *metric, uint32_t i);
/* Merges as many neighbouring buckets of an explicit histogram as limit_explicit asks for. */
void bounds_limit_explicit(struct metric *metric);
/*
 * Buckets of the layout that an explicit histogram counts together: how many there are of them, the
 * last bucket of the layout in one, and what one counts. The last ends with the layout.
 */
uint32_t bounds_explicit_n(const struct metric *metric);
uint32_t bounds_explicit_last(const struct metric *metric, uint32_t i);
uint64_t bounds_explicit_count(const struct metric *metric, const uint64_t *bucket, uint32_t i);
/* Narrows the range [*first, *end) of buckets, so that neither of its ends is empty. */
void bounds_trim(const uint64_t *bucket, uint32_t *first, uint32_t *end);
/*
 * Can the sum of the values be what it is, as their buckets have these bounds? Numbers of one
 * reading may be some microseconds apart (collector/reader/reader.c), so a small part does not
 * matter. ret_…: what the bounds allow, in the metric's unit.
 */
bool bounds_fit(const struct metric *metric, const struct numbers *numbers, double *ret_least,
		double *ret_most);
/*
 * The value below which that fraction (0 to 1) of all values lies, estimated from the counts: exact
 * at the bounds of buckets, evenly spread between them. 0 without values; a single one is known.
 */
double bounds_quantile(const struct metric *metric, const struct numbers *numbers, double fraction);
