/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "alloc.h"
#include "export/lines/claims.h"

static void a_name_is_of_whom_it_was_first(void **state)
{
	struct claims claims = { 0 };
	uint64_t name = claims_hash("a", 1);

	assert_false(claims_is_taken(&claims, name, 1));
	assert_ok(claims_add(&claims, name, 1));
	assert_false(claims_is_taken(&claims, name, 1));
	assert_true(claims_is_taken(&claims, name, 2));
	assert_ok(claims_add(&claims, name, 2));
	assert_false(claims_is_taken(&claims, name, 1));
	assert_int_equal(claims.n, 1);
	claims_done(&claims);
}

static void thousands_are_found_again_until_they_are_forgotten(void **state)
{
	struct claims claims = { 0 };

	for (uint64_t i = 0; i < 5000; i++)
		assert_ok(claims_add(&claims, claims_hash(&i, sizeof(i)), i));
	assert_int_equal(claims.n, 5000);
	for (uint64_t i = 0; i < 5000; i++) {
		assert_false(claims_is_taken(&claims, claims_hash(&i, sizeof(i)), i));
		assert_true(claims_is_taken(&claims, claims_hash(&i, sizeof(i)), i + 1));
	}
	for (uint64_t i = 5000; i < 10000; i++)
		assert_false(claims_is_taken(&claims, claims_hash(&i, sizeof(i)), 0));
	claims_reset(&claims);
	assert_int_equal(claims.n, 0);
	for (uint64_t i = 0; i < 5000; i++)
		assert_false(claims_is_taken(&claims, claims_hash(&i, sizeof(i)), i + 1));
	claims_done(&claims);
}

static int add_some(struct claims *claims)
{
	for (uint64_t i = 1; i < 200; i++) {
		int err = claims_add(claims, i, i);

		if (err)
			return err;
	}
	return 0;
}

static void what_finds_no_memory_is_no_claim(void **state)
{
	struct claims claims = { 0 };

	assert_survives_failing_allocations(add_some(&claims), {
		for (uint64_t i = 1; i <= claims.n; i++)
			assert_true(claims_is_taken(&claims, i, i + 1));
		assert_false(claims_is_taken(&claims, claims.n + 1, 0));
		claims_done(&claims);
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_of_whom_it_was_first),
		cmocka_unit_test(thousands_are_found_again_until_they_are_forgotten),
		cmocka_unit_test(what_finds_no_memory_is_no_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
