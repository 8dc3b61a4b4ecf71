/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <float.h>
#include <stdlib.h>

#include "metric/decimal.h"

static void quotients_lose_no_digit(void **state)
{
	static const struct {
		uint64_t raw, divisor;
		const char *want;
	} cases[] = {
		{ 0, 1, "0" },
		{ UINT64_MAX, 1, "18446744073709551615" },
		{ 1500000000, 1000000000, "1.5" },
		{ 1, 1000000000, "0.000000001" },
		{ UINT64_MAX, 1000000000, "18446744073.709551615" },
		{ 9007199254740993, 1000000000, "9007199.254740993" },
		{ 1000000000, 1000000000, "1" },
		{ 5, 1000, "0.005" },
		{ 3, 1024, "0.0029296875" },
		{ 1, 3, "0.333333333333333333" },
		{ 1, UINT64_MAX, "0.000000000000000000" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_done) struct buf out = BUF_INIT;

		decimal_quotient(&out, cases[i].raw, cases[i].divisor, false);
		assert_string_equal(buf_text(&out), cases[i].want);
	}
}

static void doubles_are_short_and_read_back_the_same(void **state)
{
	static const struct {
		double value;
		const char *want;
	} cases[] = { { 0, "0" }, { 1, "1" }, { 0.1, "0.1" }, { 65536, "65536" }, { 0x1p-30, "9.313225746154785e-10" } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[DECIMAL_DOUBLE_BYTES];

		assert_string_equal(decimal_print_double(text, cases[i].value), cases[i].want);
	}
	for (double value = DBL_MIN; value < DBL_MAX / 3; value *= 2.7) {
		char text[DECIMAL_DOUBLE_BYTES];

		assert_true(strtod(decimal_print_double(text, value), NULL) == value);
	}
}

static void people_get_three_digits_and_a_unit(void **state)
{
	static const struct {
		double value;
		const char *unit;
		const char *want;
	} cases[] = {
		{ 0, "s", "0ns" },
		{ 0.0000000015, "s", "1.50ns" },
		{ 0.0015, "s", "1.50ms" },
		{ 0.25, "s", "250ms" },
		{ 90, "s", "1.50min" },
		{ 7200, "s", "2h" },
		{ 864000, "s", "10d" },
		{ 1536, "By", "1.50KiB" },
		{ 1023, "By", "1023B" },
		{ 3221225472.0, "By", "3GiB" },
		{ 12345, "{call}", "12.3k" },
		{ 9999, "{call}", "9999" },
		{ 0.5, "1", "0.50" },
		{ 2500000, "{call}", "2.50M" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_done) struct buf out = BUF_INIT;

		decimal_human(&out, cases[i].value, cases[i].unit);
		assert_string_equal(buf_text(&out), cases[i].want);
	}
}

static void text_is_escaped_for_json(void **state)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	buf_append_json(&out, "a\"b\\c\nd\x01 caf\xc3\xa9 \x7f/");
	assert_string_equal(buf_text(&out), "\"a\\\"b\\\\c\\u000ad\\u0001 caf\xc3\xa9 \x7f/\"");
	buf_reset(&out);
	buf_append_json(&out, "");
	assert_string_equal(buf_text(&out), "\"\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quotients_lose_no_digit),
		cmocka_unit_test(doubles_are_short_and_read_back_the_same),
		cmocka_unit_test(people_get_three_digits_and_a_unit),
		cmocka_unit_test(text_is_escaped_for_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
