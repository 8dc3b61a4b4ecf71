/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/bounds.h"

#include <math.h>

#define TOLERANCE (1.0 / 64)

/* base^(offset+i). */
static double bucket_limit(const struct histogram_layout *layout, uint32_t i)
{
	return exp2(ldexp(layout->offset + (int)i, -layout->scale));
}

double bounds_upper(const struct metric *metric, uint32_t i)
{
	const struct histogram_layout *layout = &metric->layout;

	if (i + 1 >= layout->n_buckets)
		return i ? INFINITY : 0;
	if (layout->bounds)
		return (double)layout->bounds[i].upper / (double)metric->divisor;
	return i ? bucket_limit(layout, i) : 0;
}

/* Of exponential buckets, the first one above zero reaches down to its lower limit, not to 0. */
static double lower_bound(const struct metric *metric, uint32_t i)
{
	if (!i)
		return 0;
	if (metric->layout.bounds)
		return bounds_upper(metric, i - 1);
	return bucket_limit(&metric->layout, i - 1);
}

uint64_t bounds_upper_raw(const struct metric *metric, uint32_t i)
{
	double raw;

	if (i + 1 < metric->layout.n_buckets && metric->layout.bounds)
		return metric->layout.bounds[i].upper;
	raw = bounds_upper(metric, i) * (double)metric->divisor;
	return raw >= 0x1p64 ? UINT64_MAX : (uint64_t)raw;
}

double bounds_middle(const struct metric *metric, uint32_t i)
{
	double low = lower_bound(metric, i), high = bounds_upper(metric, i);

	if (isinf(high))
		high = metric->layout.bounds ? low : bucket_limit(&metric->layout, i);
	return low > 0 ? 2 * high / (1 + high / low) : high / 2;
}

bool bounds_fit(const struct metric *metric, const struct numbers *numbers, double *ret_least,
		double *ret_most)
{
	double sum = (double)numbers->sum / (double)metric->divisor, least = 0, most = 0;

	for (uint32_t i = 0; i < metric->layout.n_buckets; i++) {
		if (!numbers->bucket[i])
			continue;
		least += (double)numbers->bucket[i] * lower_bound(metric, i);
		most += (double)numbers->bucket[i] * bounds_upper(metric, i);
	}
	*ret_least = least;
	*ret_most = most;
	return sum >= least * (1 - TOLERANCE) && sum <= most * (1 + TOLERANCE);
}

uint32_t bounds_explicit_n(const struct metric *metric)
{
	return metric->layout.n_explicit ?: metric->layout.n_buckets;
}

void bounds_limit_explicit(struct metric *metric)
{
	struct histogram_layout *layout = &metric->layout;
	uint32_t n = bounds_explicit_n(metric), limit = (uint32_t)metric->limit_explicit, merged;

	if (!limit || n <= limit)
		return;
	if (!layout->n_explicit)
		layout->step = 1;
	merged = (n + limit - 1) / limit;
	layout->n_explicit = (n + merged - 1) / merged;
	layout->first += (merged - 1) * layout->step;
	layout->step *= merged;
}

uint32_t bounds_explicit_last(const struct metric *metric, uint32_t i)
{
	const struct histogram_layout *layout = &metric->layout;

	if (i + 1 >= bounds_explicit_n(metric))
		return layout->n_buckets - 1;
	return layout->n_explicit ? layout->first + i * layout->step : i;
}

uint64_t bounds_explicit_count(const struct metric *metric, const uint64_t *bucket, uint32_t i)
{
	uint32_t first = i ? bounds_explicit_last(metric, i - 1) + 1 : 0,
		last = bounds_explicit_last(metric, i);
	uint64_t count = 0;

	for (uint32_t j = first; j <= last; j++)
		count += bucket[j];
	return count;
}

void bounds_trim(const uint64_t *bucket, uint32_t *first, uint32_t *end)
{
	while (*first < *end && !bucket[*first])
		++*first;
	while (*first < *end && !bucket[*end - 1])
		--*end;
}

double bounds_quantile(const struct metric *metric, const struct numbers *numbers, double fraction)
{
	double rank = fraction * (double)numbers->count, below = 0;

	if (numbers->count == 1 && !metric->layout.has_no_sum)
		return (double)numbers->sum / (double)metric->divisor;
	for (uint32_t i = 0; i < metric->layout.n_buckets; i++) {
		double here = (double)numbers->bucket[i], low, high;

		if (!here || below + here < rank) {
			below += here;
			continue;
		}
		low = lower_bound(metric, i);
		high = bounds_upper(metric, i);
		if (isinf(high)) /* nothing is known above */
			return low;
		return low + (high - low) * (rank - below) / here;
	}
	return 0;
}
