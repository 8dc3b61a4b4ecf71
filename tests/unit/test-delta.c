/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdio.h>

#include "delta-rig.h"

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
	assert_true(f.metric.series[0]->is_ended);
	assert_int_equal(f.rows->n_live, 0);
	begin(&f);
	end(&f, 4);
	assert_int_equal(f.metric.n_series, 0);
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

static void a_metric_that_is_disabled_has_no_series(void **state)
{
	for (enum metric_kind kind = METRIC_SUM; kind <= METRIC_HISTOGRAM; kind++) {
		struct fixture f;

		setup(&f, kind, 64);
		f.metric.is_disabled = true;
		begin(&f);
		*touch(&f, 1) += 5;
		end(&f, 1);
		assert_int_equal(f.metric.n_series, 0);
		/* What was counted meanwhile is not made up for. */
		f.metric.is_disabled = false;
		begin(&f);
		*touch(&f, 1) += 7;
		end(&f, 2);
		assert_int_equal(f.metric.n_series, 1);
		assert_int_equal(f.metric.series[0]->total.sum, kind == METRIC_GAUGE ? 7 : 2);
		teardown(&f);
	}
}

static void the_overflow_row_is_told_apart(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	begin(&f);
	*touch(&f, 1) += 1;
	*rows_cells(f.rows, ROWS_OVERFLOW) += 6;
	end(&f, 1);
	assert_null(f.metric.overflow[OVERFLOW_SERIES]);
	assert_non_null(f.metric.overflow[OVERFLOW_TABLE]);
	assert_int_equal(f.metric.overflow[OVERFLOW_TABLE]->total.sum, 6);
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

static void a_tally_may_be_below_zero(void **state)
{
	static const int64_t steps[] = { 10, -3, 0, INT64_MIN, 5 };
	struct fixture f;

	setup(&f, METRIC_GAUGE, 64);
	f.of.is_tally = f.of.is_signed = true;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		uint64_t cell = f.rows->n_live ? rows_previous(f.rows, 1)[0] : 0;

		begin(&f);
		*touch(&f, 1) += cell + (uint64_t)steps[i];
		end(&f, 1);
		assert_int_equal(f.metric.series[0]->total.sum, steps[i]);
	}
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

static const struct series *find_series(const struct fixture *f, int64_t number)
{
	for (size_t i = 0; i < f->metric.n_series; i++)
		if (!series_is_overflow(f->metric.series[i]) && f->metric.series[i]->attributes[0].number == number)
			return f->metric.series[i];
	return NULL;
}

static void a_row_in_overflow_gets_its_name_when_there_is_room(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	f.budget.limit_series = 1;
	begin(&f);
	*touch(&f, 1) += 10;
	*touch(&f, 2) += 20;
	end(&f, 1);
	assert_int_equal(f.metric.overflow[OVERFLOW_SERIES]->total.sum, 20);
	begin(&f);
	*touch(&f, 1) += 10;
	*touch(&f, 2) += 21;
	end(&f, 2);
	assert_int_equal(f.metric.overflow[OVERFLOW_SERIES]->total.sum, 21);
	/* Key 1 ends and makes room at once. */
	begin(&f);
	*touch(&f, 2) += 25;
	end(&f, 3);
	assert_non_null(find_series(&f, 2));
	assert_int_equal(find_series(&f, 2)->total.sum, 4);
	assert_int_equal(find_series(&f, 2)->start_ns, 3);
	assert_true(f.metric.overflow[OVERFLOW_SERIES]->is_ended);
	assert_true(find_series(&f, 1)->is_ended);
	begin(&f);
	*touch(&f, 2) += 26;
	end(&f, 4);
	assert_int_equal(f.metric.n_series, 1);
	assert_null(f.metric.overflow[OVERFLOW_SERIES]);
	assert_int_equal(find_series(&f, 2)->total.sum, 5);
	teardown(&f);
}

static void a_row_that_does_not_grow_leaves_the_overflow_too(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	f.budget.limit_series = 1;
	begin(&f);
	*touch(&f, 1) += 10;
	*touch(&f, 2) += 20;
	end(&f, 1);
	for (int i = 2; i <= 3; i++) {
		begin(&f);
		*touch(&f, 2) += 20;
		end(&f, (uint64_t)i);
		assert_null(find_series(&f, 2));
	}
	assert_int_equal(f.metric.n_series, 0);
	begin(&f);
	*touch(&f, 2) += 21;
	end(&f, 4);
	assert_int_equal(find_series(&f, 2)->total.sum, 1);
	teardown(&f);
}

static void what_has_gone_makes_room_before_what_is_new(void **state)
{
	struct fixture f;
	struct rows *old;
	uint64_t key = 5;
	uint32_t row;

	setup(&f, METRIC_SUM, 64);
	f.budget.limit_series = 1;
	begin(&f);
	*touch(&f, 1) += 10;
	end(&f, 1);
	old = f.rows;
	assert_ok(rows_new(8, 1, 1, &f.rows)); /* another map of the same collector, read before */
	begin(&f);
	rows_begin(old);
	assert_ok(rows_touch(f.rows, &key, &row));
	*rows_cells(f.rows, row) = 3;
	delta_end_gone(&f.delta, old);
	end(&f, 2);
	assert_ok(delta_compute(&f.delta, old, 2));
	assert_int_equal(find_series(&f, 5)->total.sum, 3);
	assert_null(f.metric.overflow[OVERFLOW_SERIES]);
	rows_free(old);
	teardown(&f);
}

static int64_t known_number = -1;

static int by_later_name(void *user, const void *key, const struct delta_metric *of, struct attributes *attributes)
{
	int err = attributes_add_number(attributes, "n", known_number);

	return err ? err : known_number < 0;
}

static void a_row_gets_its_name_as_soon_as_it_is_known(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	f.delta.attributes = by_later_name;
	for (uint64_t i = 1; i <= 2; i++) {
		begin(&f);
		*touch(&f, 1) += 10 * i;
		end(&f, i);
		assert_int_equal(find_series(&f, -1)->total.sum, 10 * i);
	}
	known_number = 7;
	begin(&f);
	*touch(&f, 1) += 20;
	end(&f, 3); /* not grown: it stays where it is */
	assert_non_null(find_series(&f, -1));
	begin(&f);
	*touch(&f, 1) += 23;
	end(&f, 4);
	assert_int_equal(find_series(&f, 7)->total.sum, 3);
	assert_true(find_series(&f, -1)->is_ended);
	known_number = -1;
	teardown(&f);
}

static int n_decoded;

static int even_is_unwanted(void *user, const void *key, const struct delta_metric *of, struct attributes *attributes)
{
	uint64_t number;

	n_decoded++;
	memcpy(&number, key, sizeof(number));
	return number % 2 ? attributes_add_number(attributes, "n", (int64_t)number) : DELTA_UNWANTED;
}

static void what_is_unwanted_is_decoded_once_and_counts_nowhere(void **state)
{
	struct fixture f;

	setup(&f, METRIC_SUM, 64);
	f.delta.attributes = even_is_unwanted;
	n_decoded = 0;
	for (uint64_t round = 1; round < 4; round++) {
		uint32_t index;

		begin(&f);
		touch(&f, 1)[0] = 10 * round;
		touch(&f, 2)[0] = 1000 * round;
		end(&f, 0);
		assert_int_equal(n_decoded, 2);
		assert_int_equal(f.metric.n_series, 1);
		assert_int_equal(f.metric.series[0]->total.sum, 10 * round);
		assert_int_equal(f.of.grown, 1010); /* but it has happened */
		index = rows_find(f.rows, &(uint64_t){ 2 });
		assert_int_equal(rows_previous(f.rows, index)[0], 1000 * round);
	}
	/* The row goes; another key in its place is not unwanted. */
	begin(&f);
	touch(&f, 1)[0] = 30;
	end(&f, 0);
	begin(&f);
	touch(&f, 1)[0] = 30;
	touch(&f, 3)[0] = 5;
	end(&f, 0);
	assert_int_equal(f.metric.n_series, 2);
	teardown(&f);
}

static void a_held_gauge_stays_as_it_was(void **state)
{
	struct fixture f;

	setup(&f, METRIC_GAUGE, 64);
	for (int i = 0; i < 4; i++) {
		f.metric.is_held = i == 1;
		rows_begin(f.rows);
		*touch(&f, 1) += 5 + i;
		series_begin(&f.metric);
		if (i == 1)
			*touch(&f, 2) += 1; /* another map that feeds the gauge, read all the same */
		end(&f, 1);
		assert_true(f.metric.series[0]->is_present);
		assert_int_equal(f.metric.series[0]->total.sum, i == 1 ? 5 : 5 + i);
		assert_false(f.metric.is_held);
	}
	teardown(&f);
}

static void growth_starts_from_the_baseline(void **state)
{
	for (int is_tally = 0; is_tally < 2; is_tally++) {
		struct fixture f;

		setup(&f, is_tally ? METRIC_GAUGE : METRIC_SUM, 64);
		f.of.is_tally = is_tally;
		rows_begin(f.rows);
		*touch(&f, 1) += 1000;
		*rows_cells(f.rows, ROWS_OVERFLOW) += 7;
		delta_baseline(f.rows);
		begin(&f);
		*touch(&f, 1) += 1005;
		*rows_cells(f.rows, ROWS_OVERFLOW) += 7;
		end(&f, 8);
		assert_int_equal(f.metric.n_series, 1);
		assert_int_equal(f.metric.series[0]->total.sum, 5);
		teardown(&f);
	}
}

/* The next reading is of another map, in which each key has something of its own, or is not there. */
static void what_rows_leave_with_is_growth_beyond_the_new_baseline(void **state)
{
	for (unsigned int bits = 16; bits <= 64; bits *= 2) {
		struct fixture f;

		setup(&f, METRIC_SUM, (uint8_t)bits);
		begin(&f);
		for (uint64_t key = 1; key <= 4; key++)
			*touch(&f, key) += 100 * key;
		end(&f, 8);
		rows_begin(f.rows);
		for (uint64_t key = 1; key <= 3; key++) /* the fourth is gone */
			*touch(&f, key) += 100 * key + 10;
		*rows_cells(f.rows, ROWS_OVERFLOW) += 7;
		delta_leave(&f.delta, f.rows);
		rows_begin(f.rows);
		*touch(&f, 1) += 5000;
		*touch(&f, 5) += 6000;
		rows_end(f.rows);
		delta_baseline(f.rows);
		begin(&f);
		*touch(&f, 1) += 5001;
		*touch(&f, 5) += 6002;
		rows_end(f.rows);
		end(&f, 9);
		for (size_t i = 0; i < f.metric.n_series; i++) {
			const struct series *series = f.metric.series[i];
			int64_t key = series->n_attributes ? series->attributes[0].number : 0;

			if (key == 4)
				assert_false(series->is_present && series->n_sources);
			else if (key == 5 || series_is_overflow(series))
				assert_int_equal(series->total.sum, key == 5 ? 2 : 7);
			else
				assert_int_equal(series->total.sum, 100 * key + 10 + (key == 1));
			assert_int_equal(series->start_ns, key == 5 || series_is_overflow(series) ? 9 : 8);
		}
		assert_int_equal(f.metric.n_series, 6);
		/* Those that are not there stay. */
		begin(&f);
		rows_end(f.rows);
		assert_int_equal(f.rows->n_touched, 4);
		end(&f, 10);
		teardown(&f);
	}
}

static void levels_and_tallies_are_those_of_the_new_map(void **state)
{
	for (int is_tally = 0; is_tally < 2; is_tally++) {
		struct fixture f;

		setup(&f, METRIC_GAUGE, 64);
		f.of.is_tally = is_tally;
		begin(&f);
		*touch(&f, 1) += 100;
		*touch(&f, 2) += 100;
		end(&f, 8);
		rows_begin(f.rows);
		*touch(&f, 1) += 103;
		*touch(&f, 2) += 103;
		delta_leave(&f.delta, f.rows);
		rows_begin(f.rows);
		*touch(&f, 1) += 50;
		rows_end(f.rows);
		delta_baseline(f.rows);
		begin(&f);
		*touch(&f, 1) += 54;
		rows_end(f.rows);
		end(&f, 9);
		assert_int_equal(f.rows->n_live, 1);
		assert_int_equal(f.metric.series[0]->total.sum, is_tally ? 4 : 54);
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
		assert_ok(rows_touch(f.rows, &key, &kept));
		rows_cells(f.rows, kept)[0] = round + 1;
		for (uint64_t i = 0; i < 700; i++)
			*touch(&f, round * 100000 + i) += 1;
		end(&f, 1);
		assert_int_equal(f.rows->n_live, 701);
		assert_ok(rows_touch(f.rows, &key, &index));
		assert_int_equal(index, kept);
	}
	assert_true(f.rows->n < 2 * 701 + 2);
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
		cmocka_unit_test(a_metric_that_is_disabled_has_no_series),
		cmocka_unit_test(the_overflow_row_is_told_apart),
		cmocka_unit_test(gauges_show_levels_and_tallies),
		cmocka_unit_test(a_tally_may_be_below_zero),
		cmocka_unit_test(a_level_has_the_width_and_the_sign_of_its_member),
		cmocka_unit_test(a_row_in_overflow_gets_its_name_when_there_is_room),
		cmocka_unit_test(a_row_that_does_not_grow_leaves_the_overflow_too),
		cmocka_unit_test(what_has_gone_makes_room_before_what_is_new),
		cmocka_unit_test(a_row_gets_its_name_as_soon_as_it_is_known),
		cmocka_unit_test(what_is_unwanted_is_decoded_once_and_counts_nowhere),
		cmocka_unit_test(a_held_gauge_stays_as_it_was),
		cmocka_unit_test(growth_starts_from_the_baseline),
		cmocka_unit_test(what_rows_leave_with_is_growth_beyond_the_new_baseline),
		cmocka_unit_test(levels_and_tallies_are_those_of_the_new_map),
		cmocka_unit_test(histograms_grow_bucket_by_bucket_over_a_wrap),
		cmocka_unit_test(many_keys_come_and_go_and_indices_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
