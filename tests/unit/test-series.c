/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "metric/series.h"

static struct series *get(struct metric *metric, const char *value, uint64_t start_ns)
{
	struct attributes attributes;
	struct series *series;

	attributes_init(&attributes);
	assert_ok(attributes_add_text(&attributes, "unit", value, strlen(value)));
	assert_ok(series_get(metric, &attributes, start_ns, &series));
	return series;
}

static void two_sources_of_one_name_are_one_series(void **state)
{
	struct metric metric = { .kind = METRIC_SUM, .divisor = 1 };
	struct series *first, *second;

	metric_init_series(&metric, 0);
	first = get(&metric, "a.service", 100);
	second = get(&metric, "a.service", 200);
	assert_ptr_equal(first, second);
	assert_int_equal(first->start_ns, 100);

	series_begin(&metric);
	series_add(first, 5);
	series_add(second, 7);
	series_put(first);
	series_end(&metric);
	assert_int_equal(first->total.sum, 12);
	assert_int_equal(first->delta.sum, 12);

	/* One source is gone: the total stays. */
	series_begin(&metric);
	series_end(&metric);
	assert_true(second->is_present);
	assert_int_equal(second->total.sum, 12);
	assert_int_equal(second->delta.sum, 0);

	/* Both are gone: what grew last is still shown once, then it ends. */
	series_begin(&metric);
	series_add(second, 1);
	series_put(second);
	series_end(&metric);
	assert_int_equal(metric.n_series, 1);
	assert_true(second->is_present);
	series_begin(&metric);
	series_end(&metric);
	assert_int_equal(metric.n_series, 0);
	metric_done_series(&metric);
}

static void over_the_limit_nothing_is_lost(void **state)
{
	struct metric metric = { .kind = METRIC_SUM, .divisor = 1 };
	uint64_t sum = 0;
	char name[16];

	metric_init_series(&metric, 10);
	series_begin(&metric);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%d", i);
		series_add(get(&metric, name, 1), 1);
	}
	series_end(&metric);
	assert_int_equal(metric.n_series, 10);
	assert_non_null(metric.overflow);
	assert_int_equal(metric.overflow->total.sum, 91);
	assert_string_equal(metric.overflow->attributes[0].name, "otel.metric.overflow");
	assert_int_equal(metric.overflow->attributes[0].type, ATTRIBUTE_FLAG);
	for (size_t i = 0; i < metric.n_series; i++)
		sum += metric.series[i]->total.sum;
	assert_int_equal(sum, 100);
	metric_done_series(&metric);
}

static void a_gauge_is_the_sum_of_its_sources_now(void **state)
{
	struct metric metric = { .kind = METRIC_GAUGE, .divisor = 1 };
	struct series *series;

	metric_init_series(&metric, 0);
	series = get(&metric, "x", 1);
	for (int round = 0; round < 3; round++) {
		series_begin(&metric);
		series_add(series, 2);
		series_add(series, 3);
		series_end(&metric);
		assert_int_equal(series->total.sum, 5);
	}
	metric_done_series(&metric);
}

static void a_histogram_counts_what_its_buckets_hold(void **state)
{
	struct metric metric = { .kind = METRIC_HISTOGRAM, .divisor = 1, .layout = { .n_buckets = 3 } };
	const uint64_t bucket[3] = { 1, 0, 4 };
	struct series *series;

	metric_init_series(&metric, 0);
	series = get(&metric, "x", 1);
	series_begin(&metric);
	series_add_histogram(series, 20, bucket);
	series_add_histogram(series, 20, bucket);
	series_end(&metric);
	assert_int_equal(series->delta.count, 10);
	assert_int_equal(series->delta.bucket[2], 8);
	series_begin(&metric);
	series_end(&metric);
	assert_int_equal(series->delta.count, 0);
	assert_int_equal(series->delta.bucket[2], 0);
	assert_int_equal(series->total.count, 10);
	assert_int_equal(series->total.sum, 40);
	metric_done_series(&metric);
}

static void many_series_come_and_go(void **state)
{
	struct metric metric = { .kind = METRIC_SUM, .divisor = 1 };
	struct series *series[500];
	char name[16];

	metric_init_series(&metric, 2000);
	for (int round = 0; round < 5; round++) {
		series_begin(&metric);
		for (int i = 0; i < 500; i++) {
			snprintf(name, sizeof(name), "%d.%d", round, i);
			series[i] = get(&metric, name, 1);
			series_add(series[i], (uint64_t)i);
		}
		series_end(&metric);
		for (int i = 0; i < 500; i++) {
			snprintf(name, sizeof(name), "%d.%d", round, i);
			assert_ptr_equal(get(&metric, name, 1), series[i]);
			series_put(series[i]);
			series_put(series[i]);
		}
	}
	series_begin(&metric);
	series_end(&metric);
	assert_int_equal(metric.n_series, 0);
	metric_done_series(&metric);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sources_of_one_name_are_one_series),
		cmocka_unit_test(over_the_limit_nothing_is_lost),
		cmocka_unit_test(a_gauge_is_the_sum_of_its_sources_now),
		cmocka_unit_test(a_histogram_counts_what_its_buckets_hold),
		cmocka_unit_test(many_series_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
