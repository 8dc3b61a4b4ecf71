/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "export/transport/timer.h"
#include "util/cleanup.h"
#include "util/duration.h"

#define S NS_PER_S

static void delays_double_up_to_the_longest(void **state)
{
	struct backoff backoff = { .initial_ns = 1 * S, .max_ns = 5 * S };
	const uint64_t limits[] = { 1, 2, 4, 5, 5, 5 };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		uint64_t delay = backoff_next(&backoff, UINT32_MAX, 0);

		assert_true(delay < limits[i] * S);
		assert_true(delay >= limits[i] * S - 2);
	}
	backoff.limit_ns = 0;
	assert_true(backoff_next(&backoff, UINT32_MAX, 0) < S);
}

static void jitter_spreads_over_all_of_the_delay(void **state)
{
	struct backoff backoff = { .initial_ns = 4 * S, .max_ns = 4 * S };

	assert_int_equal(backoff_next(&backoff, 0, 0), 0);
	assert_int_equal(backoff_next(&backoff, 0x80000000, 0), 2 * S);
	assert_int_equal(backoff_next(&backoff, 0x40000000, 0), 1 * S);
}

static void what_the_receiver_asks_for_is_the_least(void **state)
{
	struct backoff backoff = { .initial_ns = 4 * S, .max_ns = 4 * S };

	assert_int_equal(backoff_next(&backoff, 0, 3 * S), 3 * S);
	assert_int_equal(backoff_next(&backoff, 0x80000000, 1 * S), 2 * S);
	assert_int_equal(backoff_next(&backoff, 0, 100 * S), 100 * S);
}

/* Many agents hear the same wish at the same time. */
static void up_to_half_of_what_the_receiver_asks_for_is_added(void **state)
{
	struct backoff backoff = { .initial_ns = 4 * S, .max_ns = 4 * S };

	assert_int_equal(backoff_next(&backoff, 0x80000000, 4 * S), 5 * S);
	assert_int_equal(backoff_next(&backoff, 0x40000000, 300 * S), 300 * S + 300 * S / 8);
	assert_true(backoff_next(&backoff, UINT32_MAX, 300 * S) < 450 * S);
	for (int i = 0; i < 1000; i++) {
		uint64_t delay = backoff_draw(&backoff, 100 * S);

		assert_true(delay >= 100 * S && delay < 150 * S);
	}
}

static void thousands_of_failures_do_not_overflow(void **state)
{
	struct backoff backoff = { .initial_ns = 1, .max_ns = UINT64_MAX };
	uint64_t delay = 0;

	for (int i = 0; i < 5000; i++)
		delay = backoff_next(&backoff, UINT32_MAX, 0);
	assert_true(delay > UINT64_MAX / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_double_up_to_the_longest),
		cmocka_unit_test(jitter_spreads_over_all_of_the_delay),
		cmocka_unit_test(what_the_receiver_asks_for_is_the_least),
		cmocka_unit_test(up_to_half_of_what_the_receiver_asks_for_is_added),
		cmocka_unit_test(thousands_of_failures_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
