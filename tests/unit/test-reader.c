/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of the running kernel, filled with numbers that are known, and read back. */
#include "test.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>

#include "collector/reader/reader.h"
#include "kernel.h"
#include "util/cleanup.h"

/* 20 bytes: neither a multiple of 8 nor of the key's size. */
struct value {
	uint64_t sum;
	uint32_t bucket[3];
} __attribute__((packed));

static struct reader_run runs[] = {
	{ .offset_bytes = 8, .size_bytes = 4, .count = 3, .first_cell = 1 },
	{ .offset_bytes = 0, .size_bytes = 8, .count = 1, .first_cell = 0 },
};

struct fixture {
	struct reader reader;
	struct rows *rows;
};

static int setup_map(struct fixture *f, enum bpf_map_type type, uint32_t max_entries)
{
	*f = (struct fixture){ .reader = { .type = (int)type, .key_bytes = 4, .value_bytes = sizeof(struct value),
					   .runs = runs, .n_runs = 2 } };
	f->reader.fd = bpf_map_create(type, "test", 4, sizeof(struct value), max_entries, NULL);
	assert_true(f->reader.fd >= 0);
	assert_ok(rows_new(4, 4, 1, &f->rows));
	assert_ok(reader_open(&f->reader));
	return f->reader.fd;
}

static void teardown(struct fixture *f)
{
	reader_close(&f->reader);
	rows_free(f->rows);
	close(f->reader.fd);
}

static bool is_percpu(enum bpf_map_type type)
{
	return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_LRU_PERCPU_HASH ||
	       type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static struct value value_of(uint32_t key, uint32_t cpu)
{
	return (struct value){ (1ull << 40) * (cpu + 1) + key, { key, 0xffffffff, cpu } };
}

static void put(const struct fixture *f, uint32_t key)
{
	size_t stride = (sizeof(struct value) + 7) / 8 * 8;
	uint32_t n = is_percpu((enum bpf_map_type)f->reader.type) ? (uint32_t)libbpf_num_possible_cpus() : 1;
	_cleanup_(freep) uint8_t *values = calloc(n, stride);

	for (uint32_t cpu = 0; cpu < n; cpu++) {
		struct value value = value_of(key, cpu);

		memcpy(values + cpu * stride, &value, sizeof(value));
	}
	assert_ok(bpf_map_update_elem(f->reader.fd, &key, values, BPF_ANY));
}

static void assert_row(const struct fixture *f, uint32_t row)
{
	uint32_t n = is_percpu((enum bpf_map_type)f->reader.type) ? (uint32_t)libbpf_num_possible_cpus() : 1, key;
	const uint64_t *cells = rows_cells(f->rows, row);
	uint64_t expected[4] = { 0 };

	memcpy(&key, rows_key(f->rows, row), 4);
	for (uint32_t cpu = 0; cpu < n; cpu++) {
		struct value value = value_of(key, cpu);

		expected[0] += value.sum;
		for (int i = 0; i < 3; i++)
			expected[1 + i] += value.bucket[i];
	}
	assert_memory_equal(cells, expected, sizeof(expected));
}

/* Of all that was put, every one is there once, with its numbers. */
static void assert_rows(const struct fixture *f, uint32_t n)
{
	uint32_t n_touched = 0;

	assert_int_equal(f->rows->n_live, n);
	for (uint32_t row = 1; row < f->rows->n; row++) {
		if (!rows_is_live(f->rows, row))
			continue;
		n_touched += rows_is_touched(f->rows, row);
		assert_row(f, row);
	}
	assert_int_equal(n_touched, n);
}

static const enum bpf_map_type hashes[] = { BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_LRU_HASH,
					    BPF_MAP_TYPE_LRU_PERCPU_HASH };
static const enum bpf_map_type arrays[] = { BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_PERCPU_ARRAY };

static void read_hash(enum bpf_map_type type, uint32_t n)
{
	struct fixture f;

	/* An LRU map keeps free entries in lists of each CPU, and gives up used ones before all is full. */
	setup_map(&f, type, 16384);
	for (uint32_t i = 0; i < n; i++)
		put(&f, i * 1000003);
	for (int reading = 0; reading < 2; reading++) {
		assert_ok(reader_read(&f.reader, f.rows));
		assert_rows(&f, n);
	}
	teardown(&f);
}

static void hash_maps_of_all_kinds_are_read_whole(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++) {
		read_hash(hashes[i], 0);
		read_hash(hashes[i], 1);
		read_hash(hashes[i], 3000); /* several batches of 512 */
	}
}

static void a_batch_grows_until_a_bucket_fits(void **state)
{
	struct fixture f;

	/* 4096 buckets for 3000 keys: many have two, some have five. */
	setup_map(&f, BPF_MAP_TYPE_HASH, 4096);
	f.reader.memory = malloc(sizeof(uint32_t) + sizeof(struct value));
	f.reader.batch = 1;
	for (uint32_t i = 0; i < 3000; i++)
		put(&f, i);
	assert_ok(reader_read(&f.reader, f.rows));
	assert_rows(&f, 3000);
	assert_true(f.reader.batch >= 4 && f.reader.batch <= 64);
	teardown(&f);
}

static void long_keys_are_read_whole(void **state)
{
	enum { KEY_BYTES = 1000, N = 700 }; /* more than one batch */
	uint8_t key[KEY_BYTES] = { 0 };
	uint64_t sum = 0;
	struct fixture f = { .reader = { .type = BPF_MAP_TYPE_HASH, .key_bytes = KEY_BYTES, .value_bytes = 8,
					 .runs = &runs[1], .n_runs = 1 } };

	f.reader.fd = bpf_map_create(BPF_MAP_TYPE_HASH, "test", KEY_BYTES, 8, 1024, NULL);
	assert_true(f.reader.fd >= 0);
	assert_ok(rows_new(KEY_BYTES, 1, 1, &f.rows));
	assert_ok(reader_open(&f.reader));
	for (uint64_t i = 0; i < N; i++) {
		memcpy(key + KEY_BYTES - sizeof(i), &i, sizeof(i));
		assert_ok(bpf_map_update_elem(f.reader.fd, key, &i, BPF_ANY));
	}
	assert_ok(reader_read(&f.reader, f.rows));
	assert_int_equal(f.rows->n_live, N);
	for (uint32_t row = 1; row < f.rows->n; row++)
		sum += rows_cells(f.rows, row)[0];
	assert_int_equal(sum, N * (N - 1) / 2);
	teardown(&f);
}

static void read_array(enum bpf_map_type type)
{
	struct fixture f;

	setup_map(&f, type, 2000);
	for (uint32_t i = 1999; i < 2000; i -= 7) /* the last one too */
		put(&f, i);
	assert_ok(reader_read(&f.reader, f.rows));
	assert_rows(&f, 2000 / 7 + 1);
	teardown(&f);
}

static void entries_of_arrays_that_are_zero_are_no_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		read_array(arrays[i]);
}

/* What falls to 0, as a gauge may, has been something: it is 0 now, and not gone. */
static void an_entry_of_an_array_that_falls_to_zero_stays_a_row(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
		_cleanup_(freep) uint8_t *zero = calloc((size_t)libbpf_num_possible_cpus(), 24);
		uint32_t key = 5, row;
		struct fixture f;

		setup_map(&f, arrays[i], 16);
		put(&f, key);
		assert_ok(reader_read(&f.reader, f.rows));
		row = rows_find(f.rows, &key);
		assert_row(&f, row);
		assert_ok(bpf_map_update_elem(f.reader.fd, &key, zero, BPF_ANY));
		assert_ok(reader_read(&f.reader, f.rows));
		assert_int_equal(f.rows->n_live, 1);
		assert_true(rows_is_touched(f.rows, row));
		for (int cell = 0; cell < 4; cell++)
			assert_int_equal(rows_cells(f.rows, row)[cell], 0);
		teardown(&f);
	}
}

/* A level that was set on several CPUs: the largest, not the sum. */
static void a_maximum_is_not_summed_over_cpus(void **state)
{
	uint32_t key = 5, n = (uint32_t)libbpf_num_possible_cpus();
	struct fixture f;

	for (int is_maximum = 0; is_maximum < 2; is_maximum++) {
		runs[1].is_maximum = is_maximum;
		setup_map(&f, BPF_MAP_TYPE_PERCPU_HASH, 16);
		put(&f, key);
		assert_ok(reader_read(&f.reader, f.rows));
		if (is_maximum)
			assert_int_equal(rows_cells(f.rows, rows_find(f.rows, &key))[0], (1ull << 40) * n + key);
		else
			assert_row(&f, rows_find(f.rows, &key));
		teardown(&f);
	}
	runs[1].is_maximum = false;
}

static void each_cpu_of_a_key_has_a_row(void **state)
{
	uint32_t n = (uint32_t)libbpf_num_possible_cpus();
	struct { uint32_t key, cpu; } row_key = { .key = 5 };
	struct fixture f;

	setup_map(&f, BPF_MAP_TYPE_PERCPU_HASH, 16);
	rows_free(f.rows);
	reader_close(&f.reader);
	f.reader.cpu_bytes = sizeof(row_key.cpu);
	assert_ok(reader_open(&f.reader));
	assert_ok(rows_new(sizeof(row_key), 4, 1, &f.rows));
	put(&f, row_key.key);
	assert_ok(reader_read(&f.reader, f.rows));
	assert_int_equal(f.rows->n_live, n);
	for (row_key.cpu = 0; row_key.cpu < n; row_key.cpu++) {
		uint32_t row = rows_find(f.rows, &row_key);
		struct value expected = value_of(row_key.key, row_key.cpu);

		assert_int_not_equal(row, ROWS_OVERFLOW);
		assert_int_equal(reader_row_cpu(&f.reader, rows_key(f.rows, row)), row_key.cpu);
		assert_int_equal(rows_cells(f.rows, row)[0], expected.sum);
		assert_int_equal(rows_cells(f.rows, row)[3], expected.bucket[2]);
		rows_at(f.rows, row)->idle = row_key.cpu ? READER_IDLE_READINGS : READER_IDLE_READINGS - 1;
	}
	/* It leaves with all its rows, and only when none of them grows. */
	for (uint32_t is_idle = 0; is_idle < 2; is_idle++) {
		row_key.cpu = 0;
		rows_at(f.rows, rows_find(f.rows, &row_key))->idle += is_idle;
		row_key.cpu = n - 1;
		reader_remove(&f.reader, f.rows, rows_find(f.rows, &row_key));
		assert_ok(reader_read(&f.reader, f.rows));
		assert_int_equal(f.rows->n_touched, is_idle ? 1 : 1 + n);
	}
	teardown(&f);
}

static void a_full_map_is_read_whole(void **state)
{
	struct fixture f;

	setup_map(&f, BPF_MAP_TYPE_HASH, 100);
	for (uint32_t i = 0; i < 100; i++)
		put(&f, i);
	assert_ok(reader_read(&f.reader, f.rows));
	assert_rows(&f, 100);
	teardown(&f);
}

static void a_reading_that_fails_is_no_empty_reading(void **state)
{
	struct fixture f;
	int fd = setup_map(&f, BPF_MAP_TYPE_HASH, 16);

	put(&f, 1);
	f.reader.fd = -1;
	assert_error(reader_read(&f.reader, f.rows), EBADF);
	f.reader.fd = fd;
	assert_ok(reader_read(&f.reader, f.rows));
	assert_rows(&f, 1);
	teardown(&f);
}

static void a_removed_key_leaves_a_hash_and_counts_from_0(void **state)
{
	uint32_t key = 7, row;
	struct fixture f;

	setup_map(&f, BPF_MAP_TYPE_HASH, 16);
	put(&f, key);
	put(&f, 8);
	assert_ok(reader_read(&f.reader, f.rows));
	assert_ok(rows_touch(f.rows, &key, &row));
	memcpy(rows_previous(f.rows, row), rows_cells(f.rows, row), 4 * sizeof(uint64_t));
	reader_remove(&f.reader, f.rows, row);
	assert_int_equal(rows_previous(f.rows, row)[0], 0);
	assert_ok(reader_read(&f.reader, f.rows));
	assert_false(rows_is_touched(f.rows, row));
	key = 8;
	assert_ok(rows_touch(f.rows, &key, &row));
	assert_row(&f, row);
	teardown(&f);
}

static void what_cannot_be_removed_keeps_what_it_had(void **state)
{
	uint32_t key = 3, row;
	struct fixture f;

	setup_map(&f, BPF_MAP_TYPE_ARRAY, 16);
	put(&f, key);
	assert_ok(reader_read(&f.reader, f.rows));
	assert_ok(rows_touch(f.rows, &key, &row));
	rows_previous(f.rows, row)[0] = 42;
	reader_remove(&f.reader, f.rows, row);
	assert_int_equal(rows_previous(f.rows, row)[0], 42);
	assert_ok(reader_read(&f.reader, f.rows));
	assert_true(rows_is_touched(f.rows, row));
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_maps_of_all_kinds_are_read_whole),
		cmocka_unit_test(a_batch_grows_until_a_bucket_fits),
		cmocka_unit_test(long_keys_are_read_whole),
		cmocka_unit_test(entries_of_arrays_that_are_zero_are_no_rows),
		cmocka_unit_test(an_entry_of_an_array_that_falls_to_zero_stays_a_row),
		cmocka_unit_test(a_maximum_is_not_summed_over_cpus),
		cmocka_unit_test(each_cpu_of_a_key_has_a_row),
		cmocka_unit_test(a_full_map_is_read_whole),
		cmocka_unit_test(a_reading_that_fails_is_no_empty_reading),
		cmocka_unit_test(a_removed_key_leaves_a_hash_and_counts_from_0),
		cmocka_unit_test(what_cannot_be_removed_keeps_what_it_had),
	};

	return kernel_refuses_programs() ? KERNEL_SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
