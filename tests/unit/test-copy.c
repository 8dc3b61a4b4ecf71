/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "metric/copy.h"
#include "metric/series.h"

#include "alloc.h"

#define N_BUCKETS 4
#define N_METRICS 4

static const struct histogram_bound bounds[N_BUCKETS - 1] = { { 10, 0 }, { 100, 0 }, { 1000, 0 } };

/* A sum, a gauge, a histogram of each kind; and what is sent. */
static struct metric metrics[N_METRICS], *list[N_METRICS];
static struct batch batch;
static struct store store;
static struct batch_copy *copy;

static int setup(void **state)
{
	static const enum metric_kind kinds[N_METRICS] = { METRIC_SUM, METRIC_GAUGE, METRIC_HISTOGRAM,
							   METRIC_HISTOGRAM };
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_ok(stores_open(fd, &store, 1));
	close(fd);
	for (size_t i = 0; i < N_METRICS; i++) {
		metrics[i] = (struct metric){
			.scope = "scope", .name = (const char *[]){ "a", "b", "c", "d" }[i], .unit = "s",
			.description = "what it is", .kind = kinds[i], .divisor = 1000, .is_updown = i == 1,
			.loss = { 1, 2, true },
		};
		if (kinds[i] == METRIC_HISTOGRAM)
			metrics[i].layout = (struct histogram_layout){ -1, -30, N_BUCKETS };
		if (i == 3)
			metrics[i].layout.bounds = bounds;
		metric_init_series(&metrics[i], NULL);
		list[i] = &metrics[i];
	}
	batch = (struct batch){ .time_ns = 200, .previous_ns = 100, .metrics = list, .n_metrics = N_METRICS };
	copy = batch_copy_new();
	return !copy;
}

static int teardown(void **state)
{
	copy = batch_copy_free(copy);
	for (size_t i = 0; i < N_METRICS; i++)
		metric_done_series(&metrics[i]);
	stores_close(&store, 1);
	return 0;
}

static void feed(struct series *series, uint64_t by)
{
	const uint64_t bucket[N_BUCKETS] = { by, 0, 1, 0 };

	series_add_histogram(series, by, bucket);
}

/* A collection in which units first to end - 1 have counted. */
static void collect(uint64_t first, uint64_t end)
{
	batch.previous_ns = batch.time_ns;
	batch.time_ns += 100;
	for (size_t i = 0; i < N_METRICS; i++) {
		struct series *series;

		for (size_t j = 0; j < metrics[i].n_series; j++)
			while (metrics[i].series[j]->n_sources)
				series_put(metrics[i].series[j]);
		series_begin(&metrics[i]);
		for (uint64_t unit = first; unit < end; unit++) {
			struct attributes attributes;

			attributes_init(&attributes);
			assert_ok(attributes_add_text(&attributes, "unit", &"abcdefgh"[unit], 1));
			assert_ok(attributes_add_number(&attributes, "n", -(int64_t)unit));
			assert_ok(attributes_add_flag(&attributes, "flag", unit % 2));
			assert_ok(series_get(&metrics[i], &attributes, batch.previous_ns, &series));
			feed(series, 10 * unit + batch.time_ns);
		}
		assert_ok(series_get_overflow(&metrics[i], OVERFLOW_TABLE, batch.previous_ns, &series));
		feed(series, 7);
		series_end(&metrics[i]);
	}
}

static int send_and_read(struct batch_copy *to)
{
	struct stored all, in;

	store_reset(&store);
	store_bytes(&store, "header", 6); /* others may come before */
	batch_write(&batch, &store);
	assert_false(store.has_failed);
	in = all = (struct stored){ store.data, store.data + store.size, false };
	(void)stored_bytes(&in, 6);
	return batch_copy_read(to, &all, &in) ?: in.at == in.end ? 0 : -EBADMSG;
}

static const struct series *find(const struct metric *metric, const struct series *of)
{
	struct series *series;

	metric_for_each_series(series, metric)
		if (series->hash == of->hash)
			return series;
	return NULL;
}

static void assert_same_numbers(const struct numbers *left, const struct numbers *right)
{
	assert_int_equal(left->sum, right->sum);
	assert_int_equal(left->count, right->count);
	assert_true(!left->bucket == !right->bucket);
	if (left->bucket)
		assert_memory_equal(left->bucket, right->bucket, N_BUCKETS * sizeof(uint64_t));
}

static size_t count_present(const struct metric *metric)
{
	struct series *series;
	size_t n = 0;

	metric_for_each_series(series, metric)
		n++;
	return n;
}

static void assert_same_batch(void)
{
	const struct batch *other = batch_copy_batch(copy);
	struct series *series;

	assert_int_equal(other->time_ns, batch.time_ns);
	assert_int_equal(other->previous_ns, batch.previous_ns);
	assert_int_equal(other->n_metrics, N_METRICS);
	for (size_t i = 0; i < N_METRICS; i++) {
		const struct metric *left = &metrics[i], *right = other->metrics[i];

		assert_string_equal(left->name, right->name);
		assert_string_equal(left->unit, right->unit);
		assert_string_equal(left->scope, right->scope);
		assert_string_equal(left->description, right->description);
		assert_int_equal(left->kind, right->kind);
		assert_int_equal(left->divisor, right->divisor);
		assert_int_equal(left->is_updown, right->is_updown);
		assert_int_equal(left->loss.missed, right->loss.missed);
		assert_true(histogram_layouts_equal(&left->layout, &right->layout));
		assert_int_equal(count_present(left), count_present(right));
		metric_for_each_series(series, left) {
			const struct series *same = find(right, series);

			assert_non_null(same);
			assert_int_equal(same->start_ns, series->start_ns);
			assert_int_equal(series_is_overflow(same), series_is_overflow(series));
			assert_same_numbers(&same->total, &series->total);
			assert_same_numbers(&same->delta, &series->delta);
		}
	}
}

static void a_copy_follows_from_collection_to_collection(void **state)
{
	static const uint64_t units[][2] = { { 0, 5 }, { 2, 8 }, { 2, 8 }, { 0, 0 }, { 1, 2 } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		collect(units[i][0], units[i][1]);
		assert_ok(send_and_read(copy));
		assert_same_batch();
	}
}

static void other_metrics_need_another_copy(void **state)
{
	collect(0, 5);
	assert_ok(send_and_read(copy));
	metrics[1].unit = "By";
	assert_error(send_and_read(copy), ESTALE);
	batch_copy_free(copy);
	copy = batch_copy_new();
	assert_ok(send_and_read(copy));
	batch.n_metrics--;
	assert_error(send_and_read(copy), ESTALE);
}

/* Cut off anywhere, and with each of its bytes changed. */
static void damage_is_survived(void **state)
{
	collect(0, 5);
	assert_ok(send_and_read(copy));
	for (size_t i = 6; i < 2 * store.size; i++) {
		bool is_cut = i < store.size;
		size_t size = is_cut ? i : store.size;
		uint8_t *bytes = malloc(size);
		struct stored all = { bytes, bytes + size, false }, in = { bytes + 6, bytes + size, false };
		int err;

		memcpy(bytes, store.data, size);
		if (!is_cut)
			bytes[i - size] ^= 0x83;
		batch_copy_free(copy);
		copy = batch_copy_new();
		err = batch_copy_read(copy, &all, &in);
		if (is_cut)
			assert_error(err, EINVAL);
		free(bytes);
	}
}

/* What it says of itself may be anything. */
static void metrics_that_cannot_be_are_refused(void **state)
{
	const struct metric wrong[] = {
		{ .kind = METRIC_SUM, .divisor = 0 },
		{ .kind = (enum metric_kind)3, .divisor = 1 },
		{ .kind = METRIC_SUM, .divisor = 1, .layout.n_buckets = 1 },
		{ .kind = METRIC_HISTOGRAM, .divisor = 1 },
		{ .kind = METRIC_HISTOGRAM, .divisor = 1, .layout.n_buckets = HISTOGRAM_BUCKETS_MAX + 1 },
		{ .kind = METRIC_HISTOGRAM, .divisor = 1, .layout = { .n_buckets = 2, .scale = 100 } },
		{ .kind = METRIC_HISTOGRAM, .divisor = 1, .layout = { .n_buckets = 2, .offset = 1 << 20 } },
		{ .kind = METRIC_HISTOGRAM, .divisor = 1, .layout = { .n_buckets = 1, .bounds = bounds } },
		{ .kind = METRIC_SUM, .divisor = 1, .name = "a\033[31m" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct metric metric = wrong[i], *only = &metric;

		metric.scope = metric.unit = metric.description = "";
		metric.name = metric.name ?: "a";
		batch.metrics = &only;
		batch.n_metrics = 1;
		batch_copy_free(copy);
		copy = batch_copy_new();
		assert_error(send_and_read(copy), EINVAL);
	}
}

static int read_again(void)
{
	copy = batch_copy_free(copy);
	copy = batch_copy_new();
	return copy ? send_and_read(copy) : -ENOMEM;
}

/* A series of them is changed in place before it is sent. */
static void series_that_cannot_be_are_refused(void **state)
{
	struct attribute *attributes;
	struct series **series;
	size_t n;

	collect(0, 2);
	assert_ok(read_again());
	attributes = (struct attribute *)metrics[0].series[0]->attributes;
	n = metrics[0].series[0]->n_attributes;
	for (size_t i = 0; i < n; i++) {
		struct attribute before = attributes[i];

		attributes[i].name = "caf\xc3\xa9";
		assert_error(read_again(), EINVAL);
		attributes[i] = before;
		attributes[i].name = "systemd.unit.name";
		assert_int_equal(read_again(), before.type == ATTRIBUTE_TEXT ? 0 : -EINVAL);
		attributes[i] = before;
	}
	/* Each is there once. */
	series = metrics[0].series;
	metrics[0].series = (struct series *[]){ series[0], series[0], series[0] };
	assert_error(read_again(), EINVAL);
	metrics[0].series = series;
	assert_ok(read_again());
	assert_same_batch();
}

static void failing_allocations_are_survived(void **state)
{
	collect(0, 5);
	assert_survives_failing_allocations(read_again(), (void)0);
	assert_same_batch();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_copy_follows_from_collection_to_collection, setup, teardown),
		cmocka_unit_test_setup_teardown(other_metrics_need_another_copy, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_is_survived, setup, teardown),
		cmocka_unit_test_setup_teardown(metrics_that_cannot_be_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(series_that_cannot_be_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(failing_allocations_are_survived, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
