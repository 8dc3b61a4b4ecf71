/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "export/transport/backoff.h"
#include "util/cleanup.h"

#define S UINT64_C(1000000000)

static void delays_double_up_to_the_longest(void **state)
{
	struct backoff backoff = { .initial_ns = 1 * S, .max_ns = 5 * S };
	const uint64_t limits[] = { 1, 2, 4, 5, 5, 5 };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		uint64_t delay = backoff_next(&backoff, UINT32_MAX, 0);

		assert_true(delay < limits[i] * S);
		assert_true(delay >= limits[i] * S - 2);
	}
	backoff_reset(&backoff);
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

	assert_int_equal(backoff_next(&backoff, 0x80000000, 3 * S), 3 * S);
	assert_int_equal(backoff_next(&backoff, 0x80000000, 1 * S), 2 * S);
	assert_int_equal(backoff_next(&backoff, 0, 100 * S), 100 * S);
}

static void thousands_of_failures_do_not_overflow(void **state)
{
	struct backoff backoff = { .initial_ns = 1, .max_ns = UINT64_MAX };
	uint64_t delay = 0;

	for (int i = 0; i < 5000; i++)
		delay = backoff_next(&backoff, UINT32_MAX, 0);
	assert_true(delay > UINT64_MAX / 4);
}

static void retry_after_is_seconds_or_a_date(void **state)
{
	/* 784111777 s: 06 Nov 1994 08:49:37 GMT, the example of RFC 9110. */
	const uint64_t now_ns = 784111770 * S;
	static const struct {
		const char *text;
		uint64_t want_ns;
	} cases[] = {
		{ "0", 0 },
		{ "7", 7 * S },
		{ " 7 ", 7 * S },
		{ "300", 300 * S },
		{ "301", 300 * S },
		{ "99999999999999999999999999999999", 300 * S },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 7 * S },
		{ "Sunday, 06-Nov-94 08:49:37 GMT", 7 * S },
		{ "Sun Nov  6 08:49:37 1994", 7 * S },
		{ "Sun, 06 Nov 1994 08:49:00 GMT", 0 },
		{ "Sun, 06 Nov 1904 08:49:00 GMT", UINT64_MAX },
		{ "Fri, 31 Dec 9999 23:59:59 GMT", 300 * S },
		{ "", UINT64_MAX },
		{ "-1", UINT64_MAX },
		{ "1.5", UINT64_MAX },
		{ "7 seconds", UINT64_MAX },
		{ "soon", UINT64_MAX },
		{ "Sun, 06 Nov 1994 08:49:37 GMT x", UINT64_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t delay_ns = UINT64_MAX;
		int err = retry_after_parse(cases[i].text, now_ns, &delay_ns);

		assert_int_equal(err, cases[i].want_ns == UINT64_MAX ? -EINVAL : 0);
		assert_int_equal(delay_ns, cases[i].want_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_double_up_to_the_longest),
		cmocka_unit_test(jitter_spreads_over_all_of_the_delay),
		cmocka_unit_test(what_the_receiver_asks_for_is_the_least),
		cmocka_unit_test(thousands_of_failures_do_not_overflow),
		cmocka_unit_test(retry_after_is_seconds_or_a_date),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
