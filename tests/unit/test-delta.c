/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdio.h>

#include "metric/delta.h"
#include "metric/series.h"

static int by_number(void *user, const void *key, uint32_t metric, struct attributes *attributes)
{
	uint64_t number;

	memcpy(&number, key, sizeof(number));
	return attributes_add_number(attributes, "n", (int64_t)(number % 1000));
}

struct fixture {
	struct metric metric;
	struct delta_metric of;
	uint64_t scratch[8];
	struct delta delta;
};

static void setup(struct fixture *f, enum metric_kind kind, uint8_t bits)
{
	uint32_t n_buckets = kind == METRIC_HISTOGRAM ? 4 : 0;

	*f = (struct fixture){ .metric = { .kind = kind, .divisor = 1, .layout.n_buckets = n_buckets } };
	metric_init_series(&f->metric, 0);
	f->of = (struct delta_metric){ .metric = &f->metric, .sum_bits = bits, .bucket_bits = 32 };
	f->delta = (struct delta){ .metrics = &f->of, .n_metrics = 1, .scratch = f->scratch, .attributes = by_number };
	assert_ok(rows_new(8, 1 + n_buckets, 1, &f->delta.rows));
}

static void teardown(struct fixture *f)
{
	delta_release(&f->delta);
	series_begin(&f->metric);
	series_end(&f->metric);
	assert_int_equal(f->metric.n_series, 0);
	rows_free(f->delta.rows);
	metric_done_series(&f->metric);
}

static uint64_t *touch(struct fixture *f, uint64_t key)
{
	uint32_t index;

	assert_ok(rows_touch(f->delta.rows, &key, &index));
	return rows_cells(f->delta.rows, index);
}

static void begin(struct fixture *f)
{
	rows_begin(f->delta.rows);
	series_begin(&f->metric);
}

static void end(struct fixture *f, uint64_t previous_ns)
{
	assert_ok(delta_compute(&f->delta, previous_ns));
	series_end(&f->metric);
}

static void growth_is_modulo_the_width_and_a_fall_is_a_reset(void **state)
{
	static const struct {
		uint64_t now, before;
		unsigned int bits;
		uint64_t want;
	} cases[] = {
		{ 7, 5, 64, 2 },	  { 5, 5, 64, 0 },
		{ 3, 10, 64, 3 },	  { 2, UINT64_MAX - 1, 64, 4 },
		{ 2, 0xfffffffe, 32, 4 }, { 3, 10, 32, 3 },
		{ 1, 255, 8, 2 },	  { 0x100000002, 0xfffffffe, 32, 4 },
		{ 0, 10, 32, 0 },	  { 1, 0xfff0, 16, 0x11 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(delta_grown(cases[i].now, cases[i].before, cases[i].bits), cases[i].want);
}

static void first_sight_counts_whole_from_the_reading_before(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	begin(&f);
	*touch(&f, 1) += 5;
	end(&f, 1000);
	assert_int_equal(f.metric.n_series, 1);
	assert_int_equal(f.metric.series[0]->start_ns, 1000);
	assert_int_equal(f.metric.series[0]->delta.sum, 5);
	begin(&f);
	*touch(&f, 1) += 9;
	*touch(&f, 2) += 1;
	end(&f, 2000);
	assert_int_equal(f.metric.series[0]->delta.sum, 4);
	assert_int_equal(f.metric.series[0]->total.sum, 9);
	assert_int_equal(f.metric.series[1]->start_ns, 2000);
	teardown(&f);
}

static void a_reset_keeps_the_total_and_a_vanished_key_ends(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	begin(&f);
	*touch(&f, 1) += 100;
	end(&f, 1);
	begin(&f);
	*touch(&f, 1) += 30;
	end(&f, 2);
	assert_int_equal(f.metric.series[0]->delta.sum, 30);
	assert_int_equal(f.metric.series[0]->total.sum, 130);
	begin(&f);
	end(&f, 3);
	assert_int_equal(f.metric.n_series, 0);
	assert_int_equal(rows_n_live(f.delta.rows), 0);
	begin(&f);
	*touch(&f, 1) += 2;
	end(&f, 4);
	assert_int_equal(f.metric.series[0]->total.sum, 2);
	assert_int_equal(f.metric.series[0]->start_ns, 4);
	teardown(&f);
}

static void rows_of_one_name_add_up_and_one_that_goes_takes_nothing(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	begin(&f);
	*touch(&f, 1) += 10;
	*touch(&f, 1001) += 20; /* the same attributes */
	end(&f, 1);
	assert_int_equal(f.metric.n_series, 1);
	begin(&f);
	*touch(&f, 1) += 11;
	end(&f, 2);
	assert_int_equal(f.metric.series[0]->total.sum, 31);
	assert_int_equal(f.metric.series[0]->delta.sum, 1);
	teardown(&f);
}

static void what_never_grew_has_no_series(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	begin(&f);
	touch(&f, 1);
	end(&f, 1);
	assert_int_equal(f.metric.n_series, 0);
	teardown(&f);
}

static void the_overflow_row_is_told_apart(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	begin(&f);
	*touch(&f, 1) += 1;
	*rows_cells(f.delta.rows, ROWS_OVERFLOW) += 6;
	end(&f, 1);
	assert_non_null(f.metric.overflow);
	assert_int_equal(f.metric.overflow->total.sum, 6);
	teardown(&f);
}

static void gauges_show_levels_and_tallies(void **state)
{
	struct fixture f;

	setup(&f, METRIC_GAUGE, 64);
	for (int i = 0; i < 3; i++) {
		begin(&f);
		*touch(&f, 1) += 4;
		end(&f, 1);
		assert_int_equal(f.metric.series[0]->total.sum, 4);
	}
	f.of.is_tally = true;
	begin(&f);
	*touch(&f, 1) += 10;
	end(&f, 1);
	assert_int_equal(f.metric.series[0]->total.sum, 6);
	begin(&f);
	*touch(&f, 1) += 10;
	end(&f, 1);
	assert_int_equal(f.metric.series[0]->total.sum, 0);
	assert_true(f.metric.series[0]->is_present);
	teardown(&f);
}

static void a_level_has_the_width_and_the_sign_of_its_member(void **state)
{
	static const struct {
		uint64_t cell;
		uint8_t bits;
		bool is_signed;
		int64_t want;
	} cases[] = {
		{ 0x100000003, 32, false, 3 }, /* begun on one CPU, ended on another */
		{ 0xfffffffd, 32, true, -3 },
		{ 0x1fffffffd, 32, true, -3 },
		{ UINT64_MAX, 64, true, -1 },
		{ 0xff, 8, false, 255 },
		{ 7, 64, false, 7 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f;

		setup(&f, METRIC_GAUGE, cases[i].bits);
		f.of.is_signed = cases[i].is_signed;
		begin(&f);
		*touch(&f, 1) += cases[i].cell;
		end(&f, 1);
		assert_int_equal((int64_t)f.metric.series[0]->total.sum, cases[i].want);
		teardown(&f);
	}
}

static void histograms_grow_bucket_by_bucket_over_a_wrap(void **state)
{
	struct fixture f;
	uint64_t *cell;

	setup(&f, METRIC_HISTOGRAM, 64);
	begin(&f);
	cell = touch(&f, 1);
	cell[0] = 100, cell[2] = 0xffffffff, cell[3] = 1;
	end(&f, 1);
	begin(&f);
	cell = touch(&f, 1);
	cell[0] = 130, cell[2] = 0x100000001, cell[3] = 1, cell[4] = 2;
	end(&f, 2);
	assert_int_equal(f.metric.series[0]->delta.sum, 30);
	assert_int_equal(f.metric.series[0]->delta.count, 4);
	assert_int_equal(f.metric.series[0]->delta.bucket[1], 2);
	assert_int_equal(f.metric.series[0]->delta.bucket[2], 0);
	assert_int_equal(f.metric.series[0]->delta.bucket[3], 2);
	assert_int_equal(f.metric.series[0]->total.count, 0xffffffffull + 1 + 4);
	teardown(&f);
}

static void many_keys_come_and_go_and_indices_stay(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	for (uint64_t round = 0; round < 6; round++) {
		uint32_t kept, index;
		uint64_t key = 999;

		begin(&f);
		assert_ok(rows_touch(f.delta.rows, &key, &kept));
		rows_cells(f.delta.rows, kept)[0] = round + 1;
		for (uint64_t i = 0; i < 700; i++)
			*touch(&f, round * 100000 + i) += 1;
		end(&f, 1);
		assert_int_equal(rows_n_live(f.delta.rows), 701);
		assert_ok(rows_touch(f.delta.rows, &key, &index));
		assert_int_equal(index, kept);
	}
	assert_true(rows_n(f.delta.rows) < 2 * 701 + 2);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_is_modulo_the_width_and_a_fall_is_a_reset),
		cmocka_unit_test(first_sight_counts_whole_from_the_reading_before),
		cmocka_unit_test(a_reset_keeps_the_total_and_a_vanished_key_ends),
		cmocka_unit_test(rows_of_one_name_add_up_and_one_that_goes_takes_nothing),
		cmocka_unit_test(what_never_grew_has_no_series),
		cmocka_unit_test(the_overflow_row_is_told_apart),
		cmocka_unit_test(gauges_show_levels_and_tallies),
		cmocka_unit_test(a_level_has_the_width_and_the_sign_of_its_member),
		cmocka_unit_test(histograms_grow_bucket_by_bucket_over_a_wrap),
		cmocka_unit_test(many_keys_come_and_go_and_indices_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
