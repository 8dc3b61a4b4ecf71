/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "collector/grammar/buckets.h"

/* "UPPER:KEY UPPER:KEY …", and "+KEY" of the sum. */
static void assert_buckets(const char *text, uint32_t n_buckets, const char *expected)
{
	static struct buckets buckets;
	char seen[4096] = "";
	size_t size = 0;

	assert_null(buckets_parse(text, n_buckets, &buckets));
	for (uint32_t i = 0; i < buckets.n; i++)
		size += (size_t)snprintf(seen + size, sizeof(seen) - size, "%s%llu:%llu", i ? " " : "",
					 (unsigned long long)buckets.bounds[i].upper,
					 (unsigned long long)buckets.bounds[i].key);
	if (buckets.has_sum)
		snprintf(seen + size, sizeof(seen) - size, " +%llu", (unsigned long long)buckets.sum_key);
	assert_string_equal(seen, expected);
}

static void layouts_have_bounds_and_keys(void **state)
{
	assert_buckets("exp2 0..3", 0, "1:0 2:1 4:2 8:3");
	assert_buckets("exp2 3..5 sum 6", 0, "8:3 16:4 32:5 +6");
	assert_buckets("exp2", 5, "1:0 2:1 4:2 8:3");
	assert_buckets("exp2 63..63", 0, "9223372036854775808:63");
	assert_buckets("exp2 floor 0..3", 0, "1:0 3:1 7:2 15:3");
	assert_buckets("exp2 \tfloor 3..4 sum 5", 0, "15:3 31:4 +5");
	assert_buckets("exp2 floor", 5, "1:0 3:1 7:2 15:3");
	assert_buckets("exp2 floor 62..63", 0, "9223372036854775807:62 18446744073709551615:63");
	assert_buckets("exp2zero 0..3", 0, "0:0 1:1 2:2 4:3");
	assert_buckets("exp2zero", 4, "0:0 1:1 2:2");
	assert_buckets("exp2zero 64..64", 0, "9223372036854775808:64");
	assert_buckets("  exp2\t0..1  sum  2", 0, "1:0 2:1 +2");
	assert_buckets("fixed 1 5 20", 4, "1:1 5:5 20:20");
	assert_buckets("fixed 1 9007199254740992 sum 0", 0, "1:1 9007199254740992:9007199254740992 +0");
}

static void keys_of_linear_count_from_their_multiple_on(void **state)
{
	assert_buckets("linear 0..100 step 50", 4, "0:0 50:1 100:2");
	assert_buckets("linear 0..100 step 50", 0, "49:0 99:1 149:2");
	assert_buckets("linear 100..300 step 100 sum 99", 0, "199:1 299:2 399:3 +99");
	assert_buckets("linear 7..7 step 3", 2, "7:2");
	assert_buckets("linear 7..13 step 3", 2, "7:2 10:3 13:4");
}

static void without_a_range_all_powers_have_a_bucket(void **state)
{
	static struct buckets buckets;

	assert_null(buckets_parse("exp2", 0, &buckets));
	assert_int_equal(buckets.n, 64);
	assert_null(buckets_parse("exp2zero", 0, &buckets));
	assert_int_equal(buckets.n, 65);
	assert_null(buckets_parse("linear 1..1023 step 1", 1024, &buckets));
	assert_int_equal(buckets.n, 1023);
}

static void what_is_no_layout_is_refused(void **state)
{
	static const char *const wrong[] = {
		"", "exp3 0..1", "exp2 0..", "exp2 0", "exp2 5..4", "exp2 0..64", "exp2 floor 0..64", "exp2 floor 0", "exp2 floor0", "exp2floor 0..1", "exp2zero floor 0..1", "exp2 0..1 floor",
		 "exp2zero 0..65", "exp2 0..1 x", "exp2 x",
		"exp2 0..1 sum", "exp2 0..1 sum 3 4", "exp2 3..5 sum 3", "exp2 3..5 sum 5", "fixed 1 5 20 sum 4", "exp2 -1..4", "linear", "linear 0..10", "linear 0..10 step 0",
		"linear 0..10 step 3", "linear 10..0 step 5", "linear 0..1024 step 1", "linear 0..9007199254740993 step 1",
		"linear 0..18446744073709551616 step 1", "fixed", "fixed 1 1", "fixed 2 1", "fixed 1 2.5", "fixed 1 x",
		"fixed 9007199254740993", "exp2zero0..1", "linear 0..10 step +5",
	};
	static struct buckets buckets;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_non_null(buckets_parse(wrong[i], 30, &buckets));
		assert_int_equal(buckets.n, 0);
		assert_non_null(buckets_check(wrong[i]));
	}
	/* Of keys, the first must be a multiple too. */
	assert_non_null(buckets_parse("linear 25..125 step 50", 0, &buckets));
	assert_null(buckets_check("linear 25..125 step 50"));
}

static void assert_range(const char *text, const char *unit, int offset, uint32_t n, uint32_t first, uint32_t step)
{
	struct histogram_layout layout = { .offset = offset, .n_buckets = 48 };

	assert_null(range_parse(text, unit, &layout));
	assert_int_equal(layout.n_explicit, n);
	assert_int_equal(layout.first, first);
	assert_int_equal(layout.step, step);
}

static void a_range_chooses_powers_of_two(void **state)
{
	struct histogram_layout few = { .offset = -30, .n_buckets = 13 };

	assert_range("-16..2", "s", -30, 20, 14, 1);
	assert_range("-20..16 step 2", "s", -30, 20, 10, 2);
	assert_range("-29..16", "s", -30, 47, 1, 1);
	assert_range("0..45 step 45", "By", -1, 3, 1, 45);
	assert_range("3..3", "1", -1, 2, 4, 1);
	assert_range(NULL, "s", -30, 20, 12, 1);
	assert_range(NULL, "By", -1, 20, 5, 1);
	assert_range(NULL, "{page}", -1, 20, 1, 1);
	assert_null(range_parse(NULL, "s", &few)); /* up to 2^-19: too few for the usual range */
	assert_int_equal(few.n_explicit, 0);
}

static void what_is_no_range_is_refused(void **state)
{
	static const char *const wrong[] = { "", "1", "1..", "..1", "2..1", "1..2 step", "1..2 step 0", "1..4 step 2", "1..3 step -1",
					     "1..2 x", "1..2 step 1 x", "-30..2", "0..46", "1.5..2", "-2147483648..2147483647" };
	struct histogram_layout layout = { .offset = -30, .n_buckets = 48 };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_non_null(range_check(wrong[i]));
		assert_non_null(range_parse(wrong[i], "s", &layout));
		assert_int_equal(layout.n_explicit, 0);
	}
	assert_non_null(range_parse("0..17", "s", &layout));
	assert_null(range_check("0..17"));
}

static void a_factor_is_a_fraction_in_lowest_terms(void **state)
{
	static const struct {
		const char *text;
		uint64_t factor, divisor;
	} cases[] = {
		{ "1", 1, 1 },	       { "1024", 1024, 1 },   { "0.000001", 1, 1000000 }, { "0.5", 1, 2 },
		{ "1024.00", 1024, 1 }, { "1.048576", 16384, 15625 }, { "0.000000000000001", 0, 0 },
		{ "0.00000000000001", 1, 100000000000000 }, { "999999999999999", 999999999999999, 1 },
	};
	static const char *const wrong[] = { "", "0", "0.0", "-1", "+1", ".5", "1.", "1e3", "1 ", " 1", "1.2.3", "1,5",
					     "1000000000000000", "0.0000000000000001" };
	uint64_t factor, divisor;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (!cases[i].factor) {
			assert_non_null(multiply_check(cases[i].text));
			continue;
		}
		assert_null(multiply_parse(cases[i].text, &factor, &divisor));
		assert_int_equal(factor, cases[i].factor);
		assert_int_equal(divisor, cases[i].divisor);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_non_null(multiply_check(wrong[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts_have_bounds_and_keys),
		cmocka_unit_test(keys_of_linear_count_from_their_multiple_on),
		cmocka_unit_test(without_a_range_all_powers_have_a_bucket),
		cmocka_unit_test(what_is_no_layout_is_refused),
		cmocka_unit_test(a_range_chooses_powers_of_two),
		cmocka_unit_test(what_is_no_range_is_refused),
		cmocka_unit_test(a_factor_is_a_fraction_in_lowest_terms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
