/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "metric/delta.h"
#include "metric/series.h"
#include "util/array.h"

static int no_attributes(void *user, const void *key, const struct delta_metric *of, struct attributes *attributes)
{
	return 0;
}

static void a_hidden_row_has_no_series_and_loses_no_growth(void **state)
{
	static const struct {
		uint64_t number, total;
		bool is_hidden, is_present;
	} readings[] = {
		{ 5, 5, false, true },
		{ 8, 8, true, true }, /* what it has grown by is still to be given */
		{ 8, 8, true, false },
		{ 8, 0, true, false },
		{ 12, 4, false, true },
		{ 13, 5, false, true },
	};
	struct metric metric = { .kind = METRIC_SUM, .divisor = 1 };
	struct delta_metric of = { .metric = &metric, .factor = 1, .sum_bits = 64 };
	const struct delta delta = { .metrics = &of, .n_metrics = 1, .attributes = no_attributes };
	struct rows *rows;
	uint64_t key = 1;
	uint32_t row;

	metric_init_series(&metric, NULL);
	assert_ok(rows_new(sizeof(key), 1, 1, &rows));
	array_for_each (reading, readings, ARRAY_SIZE(readings)) {
		rows_begin(rows);
		assert_ok(rows_touch(rows, &key, &row));
		rows_cells(rows, row)[0] = reading->number;
		delta_hide(&delta, rows, row, reading->is_hidden);
		series_begin(&metric);
		assert_ok(delta_compute(&delta, rows, 1));
		series_end(&metric);
		assert_int_equal(metric.n_series, reading->total != 0);
		if (!metric.n_series)
			continue;
		assert_int_equal(metric.series[0]->is_present, reading->is_present);
		assert_int_equal(metric.series[0]->total.sum, reading->total);
	}
	delta_release(&delta, rows);
	rows_free(rows);
	metric_done_series(&metric);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hidden_row_has_no_series_and_loses_no_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
