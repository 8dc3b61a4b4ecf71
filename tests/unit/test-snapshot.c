/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "metric/series.h"
#include "metric/snapshot.h"

#define BUCKETS 40
#define METRICS 3

/* A map with a sum, a gauge and a histogram, and one process's view of it. */
struct fixture {
	struct budget budget;
	struct metric metrics[METRICS], *pointers[METRICS];
	struct delta_metric of[METRICS];
	struct delta delta;
	struct rows *rows;
	unsigned int n_decoded;
};

static int by_number(void *user, const void *key, const struct delta_metric *of, struct attributes *attributes)
{
	struct fixture *f = user;
	uint64_t number;

	memcpy(&number, key, sizeof(number));
	f->n_decoded++;
	if (number == 13)
		return DELTA_UNWANTED;
	assert_ok(attributes_add_text(attributes, "unit", number % 2 ? "odd" : "even", number % 2 ? 3 : 4));
	assert_ok(attributes_add_flag(attributes, "flag", number > 2));
	return attributes_add_number(attributes, "n", -(int64_t)number);
}

static void setup(struct fixture *f)
{
	static const enum metric_kind kinds[METRICS] = { METRIC_SUM, METRIC_GAUGE, METRIC_HISTOGRAM };

	*f = (struct fixture){ .budget.limit_series = 100 };
	for (uint32_t i = 0; i < METRICS; i++) {
		f->metrics[i] = (struct metric){ .scope = "s", .name = (const char *[]){ "a", "b", "c" }[i], .unit = "1",
						 .description = "", .kind = kinds[i], .divisor = 1 };
		if (kinds[i] == METRIC_HISTOGRAM)
			f->metrics[i].layout = (struct histogram_layout){ 0, -30, BUCKETS };
		metric_init_series(&f->metrics[i], &f->budget);
		f->pointers[i] = &f->metrics[i];
		f->of[i] = (struct delta_metric){ .metric = &f->metrics[i], .first_cell = i, .sum_bits = 64,
						  .bucket_bits = 32 };
	}
	f->delta = (struct delta){ .metrics = f->of, .n_metrics = METRICS, .attributes = by_number, .user = f };
	assert_ok(rows_new(8, 3 + BUCKETS, METRICS, &f->rows));
}

static void teardown(struct fixture *f)
{
	delta_release(&f->delta, f->rows);
	assert_int_equal(f->budget.n_series, 0);
	for (uint32_t i = 0; i < METRICS; i++)
		metric_done_series(&f->metrics[i]);
	assert_int_equal(f->budget.series_bytes, 0);
	rows_free(f->rows);
}

/* One collection in which each key from 1 to n has what it had before, and more by its number. */
static void collect(struct fixture *f, uint64_t n, uint64_t round, uint64_t previous_ns)
{
	rows_begin(f->rows);
	for (uint64_t key = 1; key <= n; key++) {
		uint64_t *cells;
		uint32_t row;

		assert_ok(rows_touch(f->rows, &key, &row));
		cells = rows_cells(f->rows, row);
		cells[0] = cells[1] = cells[2] = key * round;
		cells[3 + key % BUCKETS] = round;
	}
	rows_cells(f->rows, ROWS_OVERFLOW)[0] = 1000 * round;
	for (uint32_t i = 0; i < METRICS; i++)
		series_begin(&f->metrics[i]);
	assert_ok(delta_compute(&f->delta, f->rows, previous_ns));
	for (uint32_t i = 0; i < METRICS; i++)
		series_end(&f->metrics[i]);
}

static struct store save(struct fixture *f)
{
	struct store store;

	assert_ok(store_open(memfd_create("test", MFD_CLOEXEC), &store));
	metrics_save(f->pointers, METRICS, &store);
	rows_save(f->rows, METRICS, &store);
	assert_false(store.has_failed);
	return store;
}

static int restore(struct fixture *f, const uint8_t *data, size_t size, bool has_other_names)
{
	struct restored restored = { .has_other_names = has_other_names, .time_ns = 200 };
	struct stored in = { data, data + size, false };
	int err = metrics_restore(f->pointers, METRICS, &in, &restored);

	if (!err)
		err = rows_restore(&f->delta, f->rows, &in, &restored);
	restored_release(&restored, NULL, NULL);
	return err ? err : in.at == in.end ? 0 : -EINVAL;
}

static void assert_same_series(const struct fixture *f, const struct fixture *expected)
{
	for (uint32_t i = 0; i < METRICS; i++) {
		assert_int_equal(f->metrics[i].n_series, expected->metrics[i].n_series);
		for (size_t j = 0; j < f->metrics[i].n_series; j++) {
			const struct series *series = f->metrics[i].series[j], *other = expected->metrics[i].series[j];

			assert_int_equal(series->start_ns, other->start_ns);
			assert_int_equal(series->hash, other->hash);
			assert_int_equal(series->total.sum, other->total.sum);
			assert_int_equal(series->total.count, other->total.count);
			if (i == 2)
				assert_memory_equal(series->total.bucket, other->total.bucket,
						    BUCKETS * sizeof(uint64_t));
			assert_int_equal(series->n_sources, other->n_sources);
			assert_int_equal(series_is_overflow(series), series_is_overflow(other));
		}
	}
	assert_int_equal(f->budget.n_series, expected->budget.n_series);
	assert_int_equal(f->budget.series_bytes, expected->budget.series_bytes);
}

static void a_later_process_counts_on(void **state)
{
	struct fixture first, second;
	struct store store;

	setup(&first);
	setup(&second);
	collect(&first, 20, 1, 100);
	collect(&first, 30, 2, 200);
	*rows_stay(first.rows, 3) = ROWS_KEPT;
	store = save(&first);
	assert_ok(restore(&second, store.data, store.size, false));
	assert_int_equal(second.n_decoded, 0);
	for (uint32_t row = 0; row <= 30; row++)
		assert_int_equal(*rows_stay(second.rows, row), row == 3 ? ROWS_KEPT : ROWS_GO);
	assert_same_series(&second, &first);
	collect(&first, 30, 3, 300);
	collect(&second, 30, 3, 300);
	assert_int_equal(second.n_decoded, 0);
	assert_same_series(&second, &first);
	/* What nothing feeds any more ends in both. */
	collect(&first, 10, 4, 400);
	collect(&second, 10, 4, 400);
	assert_same_series(&second, &first);
	store_done(&store);
	teardown(&first);
	teardown(&second);
}

static void with_other_names_rows_look_for_their_series_again(void **state)
{
	struct fixture first, second;
	struct store store;

	setup(&first);
	setup(&second);
	collect(&first, 20, 5, 100);
	store = save(&first);
	second.metrics[0].dropped = (struct setting_list){ .items = (char *[]){ (char *)"n" }, .n_items = 1 };
	assert_ok(restore(&second, store.data, store.size, true));
	/* {unit, flag} of 1 to 20 without 13, and the overflow series */
	assert_int_equal(second.metrics[0].n_series, 4 + 1);
	assert_int_equal(second.metrics[0].series[0]->total.sum + second.metrics[0].series[1]->total.sum +
			 second.metrics[0].series[2]->total.sum + second.metrics[0].series[3]->total.sum +
			 second.metrics[0].series[4]->total.sum, 5 * (210 - 13) + 5000);
	assert_int_equal(second.metrics[0].series[0]->start_ns, 100);
	store_done(&store);
	teardown(&first);
	teardown(&second);
}

static void other_metrics_are_left_out(void **state)
{
	struct fixture first, second;
	struct store store;

	setup(&first);
	setup(&second);
	collect(&first, 5, 1, 100);
	store = save(&first);
	second.metrics[0].unit = "s";
	second.metrics[2].divisor = 1000;
	assert_ok(restore(&second, store.data, store.size, false));
	/* Its rows feed it from now on. */
	assert_int_equal(second.metrics[0].n_series, 6);
	assert_int_equal(second.metrics[0].series[0]->total.sum, 0);
	assert_int_equal(second.metrics[0].series[0]->start_ns, 200);
	assert_int_equal(second.metrics[1].series[0]->total.sum, first.metrics[1].series[0]->total.sum);
	store_done(&store);
	teardown(&first);
	teardown(&second);
}

/* Cut off anywhere, and with each of its bytes changed. What it then says is checked by nobody but the restorer. */
static void damage_is_survived(void **state)
{
	struct fixture first, second;
	struct store store;

	setup(&first);
	collect(&first, 4, 1, 100);
	store = save(&first);
	for (size_t i = 0; i < 2 * store.size; i++) {
		uint8_t *copy = malloc(i < store.size ? i + 1 : store.size);
		size_t size = i < store.size ? i : store.size;

		memcpy(copy, store.data, size);
		if (i >= store.size)
			copy[i - size] ^= 0x83;
		setup(&second);
		if (i < store.size)
			assert_int_not_equal(restore(&second, copy, size, i % 2), 0);
		else
			(void)restore(&second, copy, size, i % 2);
		teardown(&second);
		free(copy);
	}
	store_done(&store);
	teardown(&first);
}

static void rows_of_numbers_are_as_they_were(void **state)
{
	uint64_t numbers[300], read[300];
	struct stored in;
	struct store store;

	assert_ok(store_open(memfd_create("test", MFD_CLOEXEC), &store));
	for (unsigned int i = 0; i < 300; i++)
		numbers[i] = i % 7 ? 0 : UINT64_MAX >> i % 64;
	for (unsigned int round = 0; round < 1000; round++)
		store_numbers(&store, numbers + round % 150, 150);
	in = (struct stored){ store.data, store.data + store.size, false };
	for (unsigned int round = 0; round < 1000; round++) {
		stored_numbers(&in, read, 150);
		assert_memory_equal(read, numbers + round % 150, 150 * sizeof(*read));
	}
	assert_false(in.is_bad);
	assert_ptr_equal(in.at, in.end);
	assert_int_equal(stored_number(&in), 0);
	assert_true(in.is_bad);
	store_done(&store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_process_counts_on),
		cmocka_unit_test(with_other_names_rows_look_for_their_series_again),
		cmocka_unit_test(other_metrics_are_left_out),
		cmocka_unit_test(damage_is_survived),
		cmocka_unit_test(rows_of_numbers_are_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
