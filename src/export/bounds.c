/* SPDX-License-Identifier: Apache-2.0 */
#include "export/bounds.h"

#include <math.h>

/* base^(offset+i). */
static double limit(const struct histogram_layout *layout, uint32_t i)
{
	/* ldexp() is exact where the base is a power of two: 2^(2^-scale) with scale <= 0. */
	if (layout->scale <= 0)
		return ldexp(1, (layout->offset + (int)i) * (1 << -layout->scale));
	return exp2(ldexp(layout->offset + (int)i, -layout->scale));
}

double bounds_upper(const struct histogram_layout *layout, uint32_t i)
{
	if (!i)
		return 0;
	return i + 1 >= layout->n_buckets ? INFINITY : limit(layout, i);
}

uint64_t bounds_upper_raw(const struct histogram_layout *layout, uint64_t divisor, uint32_t i)
{
	double raw = bounds_upper(layout, i) * (double)divisor;

	return raw >= 0x1p64 ? UINT64_MAX : (uint64_t)raw;
}

void bounds_trim(const uint64_t *bucket, uint32_t *first, uint32_t *end)
{
	while (*first < *end && !bucket[*first])
		++*first;
	while (*first < *end && !bucket[*end - 1])
		--*end;
}

double bounds_quantile(const struct histogram_layout *layout, const struct numbers *numbers, double fraction)
{
	double rank = fraction * (double)numbers->count, below = 0;

	for (uint32_t i = 0; i < layout->n_buckets; i++) {
		double here = (double)numbers->bucket[i], low, high;

		if (!here || below + here < rank) {
			below += here;
			continue;
		}
		if (!i)
			return 0;
		/* The first bucket above zero reaches down to its lower limit, not to 0. */
		low = limit(layout, i - 1);
		high = bounds_upper(layout, i);
		if (isinf(high)) /* nothing is known above */
			return low;
		return low + (high - low) * (rank - below) / here;
	}
	return 0;
}
