/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of the running kernel, filled with numbers that are known, and read back. */
#include "test.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "collector/source.h"
#include "util/cleanup.h"

#define NO_BATCHES UINT32_MAX

/* 20 bytes: neither a multiple of 8 nor of the key's size. */
struct value {
	uint64_t sum;
	uint32_t bucket[3];
} __attribute__((packed));

static struct source_run runs[] = {
	{ .offset_bytes = 8, .size_bytes = 4, .count = 3, .first_cell = 1 },
	{ .offset_bytes = 0, .size_bytes = 8, .count = 1, .first_cell = 0 },
};

struct fixture {
	struct source source;
	struct rows *rows;
};

static int setup_map(struct fixture *f, enum bpf_map_type type, uint32_t max_entries, uint32_t batch)
{
	*f = (struct fixture){ .source = { .type = (int)type, .key_bytes = 4, .value_bytes = sizeof(struct value),
					   .max_entries = max_entries, .runs = runs, .n_runs = 2 } };
	f->source.fd = bpf_map_create(type, "test", 4, sizeof(struct value), max_entries, NULL);
	assert_true(f->source.fd >= 0);
	assert_ok(rows_new(4, 4, 1, &f->rows));
	assert_ok(source_open(&f->source));
	f->source.batch = batch;
	return f->source.fd;
}

static void teardown(struct fixture *f)
{
	source_close(&f->source);
	rows_free(f->rows);
	close(f->source.fd);
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
	uint32_t n = is_percpu((enum bpf_map_type)f->source.type) ? (uint32_t)libbpf_num_possible_cpus() : 1;
	_cleanup_(freep) uint8_t *values = calloc(n, stride);

	for (uint32_t cpu = 0; cpu < n; cpu++) {
		struct value value = value_of(key, cpu);

		memcpy(values + cpu * stride, &value, sizeof(value));
	}
	assert_ok(bpf_map_update_elem(f->source.fd, &key, values, BPF_ANY));
}

static void assert_row(const struct fixture *f, uint32_t row)
{
	uint32_t n = is_percpu((enum bpf_map_type)f->source.type) ? (uint32_t)libbpf_num_possible_cpus() : 1, key;
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

static void read_hash(enum bpf_map_type type, uint32_t n, uint32_t batch)
{
	struct fixture f;

	/* An LRU map keeps free entries in lists of each CPU, and gives up used ones before all is full. */
	setup_map(&f, type, 16384, batch);
	for (uint32_t i = 0; i < n; i++)
		put(&f, i * 1000003);
	for (int reading = 0; reading < 2; reading++) {
		assert_ok(source_read(&f.source, f.rows));
		assert_rows(&f, n);
	}
	if (batch == NO_BATCHES)
		assert_int_equal(f.source.batch, NO_BATCHES);
	teardown(&f);
}

static void hash_maps_of_all_kinds_are_read_whole(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++) {
		read_hash(hashes[i], 0, 0);
		read_hash(hashes[i], 1, 0);
		read_hash(hashes[i], 3000, 0); /* several batches of 512 */
	}
}

static void a_batch_grows_until_a_bucket_fits(void **state)
{
	struct fixture f;

	/* 4096 buckets for 3000 keys: many have two, some have five. */
	setup_map(&f, BPF_MAP_TYPE_HASH, 4096, 1);
	for (uint32_t i = 0; i < 3000; i++)
		put(&f, i);
	assert_ok(source_read(&f.source, f.rows));
	assert_rows(&f, 3000);
	assert_true(f.source.batch >= 4 && f.source.batch <= 64);
	teardown(&f);
}

static void without_batches_hash_maps_are_read_key_by_key(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++) {
		read_hash(hashes[i], 0, NO_BATCHES);
		read_hash(hashes[i], 1000, NO_BATCHES);
	}
}

static void read_array(enum bpf_map_type type, uint32_t batch)
{
	struct fixture f;

	setup_map(&f, type, 2000, batch);
	for (uint32_t i = 1999; i < 2000; i -= 7) /* the last one too */
		put(&f, i);
	assert_ok(source_read(&f.source, f.rows));
	assert_rows(&f, 2000 / 7 + 1);
	teardown(&f);
}

static void entries_of_arrays_that_are_zero_are_no_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
		read_array(arrays[i], 0);
		read_array(arrays[i], NO_BATCHES);
	}
}

/* What falls to 0, as a gauge may, has been something: it is 0 now, and not gone. */
static void an_entry_of_an_array_that_falls_to_zero_stays_a_row(void **state)
{
	for (size_t i = 0; i < 2 * ARRAY_SIZE(arrays); i++) {
		_cleanup_(freep) uint8_t *zero = calloc((size_t)libbpf_num_possible_cpus(), 24);
		uint32_t key = 5, row;
		struct fixture f;

		setup_map(&f, arrays[i / 2], 16, i % 2 ? NO_BATCHES : 0);
		put(&f, key);
		assert_ok(source_read(&f.source, f.rows));
		row = rows_find(f.rows, &key);
		assert_row(&f, row);
		assert_ok(bpf_map_update_elem(f.source.fd, &key, zero, BPF_ANY));
		assert_ok(source_read(&f.source, f.rows));
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
		setup_map(&f, BPF_MAP_TYPE_PERCPU_HASH, 16, 0);
		put(&f, key);
		assert_ok(source_read(&f.source, f.rows));
		if (is_maximum)
			assert_int_equal(rows_cells(f.rows, rows_find(f.rows, &key))[0], (1ull << 40) * n + key);
		else
			assert_row(&f, rows_find(f.rows, &key));
		teardown(&f);
	}
	runs[1].is_maximum = false;
}

static void a_full_map_is_read_whole(void **state)
{
	for (uint32_t batch = 0; batch < 2; batch++) {
		struct fixture f;

		setup_map(&f, BPF_MAP_TYPE_HASH, 100, batch ? NO_BATCHES : 0);
		for (uint32_t i = 0; i < 100; i++)
			put(&f, i);
		assert_ok(source_read(&f.source, f.rows));
		assert_rows(&f, 100);
		teardown(&f);
	}
}

static void a_reading_that_fails_is_no_empty_reading(void **state)
{
	for (uint32_t batch = 0; batch < 2; batch++) {
		struct fixture f;
		int fd = setup_map(&f, BPF_MAP_TYPE_HASH, 16, batch ? NO_BATCHES : 0);

		put(&f, 1);
		f.source.fd = -1;
		assert_error(source_read(&f.source, f.rows), EBADF);
		f.source.fd = fd;
		assert_ok(source_read(&f.source, f.rows));
		assert_rows(&f, 1);
		teardown(&f);
	}
}

static void a_removed_key_leaves_a_hash_and_counts_from_0(void **state)
{
	uint32_t key = 7, row;
	struct fixture f;

	setup_map(&f, BPF_MAP_TYPE_HASH, 16, 0);
	put(&f, key);
	put(&f, 8);
	assert_ok(source_read(&f.source, f.rows));
	assert_ok(rows_touch(f.rows, &key, &row));
	memcpy(rows_previous(f.rows, row), rows_cells(f.rows, row), 4 * sizeof(uint64_t));
	source_remove(&f.source, f.rows, row);
	assert_int_equal(rows_previous(f.rows, row)[0], 0);
	assert_ok(source_read(&f.source, f.rows));
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

	setup_map(&f, BPF_MAP_TYPE_ARRAY, 16, 0);
	put(&f, key);
	assert_ok(source_read(&f.source, f.rows));
	assert_ok(rows_touch(f.rows, &key, &row));
	rows_previous(f.rows, row)[0] = 42;
	source_remove(&f.source, f.rows, row);
	assert_int_equal(rows_previous(f.rows, row)[0], 42);
	assert_ok(source_read(&f.source, f.rows));
	assert_true(rows_is_touched(f.rows, row));
	teardown(&f);
}

/* ------ flat tables ------ */

enum { FREE, FILLING, LIVE, REMOVED };

struct slot {
	uint64_t state, key;
	struct value value;
};

#define SLOTS 1024

struct table {
	struct fixture f;
	uint8_t *memory; /* a mapping of the test's own, as the kernel side would write */
	size_t stride;
};

static void table_setup(struct table *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	struct source *source = &t->f.source;
	uint32_t n = (uint32_t)libbpf_num_possible_cpus();

	*t = (struct table){ .f.source = { .type = BPF_MAP_TYPE_ARRAY, .is_table = true, .runs = runs, .n_runs = 2 } };
	source->key_bytes = 8;
	source->value_bytes = 36;
	source->key_offset_bytes = 8;
	source->value_offset_bytes = 16;
	source->slots_per_cpu = SLOTS;
	source->max_entries = SLOTS * n;
	t->stride = 40;
	source->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "test", 4, 36, SLOTS * n, &options);
	assert_true(source->fd >= 0);
	assert_ok(rows_new(8, 4, 1, &t->f.rows));
	assert_ok(source_open(source));
	t->memory = mmap(NULL, t->stride * SLOTS * n, PROT_READ | PROT_WRITE, MAP_SHARED, source->fd, 0);
	assert_ptr_not_equal(t->memory, MAP_FAILED);
}

static void table_teardown(struct table *t)
{
	munmap(t->memory, t->stride * t->f.source.max_entries);
	teardown(&t->f);
}

static void slot_put(struct table *t, uint32_t index, uint64_t state, uint64_t key, uint64_t sum)
{
	struct slot slot = { state, key, { sum, { 1, 2, 3 } } };

	memcpy(t->memory + index * t->stride, &slot, 36);
}

static uint64_t slot_state(const struct table *t, uint32_t index)
{
	uint64_t state;

	memcpy(&state, t->memory + index * t->stride, 8);
	return state;
}

static void assert_cells(struct table *t, uint64_t key, uint64_t sum, uint64_t times)
{
	uint64_t expected[4] = { sum, times, 2 * times, 3 * times };
	uint32_t row;

	assert_ok(rows_touch(t->f.rows, &key, &row));
	assert_memory_equal(rows_cells(t->f.rows, row), expected, sizeof(expected));
}

static void a_key_of_a_table_is_the_sum_of_its_slots(void **state)
{
	struct table t;

	table_setup(&t);
	slot_put(&t, 3, LIVE, 7, 5);
	slot_put(&t, SLOTS - 1, LIVE, 7, 6);
	slot_put(&t, 4, LIVE, 8, 1);
	slot_put(&t, 5, FREE, 9, 1);
	slot_put(&t, 6, FILLING, 9, 1);
	slot_put(&t, 7, REMOVED, 9, 1);
	slot_put(&t, t.f.source.max_entries - 1, LIVE, 7, 100);
	for (int reading = 0; reading < 2; reading++) {
		bool is_one_cpu = t.f.source.max_entries == SLOTS; /* then the last slot is the last of the first CPU */

		assert_ok(source_read(&t.f.source, t.f.rows));
		assert_int_equal(t.f.rows->n_live, 2);
		assert_cells(&t, 7, is_one_cpu ? 105 : 111, is_one_cpu ? 2 : 3);
		assert_cells(&t, 8, 1, 1);
	}
	assert_int_equal(t.f.source.full, 0);
	table_teardown(&t);
}

static void the_first_slot_of_a_slice_is_the_overflow(void **state)
{
	struct table t;
	uint64_t n = (uint64_t)libbpf_num_possible_cpus();

	table_setup(&t);
	for (uint32_t cpu = 0; cpu < n; cpu++)
		slot_put(&t, cpu * SLOTS, LIVE, 12345, 10);
	assert_ok(source_read(&t.f.source, t.f.rows));
	assert_int_equal(t.f.rows->n_live, 0);
	assert_int_equal(rows_cells(t.f.rows, ROWS_OVERFLOW)[0], 10 * n);
	assert_int_equal(t.f.source.full, n);
	table_teardown(&t);
}

static void a_removed_key_leaves_its_slots_to_the_next(void **state)
{
	uint64_t key = 7;
	struct table t;
	uint32_t row, again;

	table_setup(&t);
	slot_put(&t, 3, LIVE, key, 5);
	slot_put(&t, 9, LIVE, key, 6);
	slot_put(&t, 10, LIVE, 8, 1);
	assert_ok(source_read(&t.f.source, t.f.rows));
	assert_ok(rows_touch(t.f.rows, &key, &row));
	source_remove(&t.f.source, t.f.rows, row);
	assert_int_equal(slot_state(&t, 3), REMOVED);
	assert_int_equal(slot_state(&t, 9), REMOVED);
	assert_int_equal(slot_state(&t, 10), LIVE);
	assert_memory_equal(t.memory + 3 * t.stride + 16, ((uint8_t[20]){ 0 }), 20);

	/* The kernel side gives one of them to another key before anything is read. */
	slot_put(&t, 3, LIVE, 99, 1000);
	assert_ok(source_read(&t.f.source, t.f.rows));
	assert_false(rows_is_touched(t.f.rows, row));
	assert_cells(&t, 99, 1000, 1);
	assert_cells(&t, 8, 1, 1);
	rows_remove(t.f.rows, row);

	/* The key comes back, elsewhere. */
	slot_put(&t, 20, LIVE, key, 2);
	assert_ok(source_read(&t.f.source, t.f.rows));
	assert_cells(&t, key, 2, 1);
	assert_ok(rows_touch(t.f.rows, &key, &again));
	assert_int_equal(t.f.rows->n_live, 3);
	table_teardown(&t);
}

static void a_maximum_of_a_table_is_not_summed_over_slots(void **state)
{
	uint64_t key = 7;
	struct table t;

	runs[1].is_maximum = true;
	table_setup(&t);
	slot_put(&t, 3, LIVE, key, 100);
	slot_put(&t, t.f.source.max_entries - 1, LIVE, key, 90);
	assert_ok(source_read(&t.f.source, t.f.rows));
	assert_int_equal(rows_cells(t.f.rows, rows_find(t.f.rows, &key))[0], 100);
	table_teardown(&t);
	runs[1].is_maximum = false;
}

static void a_full_table_is_read_whole_each_time(void **state)
{
	struct table t;

	table_setup(&t);
	for (uint32_t i = 0; i < t.f.source.max_entries; i++)
		if (i % SLOTS)
			slot_put(&t, i, LIVE, i, i);
	for (int reading = 0; reading < 3; reading++) {
		assert_ok(source_read(&t.f.source, t.f.rows));
		assert_int_equal(t.f.rows->n_live, t.f.source.max_entries / SLOTS * (SLOTS - 1));
		for (uint32_t i = 1; i < SLOTS; i++)
			assert_cells(&t, i, i, 1);
	}
	table_teardown(&t);
}

static void what_cannot_be_mapped_is_an_error_and_no_leak(void **state)
{
	struct source source = { .fd = -1, .is_table = true, .max_entries = 16, .value_bytes = 40 };

	assert_error(source_open(&source), EBADF);
	source_close(&source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_maps_of_all_kinds_are_read_whole),
		cmocka_unit_test(a_batch_grows_until_a_bucket_fits),
		cmocka_unit_test(without_batches_hash_maps_are_read_key_by_key),
		cmocka_unit_test(entries_of_arrays_that_are_zero_are_no_rows),
		cmocka_unit_test(an_entry_of_an_array_that_falls_to_zero_stays_a_row),
		cmocka_unit_test(a_maximum_is_not_summed_over_cpus),
		cmocka_unit_test(a_full_map_is_read_whole),
		cmocka_unit_test(a_reading_that_fails_is_no_empty_reading),
		cmocka_unit_test(a_removed_key_leaves_a_hash_and_counts_from_0),
		cmocka_unit_test(what_cannot_be_removed_keeps_what_it_had),
		cmocka_unit_test(a_key_of_a_table_is_the_sum_of_its_slots),
		cmocka_unit_test(the_first_slot_of_a_slice_is_the_overflow),
		cmocka_unit_test(a_removed_key_leaves_its_slots_to_the_next),
		cmocka_unit_test(a_maximum_of_a_table_is_not_summed_over_slots),
		cmocka_unit_test(a_full_table_is_read_whole_each_time),
		cmocka_unit_test(what_cannot_be_mapped_is_an_error_and_no_leak),
	};
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", 4, 8, 1, NULL);

	if (fd < 0) {
		printf("skipped: needs the right to make BPF maps (root): %s\n", strerror(-fd));
		return 77;
	}
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
