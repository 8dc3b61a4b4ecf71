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

	metric_init_series(&metric, NULL);
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
	assert_false(second->is_ended);
	/* In the batch after that, it says that it has ended. */
	series_begin(&metric);
	series_end(&metric);
	assert_int_equal(metric.n_series, 1);
	assert_false(second->is_present);
	assert_true(second->is_ended);
	series_begin(&metric);
	series_end(&metric);
	assert_int_equal(metric.n_series, 0);
	metric_done_series(&metric);
}

static void dropped_attributes_make_series_one(void **state)
{
	const struct assignment assignment = { "drop_attributes", "unit, other", "c", 1, 0 };
	struct metric metric = { .kind = METRIC_SUM, .divisor = 1 };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct attributes attributes;
	struct series *series;

	metric_init_series(&metric, NULL);
	assert_ok(setting_table_set(&metric_settings, &metric, &assignment, &diag));
	assert_ptr_equal(get(&metric, "a.service", 100), get(&metric, "b.service", 100));
	attributes_init(&attributes);
	assert_ok(attributes_add_text(&attributes, "zone", "z", 1));
	assert_ok(attributes_add_number(&attributes, "other", 1));
	assert_ok(attributes_add_text(&attributes, "unit", "c.service", 9));
	assert_ok(attributes_add_text(&attributes, "area", "a", 1));
	assert_ok(series_get(&metric, &attributes, 100, &series));
	assert_int_equal(series->n_attributes, 2);
	assert_string_equal(series->attributes[0].name, "area");
	assert_string_equal(series->attributes[1].text, "z");
	metric_done_series(&metric);
	setting_table_done(&metric_settings, &metric);
}

static void a_series_that_comes_back_in_time_goes_on(void **state)
{
	struct metric metric = { .kind = METRIC_SUM, .divisor = 1 };
	struct series *series;

	metric_init_series(&metric, NULL);
	series = get(&metric, "a.service", 100);
	series_begin(&metric);
	series_add(series, 5);
	series_end(&metric);
	series_put(series);
	series_begin(&metric);
	series_end(&metric);
	assert_true(series->is_ended);
	series_begin(&metric);
	assert_ptr_equal(get(&metric, "a.service", 300), series);
	series_add(series, 2);
	series_end(&metric);
	assert_true(series->is_present);
	assert_false(series->is_ended);
	assert_int_equal(series->start_ns, 100);
	assert_int_equal(series->total.sum, 7);
	metric_done_series(&metric);
}

/* 100 numbers of 1 for as many series. Returns their sum over all series of metric. */
static uint64_t fill(struct metric *metric)
{
	uint64_t sum = 0;
	char name[16];

	series_begin(metric);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%d", i);
		series_add(get(metric, name, 1), 1);
	}
	series_end(metric);
	for (size_t i = 0; i < metric->n_series; i++)
		sum += metric->series[i]->total.sum;
	return sum;
}

static void over_the_limit_nothing_is_lost(void **state)
{
	struct metric metric = { .kind = METRIC_SUM, .divisor = 1 };
	struct budget budget = { .limit_series = 10 };
	const struct series *overflow;

	metric_init_series(&metric, &budget);
	assert_int_equal(fill(&metric), 100);
	assert_int_equal(metric.n_series, 11);
	assert_int_equal(budget.n_series, 10);
	overflow = metric.overflow[OVERFLOW_SERIES];
	assert_int_equal(overflow->total.sum, 90);
	assert_int_equal(overflow->n_attributes, 2);
	assert_string_equal(overflow->attributes[0].name, "bpfpush.overflow.reason");
	assert_string_equal(overflow->attributes[0].text, "series");
	assert_string_equal(overflow->attributes[1].name, "otel.metric.overflow");
	assert_int_equal(overflow->attributes[1].type, ATTRIBUTE_FLAG);
	metric_done_series(&metric);
	assert_int_equal(budget.n_series, 0);
	assert_int_equal(budget.series_bytes, 0);
}

static void metrics_share_the_budget_in_series_and_in_bytes(void **state)
{
	struct metric metrics[2] = { { .kind = METRIC_SUM, .divisor = 1 },
				     { .kind = METRIC_HISTOGRAM, .layout = { 0, 0, 48 } } };
	struct budget budget = { .limit_bytes = 8000, .table_bytes = 1000 };
	size_t n;

	metric_init_series(&metrics[0], &budget);
	metric_init_series(&metrics[1], &budget);
	assert_int_equal(fill(&metrics[0]), 100);
	n = budget.n_series;
	assert_in_range(n, 10, 50);
	assert_in_range(budget.series_bytes, 7000, 7500); /* the last one and the overflow series go beyond */
	assert_int_equal(fill(&metrics[1]), 100);
	assert_int_equal(metrics[1].n_series, 1);
	assert_int_equal(budget.n_series, n);
	/* What exporters keep counts too. */
	budget.limit_bytes = budget.series_bytes + budget.table_bytes + 400;
	assert_true(budget_has_room(&budget));
	assert_non_null(series_cache_new(metrics[0].series[0], &n, NULL, 400));
	assert_false(budget_has_room(&budget));
	metric_done_series(&metrics[0]);
	metric_done_series(&metrics[1]);
	assert_int_equal(budget.series_bytes, 0);
}

static void what_nothing_feeds_leaves_room_at_once(void **state)
{
	struct metric metric = { .kind = METRIC_SUM, .divisor = 1 };
	struct budget budget = { .limit_series = 2 };
	struct series *first;

	metric_init_series(&metric, &budget);
	first = get(&metric, "a", 1);
	get(&metric, "b", 1);
	assert_true(series_is_overflow(get(&metric, "c", 1)));
	series_put(first);
	assert_false(series_is_overflow(get(&metric, "d", 1)));
	assert_int_equal(budget.n_series, 2);
	metric_done_series(&metric);
}

static void the_two_overflows_are_two_series(void **state)
{
	struct metric metric = { .kind = METRIC_SUM, .divisor = 1 };
	struct series *table, *spent;

	metric_init_series(&metric, NULL);
	assert_ok(series_get_overflow(&metric, OVERFLOW_TABLE, 1, &table));
	assert_ok(series_get_overflow(&metric, OVERFLOW_SERIES, 1, &spent));
	assert_ptr_not_equal(table, spent);
	assert_string_equal(table->attributes[0].text, "table");
	assert_int_equal(metric.budget->n_series, 0);
	metric_done_series(&metric);
}

static void a_gauge_is_the_sum_of_its_sources_now(void **state)
{
	struct metric metric = { .kind = METRIC_GAUGE, .divisor = 1 };
	struct series *series;

	metric_init_series(&metric, NULL);
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

	metric_init_series(&metric, NULL);
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

	metric_init_series(&metric, NULL);
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
	for (int round = 0; round < 2; round++) {
		series_begin(&metric);
		series_end(&metric);
	}
	assert_int_equal(metric.n_series, 0);
	metric_done_series(&metric);
}

static void layouts_are_equal_in_all_or_not_at_all(void **state)
{
	static const struct histogram_bound one[] = { { 1, 1 }, { 2, 2 } }, copy[] = { { 1, 1 }, { 2, 2 } };
	static const struct histogram_bound other_upper[] = { { 1, 1 }, { 3, 2 } };
	static const struct histogram_bound other_key[] = { { 1, 1 }, { 2, 3 } };
	const struct histogram_layout layout = { 0, -1, 3, false, one };
	const struct histogram_layout others[] = {
		{ 1, -1, 3, false, one },	  { 0, 0, 3, false, one },    { 0, -1, 2, false, one },
		{ 0, -1, 3, true, one },	  { 0, -1, 3, false, NULL }, { 0, -1, 3, false, other_upper },
		{ 0, -1, 3, false, other_key },
	};

	assert_true(histogram_layouts_equal(&layout, &(struct histogram_layout){ 0, -1, 3, false, copy }));
	assert_true(histogram_layouts_equal(&others[4], &others[4]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_false(histogram_layouts_equal(&layout, &others[i]));
		assert_false(histogram_layouts_equal(&others[i], &layout));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sources_of_one_name_are_one_series),
		cmocka_unit_test(dropped_attributes_make_series_one),
		cmocka_unit_test(a_series_that_comes_back_in_time_goes_on),
		cmocka_unit_test(over_the_limit_nothing_is_lost),
		cmocka_unit_test(metrics_share_the_budget_in_series_and_in_bytes),
		cmocka_unit_test(what_nothing_feeds_leaves_room_at_once),
		cmocka_unit_test(the_two_overflows_are_two_series),
		cmocka_unit_test(a_gauge_is_the_sum_of_its_sources_now),
		cmocka_unit_test(a_histogram_counts_what_its_buckets_hold),
		cmocka_unit_test(many_series_come_and_go),
		cmocka_unit_test(layouts_are_equal_in_all_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
