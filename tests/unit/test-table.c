/* SPDX-License-Identifier: Apache-2.0 */
/* Flat tables, one step at a time. */
#include "table-rig.h"

/* ------ reading ------ */

static void a_key_is_the_sum_of_its_columns(void **state)
{
	struct rig rig;

	open_rig(&rig, true, 100, n_cpus() + 1);
	for (unsigned int cpu = 0; cpu < n_cpus(); cpu++) {
		assert_ok(enter_cpu(cpu));
		count(&rig, 5, 3);
	}
	for (int i = 0; i < 2; i++) {
		struct key key = { 6, 0 };
		const uint64_t *cells;

		read_rig(&rig);
		assert_int_equal(rig.rows->n_live, 3);
		cells = rows_cells(rig.rows, rows_find(rig.rows, &key));
		assert_int_equal(cells[0], n_cpus());
		assert_int_equal(cells[1], 6 * n_cpus());
		assert_int_equal(cells[2 + 4], n_cpus()); /* (4, 8] */
		assert_int_equal(cells[50], 6);		  /* a level is not summed */
	}
	assert_int_equal(rig.reader.table.n_live, 3);
	assert_int_equal(rows_cells(rig.rows, ROWS_OVERFLOW)[0], 0);
	close_rig(&rig);
}

static void the_random_number_of_the_hashes_is_found(void **state)
{
	struct rig rig;

	open_rig(&rig, false, 1, 1);
	assert_non_null(table_seed(rig.object));
	close_rig(&rig);
}

/* 0 is in a bucket, but adds nothing to the sum. */
static void a_histogram_of_zeros_is_not_empty(void **state)
{
	struct key key = { 0, 0 };
	struct rig rig;

	open_rig(&rig, true, 100, 2);
	count(&rig, 0, 1);
	read_rig(&rig);
	assert_int_equal(rows_cells(rig.rows, rows_find(rig.rows, &key))[2], 1);
	close_rig(&rig);
}

static void a_table_that_grows_loses_nothing(void **state)
{
	struct rig rig;
	uint32_t before;

	open_rig(&rig, false, 6000, 1);
	before = rig.reader.table.n_places;
	assert_int_equal(before, 512);
	for (uint64_t n = BURST; n <= 6000; n += BURST) {
		for (uint64_t first = 0; first < n; first += BURST)
			count(&rig, first, BURST);
		if (n % 1000 < BURST)
			read_rig(&rig);
	}
	read_rig(&rig);
	assert_int_equal(rig.reader.table.n_places, 8192);
	/* Only keys of the first part have second places. */
	assert_true(rig.reader.table.n_live + rig.reader.n_spilled > 5952);
	assert_true(rig.reader.table.n_live + rig.reader.n_spilled < 5952 + before);
	/* Two or three; without second homes 200, most of them with homes in the first part. */
	assert_in_range(rig.reader.n_spilled, 0, 30);
	for (uint64_t i = 0; i < 5952; i++)
		assert_int_equal(rig.seen[i], 93 - i / BURST);
	assert_int_equal(rig.overflow, 0);
	close_rig(&rig);
}

/* 64 places and 16 in the hash map: the rest has no name, and none that has one is too low. */
static void keys_without_a_place_spill_and_then_overflow(void **state)
{
	uint64_t n_named = 0;
	struct rig rig;

	open_rig(&rig, false, 0, 1);
	for (int i = 0; i < 3; i++) {
		for (uint64_t first = 0; first < 1024; first += BURST)
			count(&rig, first, BURST);
		read_rig(&rig);
	}
	assert_int_equal(rig.reader.table.n_live, 63);
	assert_int_equal(rig.reader.n_spilled, 16);
	for (int i = 0; i < 1024; i++) {
		assert_true(rig.seen[i] == 0 || rig.seen[i] == 3);
		n_named += rig.seen[i] != 0;
	}
	assert_int_equal(n_named, 63 + 16);
	assert_int_equal(rig.overflow, 3 * (1024 - n_named));
	close_rig(&rig);
}

/* ------ removal ------ */

static unsigned int count_staying(const struct rig *rig)
{
	unsigned int n = 0;

	for (uint32_t row = 1; row < rig->rows->n; row++)
		n += rows_is_live(rig->rows, row) && rows_at(rig->rows, row)->stay != ROWS_GO;
	return n;
}

static unsigned int count_out(const struct rig *rig)
{
	unsigned int n = 0;

	for (uint32_t place = 1; place < rig->reader.table.n_places; place++)
		n += table_is_out(&rig->reader.table, place);
	return n;
}

static void a_key_leaves_in_three_steps(void **state)
{
	struct rig rig;

	open_rig(&rig, true, 100, 3);
	count(&rig, 1, 2);
	read_rig(&rig);
	rig.is_gone = false;
	sweep(&rig);
	assert_int_equal(count_staying(&rig), 0);
	rig.is_gone = true;
	sweep(&rig);
	assert_int_equal(count_staying(&rig), 2);
	/* The rows end after a reading that shows that nothing came late. */
	read_rig(&rig);
	assert_int_equal(rig.reader.table.n_live, 0);
	assert_int_equal(rig.rows->n_live, 2);
	read_rig(&rig);
	assert_int_equal(rig.rows->n_live, 0);
	assert_int_equal(rig.seen[1] + rig.seen[2], 2);
	/* The places serve again after the next state, and begin with nothing. */
	assert_int_equal(count_out(&rig), 2);
	sweep(&rig);
	assert_int_equal(count_out(&rig), 0);
	count(&rig, 1, 60);
	read_rig(&rig);
	assert_int_equal(rig.rows->n_live, 60);
	assert_int_equal(rig.seen[1] + rig.seen[2] + rig.seen[60], 5);
	close_rig(&rig);
}

static void a_burst_leaves_nothing_but_what_lives(void **state)
{
	enum { BURST_KEYS = 93 * BURST, LIVE_KEYS = 40, FIRST_LIVE = BURST_KEYS - LIVE_KEYS };
	struct rig rig;

	open_rig(&rig, false, 6000, 1);
	for (uint64_t first = 0; first < BURST_KEYS; first += BURST)
		count(&rig, first, BURST);
	read_rig(&rig);
	rig.live_from = FIRST_LIVE; /* these have come after the table was opened */
	rig.idle = 2;
	for (int i = 0; i < 3; i++) {
		sweep(&rig);
		read_rig(&rig);
		read_rig(&rig);
		count(&rig, FIRST_LIVE, LIVE_KEYS / 2); /* half of the keys come back, half are idle */
	}
	read_rig(&rig);
	assert_int_equal(rig.rows->n_live, LIVE_KEYS);
	assert_in_range(rig.rows->n, LIVE_KEYS + 1, 256);
	/* A second burst, and nothing is lost or counted twice. */
	for (uint64_t first = 0; first < BURST_KEYS; first += BURST)
		count(&rig, first, BURST);
	read_rig(&rig);
	for (uint64_t i = 0; i < BURST_KEYS; i++)
		assert_int_equal(rig.seen[i], i >= FIRST_LIVE && i < FIRST_LIVE + LIVE_KEYS / 2 ? 5 : 2);
	rig.live_from = 0;
	for (int i = 0; i < 2; i++) {
		sweep(&rig);
		read_rig(&rig);
		read_rig(&rig);
	}
	assert_int_equal(rig.rows->n_live, 0);
	assert_int_equal(rig.overflow, 0);
	close_rig(&rig);
}

/* What a program adds that had found the place before. */
static void add_late(struct rig *rig, uint64_t number)
{
	struct table *table = &rig->reader.table;

	for (uint32_t place = 1; place < table->n_places; place++)
		if (table->place_rows[place] &&
		    ((const struct key *)rows_key(rig->rows, table->place_rows[place]))->number == number)
			++*(uint64_t *)(table->values + place * table->stride_bytes);
}

/* With a reading between the steps, and without. */
static void what_is_added_after_the_first_step_counts(void **state)
{
	for (int has_reading = 0; has_reading < 2; has_reading++) {
		struct rig rig;

		open_rig(&rig, false, 100, 1);
		count(&rig, 7, 1);
		read_rig(&rig);
		retire(&rig);
		add_late(&rig, 7);
		if (has_reading)
			read_rig(&rig);
		add_late(&rig, 7);
		while (sweep_for(&rig, 2000000) != SWEEP_DONE)
			usleep(100);
		read_rig(&rig);
		assert_int_equal(rig.seen[7], 3);
		read_rig(&rig);
		assert_int_equal(rig.rows->n_live, 0);
		close_rig(&rig);
	}
}

static void a_key_that_returns_meanwhile_goes_on(void **state)
{
	struct rig rig;

	open_rig(&rig, false, 100, 1);
	for (int i = 0; i < 10; i++)
		count(&rig, 7, 1);
	read_rig(&rig);
	retire(&rig);
	count(&rig, 7, 1);
	read_rig(&rig);
	assert_int_equal(rig.seen[7], 11);
	assert_int_equal(rig.reader.table.n_live, 2);
	count(&rig, 7, 1);
	while (sweep_for(&rig, 2000000) != SWEEP_DONE)
		usleep(100);
	read_rig(&rig);
	assert_int_equal(rig.seen[7], 12);
	assert_int_equal(rig.reader.table.n_live, 1);
	read_rig(&rig);
	assert_int_equal(rig.rows->n_live, 1);
	close_rig(&rig);
}

/* With a reading between any two turns, of which each has time for a few places. */
static void turns_are_short_and_readings_between_them_are_right(void **state)
{
	int n_turns = 0;
	struct rig rig;

	open_rig(&rig, true, 1000, 3);
	for (uint64_t first = 0; first < 960; first += BURST)
		count(&rig, first, BURST);
	read_rig(&rig);
	for (rig.now_ns *= 20; rig.rows->n_live && n_turns < 100000; n_turns++) {
		usleep(sweep_for(&rig, 10000) ? 100 : 0);
		read_rig(&rig);
	}
	assert_int_equal(rig.rows->n_live, 0);
	assert_true(n_turns > 100);
	for (int i = 0; i < 960; i++)
		assert_int_equal(rig.seen[i], 1);
	close_rig(&rig);
}

static void spilled_keys_leave_too(void **state)
{
	struct rig rig;

	open_rig(&rig, false, 0, 1);
	count(&rig, 0, BURST);
	count(&rig, BURST, 7);
	for (int i = 0; i < 5; i++)
		read_rig(&rig);
	assert_int_equal(rig.reader.n_spilled, 8);
	retire(&rig);
	read_rig(&rig);
	count(&rig, BURST, 7); /* back at once */
	while (sweep_for(&rig, 2000000) != SWEEP_DONE)
		usleep(100);
	for (int i = 0; i < 2; i++)
		read_rig(&rig);
	assert_int_equal(rig.rows->n_live, 7);
	for (int i = 0; i < BURST + 7; i++)
		assert_int_equal(rig.seen[i], i < BURST ? 1 : 2);
	assert_int_equal(rig.overflow, 0);
	close_rig(&rig);
}

/* ------ an earlier process was killed ------ */

/* Returns a key of the hash map that gets a place as well, since another key has left its own. */
static uint64_t find_both(struct rig *rig)
{
	uint64_t number = 0;

	rig->idle = 2;
	count(rig, 1, BURST);
	read_rig(rig);
	assert_int_equal(rig->reader.n_spilled, 1);
	for (uint32_t row = 1; row < rig->rows->n; row++)
		if (rows_at(rig->rows, row)->is_in_hash)
			number = ((const struct key *)rows_key(rig->rows, row))->number;
	rig->live = number;
	for (int i = 0; i < 3; i++) {
		sweep(rig);
		read_rig(rig);
	}
	count(rig, number, 1);
	read_rig(rig);
	assert_int_equal(rig->reader.n_spilled, 1);
	assert_int_equal(rig->reader.table.n_live, 1);
	rig->live = 0;
	return number;
}

static void a_key_with_a_place_and_in_the_hash_map_leaves_one_after_the_other(void **state)
{
	uint64_t number;
	struct rig rig;

	/* The process is killed after so many steps. */
	for (int n_steps = 0; n_steps < 24; n_steps++) {
		open_rig(&rig, false, 0, 1);
		number = find_both(&rig);
		for (int i = 0; i < n_steps; i++)
			if (i % 3 == 0)
				sweep(&rig);
			else if (i % 3 == 1)
				read_unsaved(&rig);
			else
				read_rig(&rig);
		if (n_steps == 23)
			assert_int_equal(rig.rows->n_live, 0);
		follow(&rig);
		read_rig(&rig);
		for (uint64_t i = 1; i <= BURST; i++)
			assert_int_equal(rig.seen[i], 1 + (i == number));
		assert_int_equal(rig.overflow, 0);
		close_rig(&rig);
	}
}

/* Its owners are not known to be gone now, so that only its state tells that a place is retired. */
static void places_that_were_retired_count_and_are_freed(void **state)
{
	struct rig rig;

	open_rig(&rig, true, 100, 3);
	count(&rig, 1, 60);
	read_rig(&rig);
	retire(&rig);
	add_late(&rig, 7);
	follow(&rig);
	rig.is_gone = false;
	read_rig(&rig);
	assert_int_equal(rig.reader.table.n_live, 60);
	assert_int_equal(rig.seen[7], 2);
	add_late(&rig, 7);
	sweep(&rig);
	read_rig(&rig);
	assert_int_equal(rig.reader.table.n_live, 0);
	assert_int_equal(rig.rows->n_live, 60); /* nobody has said that their owners are gone */
	assert_int_equal(rig.seen[7], 3);
	count(&rig, 1, 60);
	read_rig(&rig);
	for (int i = 1; i <= 60; i++)
		assert_int_equal(rig.seen[i], i == 7 ? 4 : 2);
	close_rig(&rig);
}

static void a_table_that_was_wide_is_read_to_its_end(void **state)
{
	enum { BURST_KEYS = 93 * BURST };
	struct rig rig;

	open_rig(&rig, false, 6000, 1);
	for (uint64_t first = 0; first < BURST_KEYS; first += BURST)
		count(&rig, first, BURST);
	read_rig(&rig);
	follow(&rig);
	assert_int_equal(rig.reader.table.n_places, rig.reader.table.capacity);
	read_rig(&rig);
	for (uint64_t i = 0; i < BURST_KEYS; i++)
		assert_int_equal(rig.seen[i], 1);
	assert_int_equal(rig.overflow, 0);
	close_rig(&rig);
}

static void of_a_table_that_was_never_wide_a_part_is_read(void **state)
{
	struct rig rig;
	uint32_t n_first;

	open_rig(&rig, false, 6000, 1);
	n_first = rig.reader.table.n_places;
	count(&rig, 0, 40);
	read_rig(&rig);
	follow(&rig);
	assert_int_equal(rig.reader.table.n_places, n_first);
	assert_true(n_first < rig.reader.table.capacity);
	close_rig(&rig);
}

/* Killed between the look at word 0 and the end of the reading. */
static void keys_that_had_spilled_are_read(void **state)
{
	struct rig rig;

	open_rig(&rig, false, 0, 1);
	count(&rig, 0, BURST);
	count(&rig, BURST, 7);
	read_rig(&rig);
	count(&rig, 0, BURST);
	count(&rig, BURST, 7);
	assert_true(table_take_spilled(&rig.reader.table));
	follow(&rig);
	read_rig(&rig);
	assert_int_equal(rig.reader.n_spilled, 8);
	for (int i = 0; i < BURST + 7; i++)
		assert_int_equal(rig.seen[i], 2);
	close_rig(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_the_sum_of_its_columns),
		cmocka_unit_test(the_random_number_of_the_hashes_is_found),
		cmocka_unit_test(a_histogram_of_zeros_is_not_empty),
		cmocka_unit_test(a_table_that_grows_loses_nothing),
		cmocka_unit_test(keys_without_a_place_spill_and_then_overflow),
		cmocka_unit_test(a_key_leaves_in_three_steps),
		cmocka_unit_test(a_burst_leaves_nothing_but_what_lives),
		cmocka_unit_test(what_is_added_after_the_first_step_counts),
		cmocka_unit_test(a_key_that_returns_meanwhile_goes_on),
		cmocka_unit_test(turns_are_short_and_readings_between_them_are_right),
		cmocka_unit_test(spilled_keys_leave_too),
		cmocka_unit_test(a_key_with_a_place_and_in_the_hash_map_leaves_one_after_the_other),
		cmocka_unit_test(places_that_were_retired_count_and_are_freed),
		cmocka_unit_test(a_table_that_was_wide_is_read_to_its_end),
		cmocka_unit_test(of_a_table_that_was_never_wide_a_part_is_read),
		cmocka_unit_test(keys_that_had_spilled_are_read),
	};

	return kernel_refuses_programs() ? KERNEL_SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
