/* SPDX-License-Identifier: Apache-2.0 */
#include "lines-rig.h"

#include <errno.h>
#include <stdio.h>

#include "alloc.h"
#include "logged.h"

static void sums_of_seconds_lose_nothing_to_rounding(void **state)
{
	struct rig rig;
	struct series *time;
	uint64_t seen = 0, raw = 0;

	rig_init(&rig, DIALECT_PLAIN, "{metric}");
	rig.metrics[0].unit = "s";
	rig.metrics[0].divisor = 1000000000;
	time = SERIES(&rig, 0);
	for (uint64_t i = 1; i <= 1000; i++) {
		const char *number;

		begin(&rig);
		series_add(time, i * 7 + 333);
		raw += i * 7 + 333;
		assert_ok(push(&rig, 0));
		number = strchr(buf_text(&rig.out), ':');
		if (number) {
			assert_memory_equal(rig.out.data, "a.sum_us:", 9);
			seen += strtoull(number + 1, NULL, 10);
		}
		assert_int_equal(seen, raw / 1000);
	}
	assert_int_equal(seen, 3836);
	rig_done(&rig);
}

static void metrics_with_one_name_are_told_apart_by_their_collectors(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{metric}");
	rig.metrics[1] = rig.metrics[0];
	rig.metrics[0].scope = "first";
	rig.metrics[1].scope = "second";
	SERIES(&rig, 0);
	begin(&rig);
	log_catch();
	assert_ok(push(&rig, 0));
	assert_string_equal(log_caught(),
			    "<4>exporter test: the lines of metric a.sum (collector second) could be taken for those of metric a.sum "
			    "(collector first), so eight digits are added to the names of its series; rename one of the two metrics\n");
	rig_done(&rig);
}

static void seconds_may_be_finer_than_they_are_counted(void **state)
{
	struct rig rig;
	struct series *time;

	rig_init(&rig, DIALECT_PLAIN, "{metric}");
	rig.metrics[0].unit = "s";
	rig.metrics[0].divisor = 1024; /* neither divides the other */
	rig.lines.time_unit = LINES_MILLISECONDS;
	time = SERIES(&rig, 0);
	begin(&rig);
	series_add(time, 1);
	assert_lines(&rig, 0, ""); /* 0.98 ms */
	begin(&rig);
	series_add(time, 1);
	assert_lines(&rig, 0, "a.sum_ms:1|c");
	begin(&rig);
	series_add(time, 1022);
	assert_lines(&rig, 0, "a.sum_ms:999|c");
	rig_done(&rig);
}

static void counters_that_did_not_grow_are_silent_unless_asked_for(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{metric}");
	begin(&rig);
	series_add(SERIES(&rig, 0), 5);
	assert_lines(&rig, 0, "a.sum:5|c");
	assert_int_equal(rig.n_points, 1);
	begin(&rig);
	series_add(SERIES(&rig, 0), 0);
	assert_lines(&rig, 0, "");
	assert_int_equal(rig.n_points, 1);
	lines_done(&rig.lines);
	rig.lines.sends_unchanged = true;
	begin(&rig);
	series_add(SERIES(&rig, 0), 0);
	assert_lines(&rig, 0, "a.sum:0|c");
	rig_done(&rig);
}

static void a_gauge_is_sent_when_it_changes_or_may_have_been_lost(void **state)
{
	struct rig rig;
	struct series *gauge;
	static const struct {
		uint64_t value;
		unsigned int losses;
		const char *expected;
	} steps[] = {
		{ 5, 0, "a.gauge:5|g" }, { 5, 0, "" },		  { 7, 0, "a.gauge:7|g" }, { 7, 1, "a.gauge:7|g" },
		{ 7, 1, "" },		 { 0, 1, "a.gauge:0|g" }, { 0, 1, "" },
	};

	rig_init(&rig, DIALECT_PLAIN, "{metric}");
	gauge = SERIES(&rig, 1);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		begin(&rig);
		series_add(gauge, steps[i].value);
		assert_lines(&rig, steps[i].losses, steps[i].expected);
	}
	rig_done(&rig);
}

static void no_gauge_has_a_sign(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{metric}");
	begin(&rig);
	series_add(SERIES(&rig, 1), (uint64_t)-3);
	assert_lines(&rig, 0, "");
	assert_int_equal(rig.exporter.stats.points[POINTS_UNSUPPORTED], 1);
	rig_done(&rig);

	rig_init(&rig, DIALECT_DOTTED, "{metric}");
	rig.metrics[1].divisor = 4;
	begin(&rig);
	series_add(SERIES(&rig, 1), (uint64_t)-3);
	assert_lines(&rig, 0, "a.gauge -0.75 1700000010\n");
	assert_int_equal(rig.exporter.stats.points[POINTS_UNSUPPORTED], 0);
	rig_done(&rig);
}

static void a_count_that_receivers_take_for_a_negative_one_is_refused(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{metric}");
	begin(&rig);
	series_add(SERIES(&rig, 0), UINT64_C(1) << 63);
	log_catch();
	assert_lines(&rig, 0, "");
	assert_non_null(strstr(log_caught(), "its receivers misread counts above 2^63-1"));
	assert_int_equal(rig.exporter.stats.points[POINTS_UNSUPPORTED], 1);
	begin(&rig);
	series_add(SERIES(&rig, 0), INT64_MAX);
	assert_lines(&rig, 0, "a.sum:9223372036854775807|c");
	rig_done(&rig);
}

static void growth_that_does_not_fit_is_refused_and_what_follows_is_right(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{metric}");
	rig.metrics[0].unit = "s"; /* whole ones, shown as nanoseconds */
	rig.lines.time_unit = LINES_NANOSECONDS;
	begin(&rig);
	series_add(SERIES(&rig, 0), UINT64_C(1) << 60); /* a multiple of 2^64 ns */
	assert_lines(&rig, 0, "");
	assert_int_equal(rig.exporter.stats.points[POINTS_UNSUPPORTED], 1);
	begin(&rig);
	series_add(SERIES(&rig, 0), 2);
	assert_lines(&rig, 0, "a.sum_ns:2000000000|c");
	rig_done(&rig);
}

static void bounds_above_all_numbers_are_sound(void **state)
{
	static uint64_t bucket[1024] = { [99] = 1, [130] = 2, [1022] = 1 };
	struct rig rig;

	for (int i = 0; i < 2; i++) {
		rig_init(&rig, i ? DIALECT_PLAIN : DIALECT_GRAPHITE, "{metric}");
		rig.tags.n_items = 0;
		rig.metrics[2].unit = "By";
		rig.metrics[2].divisor = 1;
		rig.metrics[2].layout = (struct histogram_layout){ 0, -1, 1024 };
		rig.lines.histogram = i ? LINES_TIMER : LINES_COUNTERS;
		begin(&rig);
		series_add_histogram(SERIES(&rig, 2), 0, bucket);
		assert_lines(&rig, 0,
			     i ? "a.time:211275100038038221854659837952|ms\n"
				 "a.time:1000000000000000019884624838656|ms|@0.5\n"
				 "a.time:1000000000000000019884624838656|ms" :
				 "a.time.count:4|c\na.time.bucket;upper=3.1691265005705735e29:1|c\n"
				 "a.time.bucket;upper=6.80564733841877e38:2|c\n"
				 "a.time.bucket;upper=2.247116418577895e307:1|c");
		rig_done(&rig);
	}
}

static void a_histogram_is_counters(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_GRAPHITE, "{host}.{deployment.environment.name}.{metric}");
	add_times(&rig, 1999, 1, 2, 3);
	assert_lines(&rig, 0,
		     "vm1.prod_eu.a.time_us.count:6|c\nvm1.prod_eu.a.time_us.sum:1|c\n"
		     "vm1.prod_eu.a.time_us.bucket;upper=0:1|c\nvm1.prod_eu.a.time_us.bucket;upper=500000:2|c\n"
		     "vm1.prod_eu.a.time_us.bucket;upper=inf:3|c");
	assert_int_equal(rig.n_points, 1);
	add_times(&rig, 1, 0, 0, 1);
	assert_lines(&rig, 0,
		     "vm1.prod_eu.a.time_us.count:1|c\nvm1.prod_eu.a.time_us.sum:1|c\n"
		     "vm1.prod_eu.a.time_us.bucket;upper=inf:1|c");
	rig_done(&rig);
}

static void a_histogram_without_tags_has_its_bounds_in_the_path(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_DOTTED, "{metric}");
	add_times(&rig, 1500000000, 0, 2, 1);
	assert_lines(&rig, 0,
		     "a.time.count 3 1700000010\na.time.sum 1.5 1700000010\na.time.bucket.0_5 2 1700000010\n"
		     "a.time.bucket.inf 1 1700000010\n");
	rig_done(&rig);
}

#define SECOND UINT64_C(1000000000)

static void pushes_of_one_time_have_what_happened_in_all_of_them(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_DOTTED, "{metric}");
	add_times(&rig, 1500000000, 0, 2, 1);
	series_add(SERIES(&rig, 0), 5);
	assert_lines(&rig, 0,
		     "a.sum.count 5 1700000010\na.time.count 3 1700000010\na.time.sum 1.5 1700000010\n"
		     "a.time.bucket.0_5 2 1700000010\na.time.bucket.inf 1 1700000010\n");
	add_times(&rig, 500000000, 0, 1, 0);
	series_add(SERIES(&rig, 0), 2);
	assert_lines(&rig, 0,
		     "a.sum.count 7 1700000010\na.time.count 4 1700000010\na.time.sum 2 1700000010\n"
		     "a.time.bucket.0_5 3 1700000010\na.time.bucket.inf 1 1700000010\n");
	rig.batch.time_ns += SECOND;
	add_times(&rig, 1000000000, 1, 0, 0);
	series_add(SERIES(&rig, 0), 1);
	assert_lines(&rig, 0,
		     "a.sum.count 1 1700000011\na.time.count 1 1700000011\na.time.sum 1 1700000011\n"
		     "a.time.bucket.0 1 1700000011\n");
	rig_done(&rig);
}

static void a_gauge_has_one_point_a_time(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_DOTTED, "{metric}");
	begin(&rig);
	series_add(SERIES(&rig, 1), 6);
	assert_lines(&rig, 0, "a.gauge 6 1700000010\n");
	begin(&rig);
	series_add(SERIES(&rig, 1), 7);
	assert_lines(&rig, 0, "");
	rig.batch.time_ns += SECOND;
	begin(&rig);
	series_add(SERIES(&rig, 1), 7);
	assert_lines(&rig, 0, "a.gauge 7 1700000011\n");
	rig_done(&rig);
}

/* The process before has sent it, or it is counted as not sent. */
static void what_came_before_the_first_push_is_not_sent(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_DOTTED, "{metric}");
	begin(&rig);
	series_add(SERIES(&rig, 0), 5);
	series_end(&rig.metrics[0]);
	begin(&rig);
	series_add(SERIES(&rig, 0), 2);
	assert_lines(&rig, 0, "a.sum.count 2 1700000010\n");
	rig_done(&rig);
}

static void totals_say_so(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_TAGGED, "{metric}");
	rig.tags.n_items = 0;
	rig.lines.is_cumulative = true;
	for (uint64_t i = 1; i <= 2; i++) {
		add_times(&rig, 1500000000, 0, 0, 1);
		series_add(SERIES(&rig, 0), 5);
		series_add(SERIES(&rig, 1), 6);
		rig.batch.time_ns += SECOND;
		assert_ok(push(&rig, 0));
	}
	assert_string_equal(buf_text(&rig.out),
			    "a.sum.total 10 1700000012\na.gauge 6 1700000012\na.time.count.total 2 1700000012\n"
			    "a.time.sum.total 3 1700000012\na.time.bucket.total;upper=inf 2 1700000012\n");
	rig_done(&rig);
}

static void a_distribution_stands_for_as_many_values_as_there_were(void **state)
{
	static const uint64_t counts[] = { 2, 3, 6, 7, 10, 49, 1000, 3125, 4097, 100000, 999983, 1000000, 123456789 };
	struct rig rig;

	rig_init(&rig, DIALECT_DOGSTATSD, "{metric}");
	rig.tags.n_items = 1;
	rig.lines.histogram = LINES_DISTRIBUTION;
	add_times(&rig, 0, 1, 1, 0);
	/* (0.25, 0.5] s: a third below the one, a third above the other. */
	assert_lines(&rig, 0, "a.time_us:0|d|#host.name:vm1\na.time_us:333333|d|#host.name:vm1");
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		const char *rate;
		double inverse;

		add_times(&rig, 0, 0, counts[i], 0);
		assert_ok(push(&rig, 0));
		rate = strstr(buf_text(&rig.out), "|d|@");
		assert_non_null(rate);
		assert_memory_equal(rig.out.data, "a.time_us:333333|d|@0.", 22);
		assert_string_equal(rate + 4 + strspn(rate + 4, "0123456789."), "|#host.name:vm1");
		inverse = 1 / strtod(rate + 4, NULL);
		assert_int_equal((uint64_t)inverse, counts[i]);
		assert_int_equal((uint64_t)(inverse + 0.5), counts[i]);
	}
	rig_done(&rig);
}

static void a_timer_is_in_milliseconds_whatever_the_unit_of_counters(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{metric}");
	rig.lines.histogram = LINES_TIMER;
	add_times(&rig, 0, 0, 1, 4);
	/* What is above 2 s (it has no upper bound) is taken for a value up to 4 s. */
	assert_lines(&rig, 0, "a.time:333.333|ms\na.time:2666.67|ms|@0.25");
	rig_done(&rig);
}

static void a_line_longer_than_a_datagram_is_counted(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{metric}.{attributes}");
	rig.lines.pack.limit_bytes = 20;
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", "long-enough-not-to-fit"), 1);
	series_add(SERIES(&rig, 0, "key", "short"), 2);
	assert_lines(&rig, 0, "a.sum.short:2|c");
	assert_int_equal(rig.exporter.stats.points[POINTS_TOO_LARGE], 1);
	assert_int_equal(rig.n_points, 1);
	rig_done(&rig);
}

static void every_point_is_sent_or_counted_where_memory_ends(void **state)
{
	for (unsigned int n = 0;; n++) {
		struct rig rig;
		bool has_failed;
		int err;

		rig_init(&rig, DIALECT_DOGSTATSD, NULL);
		rig.lines.pack.limit_bytes = 300;
		add_times(&rig, 5, 1, 1, 1);
		series_add(SERIES(&rig, 0, "key", "a/b"), 1);
		series_add(SERIES(&rig, 0, "key", "a b"), 1);
		series_add(SERIES(&rig, 0, "key", "as it was"), 0); /* has no line */
		series_add(SERIES(&rig, 1), 1);
		buf_reserve(&rig.out, 8192);
		alloc_fail_at(n);
		err = push(&rig, 0);
		has_failed = alloc_end();
		assert_int_equal(rig.exporter.stats.points[POINTS_PUSHED], 4);
		/* A piece that could not be made smaller goes as it is. */
		if (err || !has_failed)
			assert_int_equal(err, has_failed ? -ENOMEM : 0);
		else
			assert_int_equal(rig.n_points, 4);
		rig_done(&rig);
		if (!has_failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_seconds_lose_nothing_to_rounding),
		cmocka_unit_test(metrics_with_one_name_are_told_apart_by_their_collectors),
		cmocka_unit_test(seconds_may_be_finer_than_they_are_counted),
		cmocka_unit_test(counters_that_did_not_grow_are_silent_unless_asked_for),
		cmocka_unit_test(a_gauge_is_sent_when_it_changes_or_may_have_been_lost),
		cmocka_unit_test(no_gauge_has_a_sign),
		cmocka_unit_test(a_count_that_receivers_take_for_a_negative_one_is_refused),
		cmocka_unit_test(growth_that_does_not_fit_is_refused_and_what_follows_is_right),
		cmocka_unit_test(bounds_above_all_numbers_are_sound),
		cmocka_unit_test(a_histogram_is_counters),
		cmocka_unit_test(a_histogram_without_tags_has_its_bounds_in_the_path),
		cmocka_unit_test(pushes_of_one_time_have_what_happened_in_all_of_them),
		cmocka_unit_test(a_gauge_has_one_point_a_time),
		cmocka_unit_test(what_came_before_the_first_push_is_not_sent),
		cmocka_unit_test(totals_say_so),
		cmocka_unit_test(a_distribution_stands_for_as_many_values_as_there_were),
		cmocka_unit_test(a_timer_is_in_milliseconds_whatever_the_unit_of_counters),
		cmocka_unit_test(a_line_longer_than_a_datagram_is_counted),
		cmocka_unit_test(every_point_is_sent_or_counted_where_memory_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
