/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <math.h>

#include "export/bounds.h"

static const struct histogram_layout time_layout = { .scale = 0, .offset = -30, .n_buckets = 48 };
static const struct histogram_layout value_layout = { .scale = 0, .offset = -1, .n_buckets = 48 };

static void limits_are_those_that_the_kernel_counts_by(void **state)
{
	/* bpf/include/hist.h: exactly 1 s is in bucket 30, 1 s + 1 ns in 31; 1 in 1, 2 in 2, 3 and 4 in 3. */
	assert_true(bounds_upper(&time_layout, 0) == 0);
	assert_true(bounds_upper(&time_layout, 30) == 1.0);
	assert_true(bounds_upper(&time_layout, 31) == 2.0);
	assert_true(bounds_upper(&time_layout, 1) == 0x1p-29);
	assert_true(isinf(bounds_upper(&time_layout, 47)));
	assert_int_equal(bounds_upper_raw(&time_layout, 1000000000, 30), 1000000000);
	assert_int_equal(bounds_upper_raw(&time_layout, 1000000000, 29), 500000000);
	assert_int_equal(bounds_upper_raw(&time_layout, 1000000000, 20), 976562);
	assert_int_equal(bounds_upper_raw(&time_layout, 1000000000, 47), UINT64_MAX);
	assert_int_equal(bounds_upper_raw(&value_layout, 1, 0), 0);
	assert_int_equal(bounds_upper_raw(&value_layout, 1, 1), 1);
	assert_int_equal(bounds_upper_raw(&value_layout, 1, 3), 4);
}

static void bounds_increase_at_every_scale(void **state)
{
	for (int scale = -3; scale <= 8; scale++) {
		const struct histogram_layout layout = { .scale = scale, .offset = -20, .n_buckets = 40 };

		for (uint32_t i = 1; i < layout.n_buckets; i++)
			assert_true(bounds_upper(&layout, i) > bounds_upper(&layout, i - 1));
	}
	assert_true(bounds_upper(&(struct histogram_layout){ .scale = 1, .offset = 0, .n_buckets = 9 }, 2) == 2.0);
	assert_true(bounds_upper(&(struct histogram_layout){ .scale = -1, .offset = 0, .n_buckets = 9 }, 2) == 16.0);
}

static void quantiles_are_exact_at_limits_and_even_between_them(void **state)
{
	uint64_t bucket[48] = { [3] = 50, [5] = 50 }; /* (2, 4] and (8, 16] */
	struct numbers numbers = { .count = 100, .bucket = bucket };

	assert_true(bounds_quantile(&value_layout, &numbers, 0.5) == 4);
	assert_true(bounds_quantile(&value_layout, &numbers, 0.25) == 3);
	assert_true(bounds_quantile(&value_layout, &numbers, 0.75) == 12);
	assert_true(bounds_quantile(&value_layout, &numbers, 1) == 16);
}

static void quantiles_at_the_edges(void **state)
{
	uint64_t bucket[48] = { [0] = 1 };
	struct numbers numbers = { .count = 1, .bucket = bucket };

	assert_true(bounds_quantile(&value_layout, &numbers, 0.5) == 0);
	bucket[0] = 0;
	bucket[1] = 1;
	assert_true(bounds_quantile(&value_layout, &numbers, 1) == 1);
	assert_true(bounds_quantile(&value_layout, &numbers, 0) == 0.5);
	bucket[1] = 0;
	bucket[47] = 1;
	assert_true(bounds_quantile(&value_layout, &numbers, 0.5) == 0x1p45);
	bucket[47] = 0;
	numbers.count = 0;
	assert_true(bounds_quantile(&value_layout, &numbers, 0.5) == 0);
	numbers.count = bucket[1] = 1; /* of a coarser scale: (1, 4] */
	assert_true(bounds_quantile(&(struct histogram_layout){ .scale = -1, .n_buckets = 9 }, &numbers, 0) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_those_that_the_kernel_counts_by),
		cmocka_unit_test(bounds_increase_at_every_scale),
		cmocka_unit_test(quantiles_are_exact_at_limits_and_even_between_them),
		cmocka_unit_test(quantiles_at_the_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
