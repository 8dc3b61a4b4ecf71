/* SPDX-License-Identifier: Apache-2.0 */
/* Which slot of Graphite's storage a batch gets. */
#include "rig.h"

#include "metric/series.h"

#define SECOND	 UINT64_C(1000000000)
#define START_NS (UINT64_C(1700000000) * SECOND) /* the beginning of a slot */

struct push {
	double at_s; /* since START_NS */
	uint64_t grown;
	bool is_last;
};

static void assert_push(struct exporter *exporter, struct batch *batch, struct series *series, const struct push *push)
{
	batch->previous_ns = batch->time_ns;
	batch->time_ns = START_NS + (uint64_t)(int64_t)(push->at_s * 1e9);
	if (batch->time_ns < batch->previous_ns)
		batch->previous_ns = batch->time_ns - exporter->context->interval_ns;
	batch->is_last = push->is_last;
	series_begin(series->metric);
	series_add(series, push->grown);
	series_end(series->metric);
	assert_ok(exporter_encode(exporter, batch));
	exporter_send(exporter, batch);
	assert_accounted(exporter);
}

/* A sum is pushed at these times by an exporter that began at began_s; what it sends. */
static void assert_sent(uint64_t interval_ns, double began_s, const struct push *pushes, size_t n, const char *expected)
{
	const struct exporter_ops *ops = exporter_find("graphite");
	void *options = calloc(1, ops->settings->size_bytes);
	struct metric metric = { .scope = "t", .name = "a", .unit = "1", .kind = METRIC_SUM, .divisor = 1 };
	struct metric *list[] = { &metric };
	struct batch batch = { .metrics = list, .n_metrics = 1 };
	struct exporter_context context = { .interval_ns = interval_ns };
	struct diag diag = { 0 };
	struct attributes none;
	struct exporter *exporter;
	struct series *series;
	char endpoint[32];

	receiver_init(&receiver, "127.0.0.1", 0);
	context.event = world.event;
	snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", port_of(receiver.listener));
	assert_ok(setting_table_init(ops->settings, options));
	assert_ok(setting_table_set(ops->settings, options,
				    &(struct assignment){ "endpoint", endpoint, "test", 1 }, &diag));
	assert_ok(setting_table_set(ops->settings, options,
				    &(struct assignment){ "template", "{metric}", "test", 2 }, &diag));
	assert_int_equal(diag.n_errors, 0);
	assert_ok(exporter_open("test", ops, options, &context, &exporter));
	metric_init_series(&metric, NULL);
	attributes_init(&none);
	assert_ok(series_get(&metric, &none, 1, &series));
	batch.time_ns = START_NS + (uint64_t)(int64_t)(began_s * 1e9);
	for (size_t i = 0; i < n; i++)
		assert_push(exporter, &batch, series, &pushes[i]);
	if (pushes[n - 1].is_last)
		RUN_UNTIL((receiver_read(&receiver), exporter_is_idle(exporter)));
	else
		RUN_UNTIL(receiver_read(&receiver) == strlen(expected));
	assert_true(is_text(&receiver.text, expected));
	exporter_free(exporter);
	metric_done_series(&metric);
	setting_table_done(ops->settings, options);
	free(options);
	receiver_done(&receiver);
}

#define ASSERT_SENT_EVERY(interval_ns, began_s, expected, ...)                                                 \
	do {                                                                                                   \
		static const struct push pushes[] = { __VA_ARGS__ };                                           \
		assert_sent((interval_ns), (began_s), pushes, sizeof(pushes) / sizeof(pushes[0]), (expected)); \
	} while (0)
#define ASSERT_SENT(began_s, expected, ...) ASSERT_SENT_EVERY(10 * SECOND, began_s, expected, __VA_ARGS__)

static void each_batch_has_a_slot_of_its_own(void **state)
{
	ASSERT_SENT(-5, "a.count 1 1700000000\na.count 2 1700000010\na.count 3 1700000020\n", { 3, 1 }, { 13, 2 }, { 23, 3 });
}

static void a_moment_late_or_early_over_the_end_of_a_slot_changes_nothing(void **state)
{
	ASSERT_SENT(-5, "a.count 1 1700000000\na.count 2 1700000010\na.count 3 1700000020\na.count 4 1700000030\n",
		    { 9.9999, 1 }, { 20.0001, 2 }, { 29.9999, 3 }, { 40.0001, 4 });
}

static void two_batches_in_one_slot_have_lines_of_what_happened_in_both(void **state)
{
	ASSERT_SENT(-5, "a.count 1 1700000010\na.count 3 1700000010\na.count 3 1700000020\n", { 10.0001, 1 }, { 19.9999, 2 },
		    { 30.0001, 3 });
	/* A collection that was held up, and the next in its turn: no slot is taken that has not begun. */
	ASSERT_SENT(-5, "a.count 1 1700000000\na.count 2 1700000010\na.count 5 1700000010\n", { 3, 1 }, { 17.5, 2 }, { 17.7, 3 });
}

static void after_a_pause_time_goes_on_where_it_is(void **state)
{
	ASSERT_SENT(-5, "a.count 1 1700000000\na.count 2 1700000060\na.count 3 1700000070\n", { 3, 1 }, { 63, 2 }, { 73, 3 });
}

static void the_slot_in_which_we_began_is_left_to_whoever_ran_before(void **state)
{
	ASSERT_SENT(2, "a.count 1 1700000010\na.count 3 1700000010\na.count 3 1700000020\n", { 3, 1 }, { 13, 2 }, { 23, 3 });
	ASSERT_SENT(8.9999, "a.count 1 1700000010\na.count 3 1700000010\na.count 3 1700000020\n", { 9.9999, 1 },
		    { 19.9999, 2 }, { 29.9999, 3 });
	ASSERT_SENT(8.9999, "a.count 1 1700000010\na.count 2 1700000020\na.count 3 1700000030\n", { 9.9999, 1 },
		    { 20.0001, 2 }, { 30.0001, 3 });
	ASSERT_SENT(9.5, "a.count 1 1700000010\na.count 2 1700000020\n", { 10.5, 1 }, { 20.5, 2 });
}

static void the_last_batch_shares_a_slot_with_what_happened_in_both(void **state)
{
	ASSERT_SENT(-5, "a.count 1 1700000000\na.count 2 1700000010\na.count 6 1700000010\n", { 3, 1 }, { 13, 2 },
		    { 17, 4, true });
	ASSERT_SENT(-5, "a.count 1 1700000000\na.count 2 1700000010\na.count 4 1700000020\n", { 3, 1 }, { 13, 2 },
		    { 21, 4, true });
}

static void a_run_that_ends_in_the_slot_in_which_it_began_has_the_next(void **state)
{
	ASSERT_SENT(2, "a.count 1 1700000010\na.count 5 1700000010\n", { 3, 1 }, { 4, 4, true });
}

static void after_a_clock_was_set_back_slots_begin_anew(void **state)
{
	ASSERT_SENT(-5, "a.count 1 1700000000\na.count 2 1700000010\na.count 3 1699999910\na.count 4 1699999920\n", { 3, 1 },
		    { 13, 2 }, { -87, 3 }, { -77, 4 });
}

static void a_time_that_stands_still_shares_its_slot(void **state)
{
	ASSERT_SENT(-5, "a.count 1 1700000000\na.count 3 1700000000\na.count 3 1700000010\n", { 3, 1 }, { 3.000000001, 2 },
		    { 13, 3 });
}

static void an_interval_that_is_no_whole_number_of_seconds_has_their_slots(void **state)
{
	ASSERT_SENT_EVERY(SECOND * 3 / 2, -0.5,
			  "a.count 1 1700000000\na.count 2 1700000002\na.count 3 1700000003\na.count 4 1700000005\n",
			  { 0.7, 1 }, { 2.2, 2 }, { 3.7, 3 }, { 5.2, 4 });
}

static void batches_within_a_second_share_it(void **state)
{
	ASSERT_SENT_EVERY(SECOND / 5, -0.1,
			  "a.count 1 1700000000\na.count 3 1700000000\na.count 6 1700000000\na.count 4 1700000001\n",
			  { 0.1, 1 }, { 0.3, 2 }, { 0.9, 3 }, { 1.1, 4 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(each_batch_has_a_slot_of_its_own),
		RIG_TEST(a_moment_late_or_early_over_the_end_of_a_slot_changes_nothing),
		RIG_TEST(two_batches_in_one_slot_have_lines_of_what_happened_in_both),
		RIG_TEST(after_a_pause_time_goes_on_where_it_is),
		RIG_TEST(the_slot_in_which_we_began_is_left_to_whoever_ran_before),
		RIG_TEST(the_last_batch_shares_a_slot_with_what_happened_in_both),
		RIG_TEST(a_run_that_ends_in_the_slot_in_which_it_began_has_the_next),
		RIG_TEST(after_a_clock_was_set_back_slots_begin_anew),
		RIG_TEST(a_time_that_stands_still_shares_its_slot),
		RIG_TEST(an_interval_that_is_no_whole_number_of_seconds_has_their_slots),
		RIG_TEST(batches_within_a_second_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
