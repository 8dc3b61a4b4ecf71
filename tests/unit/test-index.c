/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "alloc.h"
#include "util/index.h"

static unsigned int count(const struct index *index, uint64_t hash, uint32_t wanted)
{
	unsigned int n = 0;
	uint32_t number;

	index_for_each(number, index, hash)
		n += number == wanted;
	return n;
}

static void an_empty_index_has_nothing(void **state)
{
	struct index index = { 0 };

	assert_int_equal(count(&index, 7, 7), 0);
	index_clear(&index);
	index_done(&index);
}

/* Few hashes for many numbers, so that runs are long, wrap around and lie in each other. */
static void what_is_in_is_found_once_and_what_is_out_never(void **state)
{
	enum { NUMBERS = 500 };
	struct index index = { 0 };
	bool is_in[NUMBERS] = { false };

	srandom(4);
	for (int step = 0; step < 20000; step++) {
		uint32_t number = (uint32_t)random() % NUMBERS, hash = number % 37 * 0x10000001u;

		if (is_in[number])
			index_remove(&index, hash, number);
		else
			assert_ok(index_add(&index, hash, number));
		is_in[number] = !is_in[number];
		assert_int_equal(count(&index, hash, number), is_in[number]);
		if (step % 1000)
			continue;
		index_shrink(&index);
		for (uint32_t i = 0; i < NUMBERS; i++)
			assert_int_equal(count(&index, i % 37 * 0x10000001u, i), is_in[i]);
	}
	index_done(&index);
}

static void what_went_leaves_no_trace(void **state)
{
	struct index index = { 0 };
	size_t n_entries;

	assert_ok(index_add(&index, 0, 0));
	n_entries = index.n_entries;
	for (uint32_t i = 1; i < 10000; i++) {
		assert_ok(index_add(&index, i, i));
		index_remove(&index, i - 1, i - 1);
	}
	assert_int_equal(index.n_entries, n_entries);
	index_clear(&index);
	assert_int_equal(count(&index, 9999, 9999), 0);
	index_done(&index);
}

static void room_that_is_not_needed_is_given_back(void **state)
{
	struct index index = { 0 };

	for (uint32_t i = 0; i < 10000; i++)
		assert_ok(index_add(&index, i, i));
	for (uint32_t i = 10; i < 10000; i++)
		index_remove(&index, i, i);
	index_shrink(&index);
	assert_int_equal(index.n_entries, 64);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(count(&index, i, i), i < 10);
	index_done(&index);
}

static int add_many(void)
{
	struct index index = { 0 };
	int err = 0;

	for (uint32_t i = 0; i < 100 && !err; i++)
		err = index_add(&index, i, i);
	for (uint32_t i = 0; i < index.n; i++)
		assert_int_equal(count(&index, i, i), 1);
	index_done(&index);
	return err;
}

static void a_failed_allocation_changes_nothing(void **state)
{
	assert_survives_failing_allocations(add_many(), );
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_index_has_nothing),
		cmocka_unit_test(what_is_in_is_found_once_and_what_is_out_never),
		cmocka_unit_test(what_went_leaves_no_trace),
		cmocka_unit_test(room_that_is_not_needed_is_given_back),
		cmocka_unit_test(a_failed_allocation_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
