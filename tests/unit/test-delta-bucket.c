/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "delta-rig.h"

static int by_nothing(void *user, const void *key, const struct delta_metric *of, struct attributes *attributes)
{
	return 0;
}

/* Keys below 100 are buckets, 100 is the sum; all feed one series. */
static void a_row_can_be_one_bucket_of_a_histogram(void **state)
{
	static const struct histogram_bound bounds[] = { { 10, 1 }, { 20, 2 }, { 80, 8 } };
	static const uint64_t wanted[] = { 3, 4, 15, 50 };
	struct fixture f;

	setup(&f, METRIC_HISTOGRAM, 64);
	rows_free(f.rows);
	assert_ok(rows_new(8, 1, 1, &f.rows));
	f.delta.attributes = by_nothing;
	f.metric.layout.bounds = bounds;
	f.of.factor = 10;
	f.of.bucket = (struct delta_bucket){ .size_bytes = 2, .has_sum = true, .sum_key = 100 };
	for (uint64_t round = 1; round <= 2; round++) {
		begin(&f);
		*touch(&f, 0) += round; /* below the first bound */
		*touch(&f, 1) += 2 * round;
		*touch(&f, 2) += 4 * round;
		*touch(&f, 3) += 7 * round; /* between two */
		*touch(&f, 8) += 8 * round;
		*touch(&f, 9) += 20 * round; /* above the last */
		*touch(&f, 65535) += 30 * round;
		*touch(&f, 100) += 1000 * round; /* the sum, which is multiplied */
		end(&f, 1000 * round);
		assert_int_equal(f.metric.n_series, 1);
		assert_int_equal(f.metric.series[0]->n_sources, 8);
		assert_int_equal(f.metric.series[0]->delta.sum, 10000);
		assert_int_equal(f.metric.series[0]->total.sum, 10000 * round);
		assert_int_equal(f.metric.series[0]->total.count, 72 * round);
		for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
			assert_int_equal(f.metric.series[0]->delta.bucket[i], wanted[i]);
			assert_int_equal(f.metric.series[0]->total.bucket[i], wanted[i] * round);
		}
	}
	teardown(&f);
}

static void numbers_and_levels_are_multiplied(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 32);
	f.of.factor = 1024;
	begin(&f);
	*touch(&f, 1) += 5;
	end(&f, 1000);
	assert_int_equal(f.metric.series[0]->total.sum, 5120);
	assert_int_equal(f.of.grown, 5); /* the runs of a program, perhaps */
	teardown(&f);
	setup(&f, METRIC_GAUGE, 32);
	f.of.factor = 3;
	f.of.is_signed = true;
	begin(&f);
	*touch(&f, 1) = (uint32_t)-7;
	end(&f, 1000);
	assert_int_equal((int64_t)f.metric.series[0]->total.sum, -21);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_can_be_one_bucket_of_a_histogram),
		cmocka_unit_test(numbers_and_levels_are_multiplied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
