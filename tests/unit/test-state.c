/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "metric/series.h"
#include "metric/state.h"

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
	assert_ok(attributes_add_lines(attributes, "unit", number % 2 ? "o\ndd" : "even", 4));
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
		f->of[i] = (struct delta_metric){ .metric = &f->metrics[i], .factor = 1, .first_cell = i,
						  .sum_bits = 64, .bucket_bits = 32 };
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

/* What a process leaves: two stores, the first with names. */
struct left {
	struct store stores[2];
	struct series_names names;
};

static void save(struct fixture *f, struct left *left)
{
	struct store *out = &left->stores[1];

	store_reset(out);
	if (names_are_stale(&left->names))
		names_begin(&left->names, &left->stores[0]);
	metrics_save(f->pointers, METRICS, &left->names, out);
	rows_save(f->rows, METRICS, out);
	assert_false(out->has_failed || left->stores[0].has_failed);
}

static void setup_left(struct left *left)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	*left = (struct left){ 0 };
	assert_ok(stores_open(fd, left->stores, 2));
	close(fd);
}

static void teardown_left(struct left *left)
{
	index_done(&left->names.texts);
	stores_close(left->stores, 2);
}

static struct stored whole(const struct store *store)
{
	return (struct stored){ store->data, store->data + store->size, false };
}

static int restore(struct fixture *f, struct stored names, struct stored in, bool has_other_names)
{
	struct restored restored = { .names = names, .has_other_names = has_other_names, .time_ns = 200 };
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
	struct left left;

	setup_left(&left);
	setup(&first);
	setup(&second);
	collect(&first, 20, 1, 100);
	collect(&first, 30, 2, 200);
	rows_at(first.rows, 3)->stay = ROWS_KEPT;
	save(&first, &left);
	assert_ok(restore(&second, whole(&left.stores[0]), whole(&left.stores[1]), false));
	assert_int_equal(second.n_decoded, 0);
	for (uint32_t row = 0; row <= 30; row++)
		assert_int_equal(rows_at(second.rows, row)->stay, row == 3 ? ROWS_KEPT : ROWS_GO);
	assert_same_series(&second, &first);
	collect(&first, 30, 3, 300);
	collect(&second, 30, 3, 300);
	assert_int_equal(second.n_decoded, 0);
	assert_same_series(&second, &first);
	/* What nothing feeds any more ends in both. */
	collect(&first, 10, 4, 400);
	collect(&second, 10, 4, 400);
	assert_same_series(&second, &first);
	teardown_left(&left);
	teardown(&first);
	teardown(&second);
}

static void with_other_names_rows_look_for_their_series_again(void **state)
{
	struct fixture first, second;
	struct left left;

	setup_left(&left);
	setup(&first);
	setup(&second);
	collect(&first, 20, 5, 100);
	save(&first, &left);
	second.metrics[0].dropped = (struct setting_list){ .items = (char *[]){ (char *)"n" }, .n_items = 1 };
	assert_ok(restore(&second, whole(&left.stores[0]), whole(&left.stores[1]), true));
	/* {unit, flag} of 1 to 20 without 13, and the overflow series */
	assert_int_equal(second.metrics[0].n_series, 4 + 1);
	assert_int_equal(second.metrics[0].series[0]->total.sum + second.metrics[0].series[1]->total.sum +
			 second.metrics[0].series[2]->total.sum + second.metrics[0].series[3]->total.sum +
			 second.metrics[0].series[4]->total.sum, 5 * (210 - 13) + 5000);
	assert_int_equal(second.metrics[0].series[0]->start_ns, 100);
	teardown_left(&left);
	teardown(&first);
	teardown(&second);
}

static void other_metrics_are_left_out(void **state)
{
	struct fixture first, second;
	struct left left;

	setup_left(&left);
	setup(&first);
	setup(&second);
	collect(&first, 5, 1, 100);
	save(&first, &left);
	second.metrics[0].unit = "s";
	second.metrics[2].divisor = 1000;
	assert_ok(restore(&second, whole(&left.stores[0]), whole(&left.stores[1]), false));
	/* Its rows feed it from now on. */
	assert_int_equal(second.metrics[0].n_series, 6);
	assert_int_equal(second.metrics[0].series[0]->total.sum, 0);
	assert_int_equal(second.metrics[0].series[0]->start_ns, 200);
	assert_int_equal(second.metrics[1].series[0]->total.sum, first.metrics[1].series[0]->total.sum);
	teardown_left(&left);
	teardown(&first);
	teardown(&second);
}

static void a_histogram_goes_on_with_the_same_bounds(void **state)
{
	static const struct histogram_bound bounds[][BUCKETS - 1] = { { { 1 }, { 3 } }, { { 1 }, { 3 } },
								      { { 1 }, { 4 } } };

	for (size_t i = 0; i < 4; i++) {
		struct fixture first, second;
		struct left left;

		setup_left(&left);
		setup(&first);
		setup(&second);
		first.metrics[2].layout = (struct histogram_layout){ .n_buckets = BUCKETS, .bounds = bounds[0] };
		second.metrics[2].layout = (struct histogram_layout){ .n_buckets = BUCKETS, .bounds = bounds[i % 3],
								      .has_no_sum = i == 3 };
		collect(&first, 5, 1, 100);
		save(&first, &left);
		assert_ok(restore(&second, whole(&left.stores[0]), whole(&left.stores[1]), false));
		assert_int_equal(second.metrics[2].series[0]->total.sum,
				 i < 2 ? first.metrics[2].series[0]->total.sum : 0);
		assert_int_not_equal(first.metrics[2].series[0]->total.sum, 0);
		teardown_left(&left);
		teardown(&first);
		teardown(&second);
	}
}

static void names_are_written_once(void **state)
{
	struct fixture first, second;
	struct store *names;
	struct left left;
	size_t size, n;

	setup_left(&left);
	names = &left.stores[0];
	setup(&first);
	setup(&second);
	collect(&first, 20, 1, 100);
	save(&first, &left);
	size = names->size;
	n = left.names.n;
	assert_int_equal(n, left.names.n_live);
	collect(&first, 20, 2, 200);
	save(&first, &left);
	assert_int_equal(names->size, size);
	collect(&first, 21, 3, 300);
	save(&first, &left);
	assert_int_equal(left.names.n, n + METRICS);
	/* A start of at most 9 bytes and four numbers; of each text, flag and number two of 2 bytes, and a type. */
	assert_in_range(names->size - size, 1, METRICS * (13 + 3 * 5));
	assert_ok(restore(&second, whole(names), whole(&left.stores[1]), false));
	assert_same_series(&second, &first);
	teardown(&second);
	/* They come and go: the names of those that went do not stay for ever. */
	for (uint64_t round = 4; round < 400; round++) {
		collect(&first, round % 4 < 2 ? 30 : 1, round, 400);
		save(&first, &left);
		assert_in_range(left.names.n, left.names.n_live, 2 * 100 + 1000 + 100);
	}
	assert_in_range(names->size, 1, 64 << 10);
	setup(&second);
	assert_ok(restore(&second, whole(names), whole(&left.stores[1]), false));
	assert_int_equal(second.budget.n_series, first.budget.n_series);
	teardown_left(&left);
	teardown(&first);
	teardown(&second);
}

/* Cut off anywhere, and with each of its bytes changed. What it then says is checked by nobody but the restorer. */
static void damage_of(struct left *left, unsigned int which)
{
	const struct store *store = &left->stores[which];
	struct fixture second;

	for (size_t i = 0; i < 2 * store->size; i++) {
		bool is_cut = i < store->size;
		size_t size = is_cut ? i : store->size;
		uint8_t *copy = malloc(size + 1);
		struct stored in[2] = { whole(&left->stores[0]), whole(&left->stores[1]) };
		int err;

		memcpy(copy, store->data, size);
		if (!is_cut)
			copy[i - size] ^= 0x83;
		in[which] = (struct stored){ copy, copy + size, false };
		setup(&second);
		err = restore(&second, in[0], in[1], i % 2);
		if (is_cut)
			assert_int_not_equal(err, 0);
		teardown(&second);
		free(copy);
	}
}

static void damage_is_survived(void **state)
{
	struct fixture first;
	struct left left;

	setup_left(&left);
	setup(&first);
	collect(&first, 4, 1, 100);
	save(&first, &left);
	damage_of(&left, 0);
	damage_of(&left, 1);
	teardown_left(&left);
	teardown(&first);
}

static void rows_of_numbers_are_as_they_were(void **state)
{
	uint64_t numbers[300], read[300];
	struct stored in;
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct store store;

	assert_ok(stores_open(fd, &store, 1));
	close(fd);
	for (unsigned int i = 0; i < 300; i++)
		numbers[i] = i % 7 ? 0 : UINT64_MAX >> i % 64;
	for (unsigned int round = 0; round < 1000; round++)
		store_numbers(&store, numbers + round % 150, 150);
	in = whole(&store);
	for (unsigned int round = 0; round < 1000; round++) {
		stored_numbers(&in, read, 150);
		assert_memory_equal(read, numbers + round % 150, 150 * sizeof(*read));
	}
	assert_false(in.is_bad);
	assert_ptr_equal(in.at, in.end);
	assert_int_equal(stored_number(&in), 0);
	assert_true(in.is_bad);
	stores_close(&store, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_process_counts_on),
		cmocka_unit_test(with_other_names_rows_look_for_their_series_again),
		cmocka_unit_test(other_metrics_are_left_out),
		cmocka_unit_test(a_histogram_goes_on_with_the_same_bounds),
		cmocka_unit_test(names_are_written_once),
		cmocka_unit_test(damage_is_survived),
		cmocka_unit_test(rows_of_numbers_are_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
