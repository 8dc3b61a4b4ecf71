/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "metric/rows.h"

enum { MANY = 5000 };

static uint32_t touch(struct rows *rows, uint64_t key)
{
	uint32_t row;

	assert_ok(rows_touch(rows, &key, &row));
	rows_cells(rows, row)[0] = key;
	return row;
}

static struct rows *many_rows(void)
{
	struct rows *rows;

	assert_ok(rows_new(sizeof(uint64_t), 1, 1, &rows));
	rows_begin(rows);
	for (uint32_t i = 1; i < MANY; i++)
		assert_int_equal(touch(rows, i), i);
	return rows;
}

static void check_rows(struct rows *rows, const uint32_t *numbers, uint32_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t key = numbers[i];

		assert_int_equal(rows_find(rows, &key), numbers[i]);
		assert_int_equal(rows_cells(rows, numbers[i])[0], numbers[i]);
	}
}

static void rows_that_are_gone_give_their_memory_back(void **state)
{
	struct rows *rows = many_rows();
	uint32_t *numbers;

	for (uint32_t i = 1; i < MANY; i++)
		if (i % 1000 != 7)
			rows_remove(rows, i);
	rows_begin(rows);
	assert_int_equal(rows->n, MANY);
	numbers = rows_compact(rows);
	assert_non_null(numbers);
	assert_int_equal(rows->n, 6);
	for (uint32_t i = 0; i < 5; i++) {
		uint64_t key = 1000 * i + 7;

		assert_int_equal(numbers[key], i + 1);
		assert_int_equal(rows_find(rows, &key), i + 1);
		assert_int_equal(rows_cells(rows, i + 1)[0], key);
	}
	assert_int_equal(rows_find(rows, &(uint64_t){ 8 }), ROWS_OVERFLOW);
	free(numbers);
	/* Then there is room for as many as before. */
	for (uint32_t i = 6; i < MANY; i++)
		assert_int_equal(touch(rows, MANY + i), i);
	rows_free(rows);
}

static void rows_stay_while_enough_of_them_live(void **state)
{
	struct rows *rows = many_rows();

	for (uint32_t i = 1; i < MANY / 2; i++)
		rows_remove(rows, i);
	assert_null(rows_compact(rows));
	assert_int_equal(rows->n, MANY);
	check_rows(rows, (const uint32_t[]){ MANY / 2, MANY - 1 }, 2);
	assert_true(touch(rows, 1) < MANY / 2);
	rows_free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_are_gone_give_their_memory_back),
		cmocka_unit_test(rows_stay_while_enough_of_them_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
