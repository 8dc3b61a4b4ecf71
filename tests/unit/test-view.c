/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "metric/series.h"
#include "util/duration.h"
#include "view/view.h"

#include "alloc.h"

#define LIST(...) { (char *[]){ __VA_ARGS__ }, sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *), false }
#define N_BUCKETS 4

/* A sum, a gauge, a histogram, and a sum of another collector. */
static struct metric calls, level, waits, other;
static struct metric *metrics[] = { &calls, &level, &waits, &other };
static struct batch batch;
static struct question question;
static struct view *view;

static int setup(void **state)
{
	static const struct { const char *scope, *name; enum metric_kind kind; } all[] = {
		{ "c", "calls", METRIC_SUM }, { "c", "level", METRIC_GAUGE }, { "c", "waits", METRIC_HISTOGRAM },
		{ "d", "other", METRIC_SUM },
	};

	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		*metrics[i] = (struct metric){ all[i].scope, all[i].name, .kind = all[i].kind, .divisor = 1 };
		metrics[i]->layout.n_buckets = all[i].kind == METRIC_HISTOGRAM ? N_BUCKETS : 0;
		metric_init_series(metrics[i], NULL);
	}
	batch = (struct batch){ .metrics = metrics, .n_metrics = ARRAY_SIZE(metrics), .time_ns = 100 };
	question = (struct question){ 0 };
	return view_new(&question, false, &view);
}

static int teardown(void **state)
{
	view = view_free(view);
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		metric_done_series(metrics[i]);
	return 0;
}

static struct series *get(struct metric *metric, const char *unit, const char *call)
{
	struct attributes attributes;
	struct series *series;

	attributes_init(&attributes);
	assert_ok(attributes_add_text(&attributes, "bpfpush.call", call, strlen(call)));
	assert_ok(attributes_add_text(&attributes, *unit == '/' ? "process.linux.cgroup" : "systemd.unit.name", unit,
				      strlen(unit)));
	assert_ok(series_get(metric, &attributes, batch.previous_ns, &series));
	return series;
}

static void begin(uint64_t time_ns)
{
	batch.previous_ns = batch.time_ns;
	batch.time_ns = time_ns;
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		series_begin(metrics[i]);
}

static void end(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		series_end(metrics[i]);
	assert_ok(view_add(view, &batch));
}

/* The present series of metric whose only attribute is text; NULL: there is none. */
static const struct series *found(const struct batch *answer, size_t metric, const char *text)
{
	const struct series *series;

	metric_for_each_series(series, answer->metrics[metric])
		if (series->n_attributes == 1 && !strcmp(series->attributes[0].text, text))
			return series;
	return NULL;
}

static void sums_are_added_up_by_unit(void **state)
{
	const struct series *a;

	question.by = (struct setting_list)LIST("unit");
	begin(200);
	series_add(get(&calls, "a.service", "read"), 5);
	series_add(get(&calls, "a.service", "write"), 7);
	series_add(get(&calls, "/x", "read"), 100);
	end();
	assert_int_equal(view_batch(view)->n_metrics, 4);
	assert_int_equal(view_batch(view)->metrics[0]->n_series, 2);
	a = found(view_batch(view), 0, "a.service");
	assert_int_equal(a->total.sum, 12);
	assert_int_equal(a->delta.sum, 12);
	assert_int_equal(a->start_ns, 100);
	assert_string_equal(a->attributes[0].name, "systemd.unit.name");
	assert_int_equal(found(view_batch(view), 0, "/x")->total.sum, 100);

	begin(300);
	series_add(get(&calls, "a.service", "write"), 3);
	end();
	assert_int_equal(a->total.sum, 15);
	assert_int_equal(a->delta.sum, 3);
	assert_int_equal(view_batch(view)->time_ns, 300);
	assert_int_equal(view_batch(view)->previous_ns, 200);
	assert_int_equal(view_whole(view)->previous_ns, 100);
	assert_int_equal(a->delta.sum, 15);

	/* The next interval's delta is its own again. */
	begin(400);
	series_add(get(&calls, "a.service", "read"), 1);
	end();
	assert_int_equal(a->delta.sum, 1);
	assert_int_equal(a->total.sum, 16);
}

/* Whoever looks later sees the same totals, and the deltas of the last interval. */
static void totals_are_those_of_the_series(void **state)
{
	static const uint64_t past[N_BUCKETS] = { 1, 0, 2, 0 }, now[N_BUCKETS] = { 0, 1, 0, 0 };
	const struct series *call, *wait;

	begin(150);
	series_add(get(&calls, "a.service", "read"), 1000);
	series_add(get(&calls, "b.service", "read"), 500);
	series_add(get(&level, "a.service", "read"), 7);
	series_add_histogram(get(&waits, "a.service", "read"), 10, past);
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		series_end(metrics[i]);
	question.by = (struct setting_list)LIST("call");
	begin(200);
	series_add(get(&calls, "a.service", "read"), 1);
	series_add(get(&level, "a.service", "read"), 3);
	series_add_histogram(get(&waits, "a.service", "read"), 5, now);
	end();
	call = found(view_batch(view), 0, "read");
	wait = found(view_batch(view), 2, "read");
	assert_int_equal(call->total.sum, 1501);
	assert_int_equal(call->delta.sum, 1);
	assert_int_equal(found(view_batch(view), 1, "read")->total.sum, 3);
	assert_int_equal(wait->total.sum, 15);
	assert_int_equal(wait->total.count, 4);
	assert_memory_equal(wait->total.bucket, ((uint64_t[]){ 1, 1, 2, 0 }), sizeof(now));
	assert_int_equal(wait->delta.count, 1);
	assert_memory_equal(wait->delta.bucket, now, sizeof(now));

	begin(300);
	series_add(get(&calls, "b.service", "read"), 2);
	end();
	assert_int_equal(call->total.sum, 1503);
	assert_int_equal(call->delta.sum, 2);
}

static void gauges_are_added_up(void **state)
{
	question.by = (struct setting_list)LIST("unit");
	for (uint64_t i = 0; i < 3; i++) {
		begin(200 + i);
		series_add(get(&level, "a.service", "read"), 5 + i);
		series_add(get(&level, "a.service", "write"), (uint64_t)-7);
		end();
		assert_int_equal((int64_t)found(view_batch(view), 1, "a.service")->total.sum, -2 + (int64_t)i);
		assert_int_equal((int64_t)found(view_whole(view), 1, "a.service")->delta.sum, -2 + (int64_t)i);
	}
}

static void histograms_are_added_up(void **state)
{
	static const uint64_t left[N_BUCKETS] = { 1, 0, 2, 0 }, right[N_BUCKETS] = { 0, 3, 4, 0 };
	const struct series *a;

	question.by = (struct setting_list)LIST("unit");
	begin(200);
	series_add_histogram(get(&waits, "a.service", "read"), 10, left);
	series_add_histogram(get(&waits, "a.service", "write"), 20, right);
	end();
	begin(300);
	series_add_histogram(get(&waits, "a.service", "write"), 1, left);
	end();
	a = found(view_batch(view), 2, "a.service");
	assert_int_equal(a->total.count, 13);
	assert_int_equal(a->total.sum, 31);
	assert_memory_equal(a->total.bucket, ((uint64_t[]){ 2, 3, 8, 0 }), sizeof(left));
	assert_int_equal(a->delta.count, 3);
	assert_memory_equal(a->delta.bucket, left, sizeof(left));
	view_whole(view);
	assert_int_equal(a->delta.count, 13);
	assert_int_equal(a->delta.sum, 31);
	assert_memory_equal(a->delta.bucket, a->total.bucket, sizeof(left));
}

/* Its totals are those of the interval; what did not grow in it is left out. */
static void an_interval_stands_alone(void **state)
{
	static const uint64_t slow[N_BUCKETS] = { 0, 0, 0, 9 }, fast[N_BUCKETS] = { 1, 0, 0, 0 };
	const struct series *a;

	question.by = (struct setting_list)LIST("unit");
	for (uint64_t i = 0; i < 4; i++) {
		begin(200 + i);
		series_add_histogram(get(&waits, "a.service", "read"), 10, i == 1 ? fast : slow);
		series_add(get(&calls, "a.service", "read"), i);
		series_add(get(&level, "a.service", "read"), 5);
		end();
		a = found(view_interval(view), 2, "a.service");
		assert_int_equal(a->total.sum, 10);
		assert_int_equal(a->total.count, i == 1 ? 1 : 9);
		assert_memory_equal(a->total.bucket, i == 1 ? fast : slow, sizeof(slow));
		a = found(view_batch(view), 0, "a.service");
		assert_true(i ? a->total.sum == i && a->delta.sum == i : !a);
		assert_int_equal(found(view_batch(view), 1, "a.service")->total.sum, 5);
	}
}

static void overflows_stay_what_they_are(void **state)
{
	struct condition condition = { .attribute = (char *)"unit", .pattern = "none.service" };
	struct series *table, *budget;
	const struct metric *answer;

	question.conditions = &condition;
	question.n_conditions = 1;
	begin(200);
	assert_ok(series_get_overflow(&calls, OVERFLOW_TABLE, 100, &table));
	assert_ok(series_get_overflow(&calls, OVERFLOW_SERIES, 100, &budget));
	series_add(table, 3);
	series_add(budget, 4);
	series_add(get(&calls, "a.service", "read"), 5);
	end();
	answer = view_batch(view)->metrics[0];
	assert_int_equal(answer->n_series, 2);
	assert_int_equal(answer->overflow[OVERFLOW_TABLE]->total.sum, 3);
	assert_int_equal(answer->overflow[OVERFLOW_SERIES]->total.sum, 4);
	assert_true(series_is_overflow(answer->series[0]) && series_is_overflow(answer->series[1]));
}

/* a.service grows, ends and is gone: counts the collections in which the answer still has it. */
static unsigned int n_seen(bool keeps_all)
{
	unsigned int n = 0;

	view = view_free(view);
	assert_ok(view_new(&question, keeps_all, &view));
	begin(200);
	series_add(get(&calls, "a.service", "read"), 5);
	end();
	series_put(calls.series[0]);
	for (uint64_t i = 0; i < 5; i++) {
		const struct series *a = found(view_batch(view), 0, "a.service");

		n += a != NULL;
		assert_int_equal(a ? a->total.sum : 5, 5);
		begin(300 + i);
		end();
	}
	return n;
}

static void series_end_with_those_that_they_are_made_of(void **state)
{
	question.by = (struct setting_list)LIST("unit");
	assert_int_equal(n_seen(false), 1);
	assert_int_equal(view_batch(view)->metrics[0]->n_series, 0);
}

static void a_view_of_a_whole_run_keeps_them(void **state)
{
	question.by = (struct setting_list)LIST("unit");
	assert_int_equal(n_seen(true), 5);
	assert_int_equal(found(view_whole(view), 0, "a.service")->delta.sum, 5);
}

static void other_metrics_are_left_out(void **state)
{
	question.metrics = (struct setting_list)LIST("d", "waits");
	begin(200);
	series_add(get(&calls, "a.service", "read"), 5);
	series_add(get(&other, "a.service", "read"), 6);
	end();
	assert_int_equal(view_batch(view)->n_metrics, 2);
	assert_string_equal(view_batch(view)->metrics[0]->name, "waits");
	assert_string_equal(view_batch(view)->metrics[1]->name, "other");
	assert_int_equal(view_batch(view)->metrics[1]->series[0]->total.sum, 6);
}

static void losses_are_added_up(void **state)
{
	for (uint64_t i = 1; i < 3; i++) {
		begin(100 + i);
		calls.loss = (struct loss){ .missed = 5, .events = 95, .is_known = true };
		end();
		assert_int_equal(view_batch(view)->metrics[0]->loss.missed, 5);
		assert_true(loss_share(&view_batch(view)->metrics[0]->loss) == 0.05);
		assert_int_equal(view_whole(view)->metrics[0]->loss.missed, 5 * i);
		assert_int_equal(view_whole(view)->metrics[0]->loss.is_known, i == 1);
	}
}

static int two_collections(void)
{
	struct view *own;
	int err = view_new(&question, true, &own);

	if (!err) {
		err = view_add(own, &batch) ?: view_add(own, &batch);
		view_free(own);
	}
	return err;
}

static void without_memory_it_says_so(void **state)
{
	question.by = (struct setting_list)LIST("unit");
	begin(200);
	series_add(get(&calls, "a.service", "read"), 5);
	series_add(get(&calls, "b.service", "read"), 5);
	end();
	assert_survives_failing_allocations(two_collections(), (void)0);
}

#define UNITS 500
#define CALLS 50

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void many_series_are_added_up_soon(void **state)
{
	double least = 1e9;
	char unit[32], call[16];

	question.by = (struct setting_list)LIST("unit");
	batch.metrics = metrics;
	for (int round = 0; round < 5; round++) {
		double before;

		begin(200 + (uint64_t)round);
		for (int i = 0; i < UNITS * CALLS; i++) {
			snprintf(unit, sizeof(unit), "application-%d.service", i / CALLS);
			snprintf(call, sizeof(call), "call-%d", i % CALLS);
			series_add(get(&calls, unit, call), (uint64_t)i % CALLS);
		}
		series_end(&calls);
		before = milliseconds();
		assert_ok(view_add(view, &batch));
		before = milliseconds() - before;
		least = before < least ? before : least;
	}
	assert_int_equal(view_batch(view)->metrics[0]->n_series, UNITS);
	for (size_t i = 0; i < UNITS; i++)
		assert_int_equal(view_batch(view)->metrics[0]->series[i]->total.sum, 5 * CALLS * (CALLS - 1) / 2);
	print_message("%d series by unit: %.1f ms of CPU\n", UNITS * CALLS, least);
	assert_true(least < 50); /* far more than it takes, for slow machines and sanitizers */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sums_are_added_up_by_unit, setup, teardown),
		cmocka_unit_test_setup_teardown(totals_are_those_of_the_series, setup, teardown),
		cmocka_unit_test_setup_teardown(gauges_are_added_up, setup, teardown),
		cmocka_unit_test_setup_teardown(histograms_are_added_up, setup, teardown),
		cmocka_unit_test_setup_teardown(an_interval_stands_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(overflows_stay_what_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(series_end_with_those_that_they_are_made_of, setup, teardown),
		cmocka_unit_test_setup_teardown(a_view_of_a_whole_run_keeps_them, setup, teardown),
		cmocka_unit_test_setup_teardown(other_metrics_are_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(losses_are_added_up, setup, teardown),
		cmocka_unit_test_setup_teardown(without_memory_it_says_so, setup, teardown),
		cmocka_unit_test_setup_teardown(many_series_are_added_up_soon, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
