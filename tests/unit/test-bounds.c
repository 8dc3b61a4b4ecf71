/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <math.h>

#include "metric/bounds.h"

static const struct metric times = { .divisor = 1000000000, .layout = { .offset = -30, .n_buckets = 48 } };
static const struct metric values = { .divisor = 1, .layout = { .offset = -1, .n_buckets = 48 } };
static const struct histogram_bound raw_bounds[] = { { 0 }, { 49 }, { 1099 } };
static const struct metric lengths = { .divisor = 1, .layout = { .n_buckets = 4, .bounds = raw_bounds } };
static const struct metric waits = { .divisor = 1000, .layout = { .n_buckets = 4, .bounds = raw_bounds } };

static void limits_are_those_that_the_kernel_counts_by(void **state)
{
	/* bpf/include/hist.h: exactly 1 s is in bucket 30, 1 s + 1 ns in 31; 1 in 1, 2 in 2, 3 and 4 in 3. */
	assert_true(bounds_upper(&times, 0) == 0);
	assert_true(bounds_upper(&times, 30) == 1.0);
	assert_true(bounds_upper(&times, 31) == 2.0);
	assert_true(bounds_upper(&times, 1) == 0x1p-29);
	assert_true(isinf(bounds_upper(&times, 47)));
	assert_int_equal(bounds_upper_raw(&times, 30), 1000000000);
	assert_int_equal(bounds_upper_raw(&times, 29), 500000000);
	assert_int_equal(bounds_upper_raw(&times, 20), 976562);
	assert_int_equal(bounds_upper_raw(&times, 47), UINT64_MAX);
	assert_int_equal(bounds_upper_raw(&values, 0), 0);
	assert_int_equal(bounds_upper_raw(&values, 1), 1);
	assert_int_equal(bounds_upper_raw(&values, 3), 4);
}

static void bounds_increase_at_every_scale(void **state)
{
	for (int scale = -3; scale <= 8; scale++) {
		const struct metric metric = { .divisor = 1, .layout = { scale, -20, 40 } };

		for (uint32_t i = 1; i < metric.layout.n_buckets; i++)
			assert_true(bounds_upper(&metric, i) > bounds_upper(&metric, i - 1));
	}
	assert_true(bounds_upper(&(struct metric){ .layout = { 1, 0, 9 } }, 2) == 2.0);
	assert_true(bounds_upper(&(struct metric){ .layout = { -1, 0, 9 } }, 2) == 16.0);
}

static void quantiles_are_exact_at_limits_and_even_between_them(void **state)
{
	uint64_t bucket[48] = { [3] = 50, [5] = 50 }; /* (2, 4] and (8, 16] */
	struct numbers numbers = { .count = 100, .bucket = bucket };

	assert_true(bounds_quantile(&values, &numbers, 0.5) == 4);
	assert_true(bounds_quantile(&values, &numbers, 0.25) == 3);
	assert_true(bounds_quantile(&values, &numbers, 0.75) == 12);
	assert_true(bounds_quantile(&values, &numbers, 1) == 16);
}

static void quantiles_at_the_edges(void **state)
{
	uint64_t bucket[48] = { [0] = 2 };
	struct numbers numbers = { .count = 2, .bucket = bucket };

	assert_true(bounds_quantile(&values, &numbers, 0.5) == 0);
	bucket[0] = 0;
	bucket[1] = 2;
	assert_true(bounds_quantile(&values, &numbers, 1) == 1);
	assert_true(bounds_quantile(&values, &numbers, 0) == 0.5);
	bucket[1] = 0;
	bucket[47] = 2;
	assert_true(bounds_quantile(&values, &numbers, 0.5) == 0x1p45);
	bucket[47] = 0;
	numbers.count = 0;
	assert_true(bounds_quantile(&values, &numbers, 0.5) == 0);
	numbers.count = bucket[1] = 2; /* of a coarser scale: (1, 4] */
	assert_true(bounds_quantile(&(struct metric){ .layout = { -1, 0, 9 } }, &numbers, 0) == 1);
	numbers.count = bucket[1] = 1; /* the value itself, if its sum is known */
	numbers.sum = 1234;
	assert_true(bounds_quantile(&waits, &numbers, 0.99) == 1.234);
	assert_true(bounds_quantile(&(struct metric){ .layout = { -1, 0, 9, .has_no_sum = true } }, &numbers, 0) == 1);
}

static void explicit_bounds_are_raw_and_inclusive(void **state)
{
	uint64_t bucket[4] = { 1, 2, 0, 1 };
	struct numbers numbers = { .count = 4, .bucket = bucket };

	assert_true(bounds_upper(&lengths, 0) == 0);
	assert_true(bounds_upper(&lengths, 2) == 1099);
	assert_true(bounds_upper(&waits, 1) == 0.049);
	assert_true(isinf(bounds_upper(&waits, 3)));
	assert_int_equal(bounds_upper_raw(&waits, 1), 49);
	assert_int_equal(bounds_upper_raw(&waits, 3), UINT64_MAX);
	assert_true(bounds_quantile(&lengths, &numbers, 0.25) == 0);
	assert_true(bounds_quantile(&lengths, &numbers, 0.5) == 24.5);
	assert_true(bounds_quantile(&lengths, &numbers, 1) == 1099); /* nothing is known above */
}

static void the_middle_is_as_far_from_both_bounds(void **state)
{
	assert_true(bounds_middle(&values, 0) == 0);
	assert_true(bounds_middle(&values, 3) == 8.0 / 3); /* of (2, 4] */
	assert_true(bounds_middle(&values, 47) == 0x1p47 / 3);
	assert_true(bounds_middle(&lengths, 0) == 0);
	assert_true(bounds_middle(&lengths, 1) == 24.5);
	assert_float_equal(bounds_middle(&lengths, 2), 2.0 * 49 * 1099 / (49 + 1099), 1e-9);
	assert_true(bounds_middle(&lengths, 3) == 1099);
}

static uint32_t explicit_bucket_of(const struct metric *metric, double value)
{
	uint32_t i = 0;

	while (value > bounds_upper(metric, bounds_explicit_last(metric, i)))
		i++;
	return i;
}

static void an_explicit_histogram_counts_neighbours_together(void **state)
{
	struct metric metric = values;
	uint64_t bucket[48], sum = 0;

	for (uint32_t i = 0; i < 48; i++)
		bucket[i] = UINT64_C(1) << i;
	metric.layout.n_explicit = 4; /* up to 2^2, 2^5, 2^8, and all above */
	metric.layout.first = 3;
	metric.layout.step = 3;
	assert_int_equal(bounds_explicit_n(&metric), 4);
	assert_true(bounds_upper(&metric, bounds_explicit_last(&metric, 0)) == 4);
	assert_true(bounds_upper(&metric, bounds_explicit_last(&metric, 1)) == 32);
	assert_true(bounds_upper(&metric, bounds_explicit_last(&metric, 2)) == 256);
	assert_int_equal(bounds_explicit_last(&metric, 3), 47);
	assert_int_equal(bounds_explicit_count(&metric, bucket, 0), 0xf); /* 0, 1, 2, and 3 to 4 */
	assert_int_equal(bounds_explicit_count(&metric, bucket, 1), 0x70);
	assert_int_equal(bounds_explicit_count(&metric, bucket, 2), 0x380);
	for (uint32_t i = 0; i < 4; i++)
		sum += bounds_explicit_count(&metric, bucket, i);
	assert_int_equal(sum, (UINT64_C(1) << 48) - 1);
	/* Every value is where its own bucket is counted. */
	for (uint32_t i = 0; i < 47; i++) {
		uint64_t one[48] = { 0 };
		double upper = bounds_upper(&metric, i);

		one[i] = 1;
		assert_int_equal(bounds_explicit_count(&metric, one, explicit_bucket_of(&metric, upper)), 1);
		if (i > 1) /* from just above the bound below */
			assert_int_equal(explicit_bucket_of(&metric, upper / 2 + 0.5),
					 explicit_bucket_of(&metric, upper));
	}
}

static void without_a_range_each_bucket_is_explicit(void **state)
{
	const struct metric *const all[] = { &values, &lengths };

	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		uint64_t bucket[48] = { 0 };

		assert_int_equal(bounds_explicit_n(all[i]), all[i]->layout.n_buckets);
		for (uint32_t j = 0; j < all[i]->layout.n_buckets; j++) {
			bucket[j] = 7 + j;
			assert_int_equal(bounds_explicit_last(all[i], j), j);
			assert_int_equal(bounds_explicit_count(all[i], bucket, j), 7 + j);
		}
	}
}

static void so_many_neighbours_are_merged_that_no_more_buckets_are_left(void **state)
{
	for (uint32_t i = 0; i < 3; i++)
		for (uint64_t limit = 2; limit <= 50; limit++) {
			struct metric before = i == 2 ? lengths : values, metric;
			uint64_t bucket[48], sum = 0, sum_before = 0;
			uint32_t n, at = 0;

			if (i == 1) {
				before.layout.n_explicit = 20;
				before.layout.first = 1;
				before.layout.step = 2;
			}
			metric = before;
			metric.limit_explicit = limit;
			bounds_limit_explicit(&metric);
			n = bounds_explicit_n(&metric);
			assert_true(n <= limit && (n == bounds_explicit_n(&before) || 2 * n > limit));
			for (uint32_t j = 0; j < 48; j++)
				bucket[j] = UINT64_C(1) << j;
			/* Each bound is one of those before, so each bucket is a sum of whole ones. */
			for (uint32_t j = 0; j < n; j++) {
				sum += bounds_explicit_count(&metric, bucket, j);
				while (sum_before < sum)
					sum_before += bounds_explicit_count(&before, bucket, at++);
				assert_int_equal(sum_before, sum);
			}
			assert_int_equal(at, bounds_explicit_n(&before));
		}
}

static void a_sum_has_to_be_between_the_bounds_of_its_values(void **state)
{
	uint64_t bucket[4] = { 5, 20, 10 }; /* 0, 1 to 49, 50 to 1099 */
	struct numbers numbers = { .count = 35, .bucket = bucket };
	const struct { uint64_t sum; bool is_fit; } sums[] = {
		{ 490, true }, { 481, false }, { 11970, true }, { 12157, true }, { 12160, false }, { 0, false },
		{ UINT64_MAX, false },
	};
	double least, most;

	for (size_t i = 0; i < ARRAY_SIZE(sums); i++) {
		numbers.sum = sums[i].sum;
		assert_int_equal(bounds_fit(&lengths, &numbers, &least, &most), sums[i].is_fit);
		assert_true(least == 490 && most == 20 * 49 + 10 * 1099);
	}
	bucket[3] = 1;
	assert_true(bounds_fit(&lengths, &numbers, &least, &most) && isinf(most));
	numbers.sum = 490;
	assert_false(bounds_fit(&lengths, &numbers, &least, &most));
	assert_false(bounds_fit(&waits, &numbers, &least, &most));
	assert_true(least == 1.589);
	memset(bucket, 0, sizeof(bucket));
	numbers.sum = 0;
	assert_true(bounds_fit(&lengths, &numbers, &least, &most));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_those_that_the_kernel_counts_by),
		cmocka_unit_test(bounds_increase_at_every_scale),
		cmocka_unit_test(quantiles_are_exact_at_limits_and_even_between_them),
		cmocka_unit_test(quantiles_at_the_edges),
		cmocka_unit_test(explicit_bounds_are_raw_and_inclusive),
		cmocka_unit_test(the_middle_is_as_far_from_both_bounds),
		cmocka_unit_test(an_explicit_histogram_counts_neighbours_together),
		cmocka_unit_test(without_a_range_each_bucket_is_explicit),
		cmocka_unit_test(so_many_neighbours_are_merged_that_no_more_buckets_are_left),
		cmocka_unit_test(a_sum_has_to_be_between_the_bounds_of_its_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
