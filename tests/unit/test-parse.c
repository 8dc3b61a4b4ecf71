/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdio.h>

#include "util/cleanup.h"
#include "util/parse.h"

static void booleans_have_eight_words(void **state)
{
	static const char *const yes[] = { "yes", "true", "on", "1", "YES", "True" };
	static const char *const no[] = { "no", "false", "off", "0", "No", "FALSE" };
	static const char *const bad[] = { "", "y", "n", "2", "yes ", " no", "enabled", "01" };
	bool value;

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		value = false;
		assert_ok(parse_bool(yes[i], &value));
		assert_true(value);
		assert_ok(parse_bool(no[i], &value));
		assert_false(value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_error(parse_bool(bad[i], &value), EINVAL);
}

struct number_case {
	const char *text;
	int error;
	uint64_t value;
};

static void check_numbers(int (*parse)(const char *, uint64_t *), const struct number_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = 77;
		int r = parse(cases[i].text, &value);

		if (r != -cases[i].error || value != (r ? 77 : cases[i].value))
			fail_msg("\"%s\": %d, %llu", cases[i].text, r, (unsigned long long)value);
	}
}

static void whole_numbers_are_read_to_their_end(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0 },
		{ "007", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", ERANGE },
		{ "99999999999999999999999", ERANGE },
		{ "99999999999999999999999x", EINVAL },
		{ "0x10", 0, 16 },
		{ "0XfF", 0, 255 },
		{ "0xffffffffffffffff", 0, UINT64_MAX },
		{ "0x10000000000000000", ERANGE },
		{ "0x", EINVAL },
		{ "", EINVAL },
		{ "-1", EINVAL },
		{ "+1", EINVAL },
		{ " 1", EINVAL },
		{ "1 ", EINVAL },
		{ "1e3", EINVAL },
		{ "1.5", EINVAL },
		{ "a", EINVAL },
	};

	check_numbers(parse_u64, cases, ARRAY_SIZE(cases));
}

static void signed_numbers_reach_both_ends(void **state)
{
	int64_t value = 5;

	assert_ok(parse_s64("-9223372036854775808", &value));
	assert_true(value == INT64_MIN);
	assert_ok(parse_s64("+9223372036854775807", &value));
	assert_true(value == INT64_MAX);
	assert_ok(parse_s64("-0x10", &value));
	assert_int_equal(value, -16);
	assert_error(parse_s64("9223372036854775808", &value), ERANGE);
	assert_error(parse_s64("-9223372036854775809", &value), ERANGE);
	assert_error(parse_s64("--1", &value), EINVAL);
	assert_error(parse_s64("-", &value), EINVAL);
	assert_int_equal(value, -16);
}

static void durations_carry_their_units(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0 },
		{ "0s", 0, 0 },
		{ "10s", 0, 10000000000 },
		{ "10 s", 0, 10000000000 },
		{ "500ms", 0, 500000000 },
		{ "1m30s", 0, 90000000000 },
		{ "1min 30s", 0, 90000000000 },
		{ "2h", 0, 7200000000000 },
		{ "1d2h3m4s5ms6us7ns", 0, 93784005006007 },
		{ "213503d", 0, 18446659200000000000ull },
		{ "213504d", ERANGE },
		{ "213503d86400s", ERANGE },
		{ "99999999999999999999s", ERANGE },
		{ "10", EINVAL },
		{ "1.5s", EINVAL },
		{ "30s1m", EINVAL },
		{ "1s1s", EINVAL },
		{ "1min1m", EINVAL },
		{ "1m1min", EINVAL },
		{ "s", EINVAL },
		{ "", EINVAL },
		{ "-1s", EINVAL },
		{ "1S", EINVAL },
		{ "1sec", EINVAL },
		{ "1s 1", EINVAL },
		{ "1s,", EINVAL },
		{ "00", EINVAL },
	};

	check_numbers(parse_duration_ns, cases, ARRAY_SIZE(cases));
}

static void sizes_carry_their_units(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0 },
		{ "512B", 0, 512 },
		{ "64KiB", 0, 65536 },
		{ "64 KiB", 0, 65536 },
		{ "1MiB", 0, 1048576 },
		{ "2GiB", 0, 2147483648 },
		{ "1TiB", 0, 1099511627776 },
		{ "1kB", 0, 1000 },
		{ "1KB", 0, 1000 },
		{ "3MB", 0, 3000000 },
		{ "4GB", 0, 4000000000 },
		{ "5TB", 0, 5000000000000 },
		{ "16777215TiB", 0, 18446742974197923840ull },
		{ "16777216TiB", ERANGE },
		{ "1", EINVAL },
		{ "1K", EINVAL },
		{ "1M", EINVAL },
		{ "1kib", EINVAL },
		{ "1MiB1KiB", EINVAL },
		{ "1Mib", EINVAL },
		{ "", EINVAL },
		{ "B", EINVAL },
	};

	check_numbers(parse_size_bytes, cases, ARRAY_SIZE(cases));
}

static void the_nearest_name_is_what_was_meant(void **state)
{
	static const char *const names[] = { "interval", "log_level", "series_limit", "timeout", "yes", "no", "error.type" };
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "intervall", "interval" },
		{ "intreval", "interval" },
		{ "INTERVAL", "interval" },
		{ "Log_Levl", "log_level" },
		{ "loglevel", "log_level" },
		{ "limit_series", NULL },
		{ "serieslimits", "series_limit" },
		{ "timeuot", "timeout" },
		{ "time", NULL },
		{ "ye", "yes" },
		{ "xo", "no" },
		{ "x", NULL },
		{ "", NULL },
		{ "frequency", NULL },
		{ "eror.tpye", "error.type" },
		{ "network.type", NULL },
	};
	char longest[200];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *found = parse_nearest(cases[i].text, names, ARRAY_SIZE(names));

		if (!found != !cases[i].want || (found && strcmp(found, cases[i].want)))
			fail_msg("\"%s\": %s", cases[i].text, found ? found : "none");
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_null(parse_nearest(longest, names, ARRAY_SIZE(names)));
	assert_null(parse_nearest("a", names, 0));
}

static void percent_codes_are_decoded_in_place(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} cases[] = {
		{ "", "" },	      { "plain", "plain" },   { "%41", "A" }, { "a%20b%3D%3d", "a b==" },
		{ "%c3%bc", "\xc3\xbc" }, { "%2525", "%25" }, { "%", NULL },  { "%4", NULL },
		{ "%4g", NULL },      { "%g4", NULL },	      { "%00", NULL }, { "a%%41", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[16];

		snprintf(text, sizeof(text), "%s", cases[i].text);
		assert_int_equal(parse_percent(text), cases[i].want ? 0 : -EINVAL);
		if (cases[i].want)
			assert_string_equal(text, cases[i].want);
	}
}

static void blanks_at_both_ends_are_cut_off(void **state)
{
	static const char *const cases[][2] = { { "", "" }, { " \t ", "" }, { "a", "a" }, { " \ta b\t ", "a b" } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[16];

		snprintf(text, sizeof(text), "%s", cases[i][0]);
		assert_string_equal(parse_strip(text), cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(booleans_have_eight_words),
		cmocka_unit_test(whole_numbers_are_read_to_their_end),
		cmocka_unit_test(signed_numbers_reach_both_ends),
		cmocka_unit_test(durations_carry_their_units),
		cmocka_unit_test(sizes_carry_their_units),
		cmocka_unit_test(the_nearest_name_is_what_was_meant),
		cmocka_unit_test(percent_codes_are_decoded_in_place),
		cmocka_unit_test(blanks_at_both_ends_are_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
