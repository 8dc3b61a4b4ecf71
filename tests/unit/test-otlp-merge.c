/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "alloc.h"
#include "export/otlp/encode.h"
#include "export/otlp/merge.h"
#include "fixture.h"
#include "metric/series.h"
#include "otlp-metrics.pb-c.h"
#include "util/buf.h"
#include "util/cleanup.h"

#define BODIES_MAX 128

static uint8_t room[1 << 20];

struct bodies {
	struct bytes items[BODIES_MAX];
	size_t n, n_points;
};

static int collect(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	struct bodies *bodies = user;
	uint8_t *copy = malloc(size);

	if (!copy)
		return -ENOMEM;
	assert_true(bodies->n < BODIES_MAX);
	bodies->items[bodies->n++] = (struct bytes){ memcpy(copy, data, size), size };
	bodies->n_points += n_points;
	return 0;
}

static void bodies_done(struct bodies *bodies)
{
	for (size_t i = 0; i < bodies->n; i++)
		free((void *)bodies->items[i].data);
	*bodies = (struct bodies){ 0 };
}

static void encode_up_to(const struct batch *batch, enum otlp_temporality temporality, enum otlp_histogram histogram,
			 size_t limit_bytes, struct bodies *out)
{
	static const struct attribute resource[] = { { .name = "service.name", .text = "x" } };
	const struct otlp_encoding encoding = { .temporality = temporality, .histogram = histogram,
						.has_zero_points = true, .limit_bytes = limit_bytes,
						.room = room, .resource = resource, .n_resource = 1,
						.version = "1" };
	struct otlp_encoded encoded;

	assert_ok(otlp_encode(&encoding, batch, collect, out, &encoded));
}

static void encode(const struct batch *batch, enum otlp_temporality temporality, enum otlp_histogram histogram,
		   struct bodies *out)
{
	encode_up_to(batch, temporality, histogram, sizeof(room), out);
}

static int merge_with(const struct bodies *in, struct otlp_writer *writer)
{
	struct queue_item items[BODIES_MAX], *list[BODIES_MAX];

	for (size_t i = 0; i < in->n; i++) {
		items[i] = (struct queue_item){ .data = (uint8_t *)in->items[i].data, .size = in->items[i].size };
		list[i] = &items[i];
	}
	return otlp_merge(list, in->n, writer);
}

static int merge(const struct bodies *in, size_t limit_bytes, struct bodies *out)
{
	struct otlp_writer writer = { room, limit_bytes, collect, out };
	int err = merge_with(in, &writer);

	assert_int_equal(writer.n_too_large, 0);
	return err ?: writer.err;
}

/*
 * What the points of bodies say, by what they are in and their attributes: their numbers added up, or the last ones
 * since each start.
 */

struct entry {
	char *name;
	uint64_t start_ns, time_ns;
	double value; /* or the sum */
	uint64_t count, buckets; /* of a histogram; buckets: weighed, so that each matters */
	bool is_delta;
};

struct ledger {
	struct entry *entries;
	size_t n, n_points;
};

static struct entry *find(struct ledger *ledger, const char *name)
{
	for (size_t i = 0; i < ledger->n; i++)
		if (!strcmp(ledger->entries[i].name, name))
			return &ledger->entries[i];
	ledger->entries = realloc(ledger->entries, (ledger->n + 1) * sizeof(*ledger->entries));
	ledger->entries[ledger->n] = (struct entry){ .name = strdup(name), .start_ns = UINT64_MAX };
	return &ledger->entries[ledger->n++];
}

static uint32_t read_exponential(struct bytes numbers, struct entry *ret_entry)
{
	Otlp__ExponentialHistogramDataPoint *point =
		otlp__exponential_histogram_data_point__unpack(NULL, numbers.size, numbers.data);
	uint32_t flags = point->flags;

	*ret_entry = (struct entry){ NULL, point->start_time_unix_nano, point->time_unix_nano, point->sum, point->count,
				     point->zero_count, ret_entry->is_delta };
	for (size_t i = 0; point->positive && i < point->positive->n_bucket_counts; i++)
		ret_entry->buckets += (uint64_t)(1000 + point->positive->offset + (int)i) *
				      point->positive->bucket_counts[i];
	otlp__exponential_histogram_data_point__free_unpacked(point, NULL);
	return flags;
}

static uint32_t read_explicit(struct bytes numbers, struct entry *ret_entry)
{
	Otlp__HistogramDataPoint *point = otlp__histogram_data_point__unpack(NULL, numbers.size, numbers.data);
	uint32_t flags = point->flags;

	*ret_entry = (struct entry){ NULL, point->start_time_unix_nano, point->time_unix_nano, point->sum, point->count,
				     0, ret_entry->is_delta };
	for (size_t i = 0; i < point->n_bucket_counts; i++)
		ret_entry->buckets += (i + 1) * point->bucket_counts[i];
	otlp__histogram_data_point__free_unpacked(point, NULL);
	return flags;
}

static uint32_t read_number(struct bytes numbers, struct entry *ret_entry)
{
	Otlp__NumberDataPoint *point = otlp__number_data_point__unpack(NULL, numbers.size, numbers.data);
	bool is_int = point->value_case == OTLP__NUMBER_DATA_POINT__VALUE_AS_INT;
	uint32_t flags = point->flags;

	*ret_entry = (struct entry){ NULL, point->start_time_unix_nano, point->time_unix_nano,
				     is_int ? (double)point->as_int : point->as_double, 0, 0, ret_entry->is_delta };
	otlp__number_data_point__free_unpacked(point, NULL);
	return flags;
}

static int add(void *user, const struct otlp_place *place, struct bytes numbers, struct bytes attributes)
{
	struct ledger *ledger = user;
	_cleanup_(buf_done) struct buf name = BUF_INIT;
	struct entry more = { .is_delta = place->tail.size >= 2 && place->tail.data[1] == 1 }, *entry;
	uint32_t flags = (place->data_field == OTLP__METRIC__DATA_HISTOGRAM ? read_explicit :
			  place->data_field == OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM ? read_exponential :
											  read_number)(numbers, &more);

	buf_printf(&name, "%s %llu ", flags ? "ended" : more.start_ns == more.time_ns ? "zero" : "value",
		   more.is_delta ? 0 : (unsigned long long)more.start_ns);
	for (size_t i = 0; i < place->header.size; i++)
		buf_printf(&name, "%02x", place->header.data[i]);
	for (size_t i = 0; i < attributes.size; i++)
		buf_printf(&name, "%02x", attributes.data[i]);
	entry = find(ledger, buf_text(&name));
	more.name = entry->name;
	if (more.is_delta) {
		more.start_ns = more.start_ns < entry->start_ns ? more.start_ns : entry->start_ns;
		more.value += entry->value;
		more.count += entry->count;
		more.buckets += entry->buckets;
	}
	*entry = more;
	ledger->n_points++;
	return 0;
}

static void assert_has_schemas(const struct bodies *bodies)
{
	for (size_t i = 0; i < bodies->n; i++) {
		Otlp__ExportMetricsServiceRequest *request = otlp__export_metrics_service_request__unpack(
			NULL, bodies->items[i].size, bodies->items[i].data);
		const Otlp__ResourceMetrics *resource = request->resource_metrics[0];

		assert_int_equal(request->n_resource_metrics, 1);
		assert_string_equal(resource->schema_url, "https://opentelemetry.io/schemas/1.44.0");
		for (size_t j = 0; j < resource->n_scope_metrics; j++)
			assert_string_equal(resource->scope_metrics[j]->schema_url, resource->schema_url);
		otlp__export_metrics_service_request__free_unpacked(request, NULL);
	}
}

static void ledger_done(struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->n; i++)
		free(ledger->entries[i].name);
	free(ledger->entries);
}

static void assert_same(const struct bodies *in, const struct bodies *out, bool is_one_each)
{
	struct ledger apart = { 0 }, merged = { 0 };

	for (size_t i = 0; i < in->n; i++)
		assert_ok(otlp_body_read(in->items[i].data, in->items[i].size, add, &apart));
	for (size_t i = 0; i < out->n; i++)
		assert_ok(otlp_body_read(out->items[i].data, out->items[i].size, add, &merged));
	assert_int_equal(merged.n, apart.n);
	assert_true(!is_one_each || merged.n_points == merged.n);
	assert_int_equal(out->n_points, merged.n_points);
	for (size_t i = 0; i < apart.n; i++) {
		const struct entry *a = &apart.entries[i], *b = find(&merged, a->name);

		assert_int_equal(b->start_ns, a->start_ns);
		assert_int_equal(b->time_ns, a->time_ns);
		assert_true(b->value == a->value || (b->value - a->value) / a->value < 1e-12);
		assert_int_equal(b->count, a->count);
		assert_int_equal(b->buckets, a->buckets);
	}
	ledger_done(&apart);
	ledger_done(&merged);
}

struct span {
	uint64_t first_ns, last_ns;
};

static int widen(void *user, const struct otlp_place *place, struct bytes numbers, struct bytes attributes)
{
	struct span *span = user;
	uint64_t time_ns;

	memcpy(&time_ns, otlp_find_field(numbers, 3).data, sizeof(time_ns));
	span->first_ns = time_ns < span->first_ns ? time_ns : span->first_ns;
	span->last_ns = time_ns > span->last_ns ? time_ns : span->last_ns;
	return 0;
}

/* No body begins before the end of the one before it: Prometheus would refuse it as a whole. */
static void assert_in_order(const struct bodies *bodies)
{
	uint64_t end_ns = 0;

	for (size_t i = 0; i < bodies->n; i++) {
		struct span span = { UINT64_MAX, 0 };

		assert_ok(otlp_body_read(bodies->items[i].data, bodies->items[i].size, widen, &span));
		assert_true(span.first_ns >= end_ns);
		end_ns = span.last_ns;
	}
}

static void start_again(struct series *series, uint64_t now_ns)
{
	series->start_ns = now_ns;
	series->total.sum = 0;
	for (uint32_t i = 0; i < series->metric->layout.n_buckets; i++)
		series->total.bucket[i] = 0;
}

/* The next batch: what some series have grown by, chosen by random. Some have ended before, and begun again. */
static void grow(struct fixture *fixture, unsigned int *random)
{
	fixture->batch.previous_ns = fixture->batch.time_ns;
	fixture->batch.time_ns += 1000000000;
	for (size_t i = 0; i < FIXTURE_METRICS; i++) {
		struct metric *metric = &fixture->metrics[i];

		for (size_t j = 0; j < metric->n_series; j++) {
			struct series *series = metric->series[j];
			uint64_t n = (uint64_t)rand_r(random) % 4 * 1000;

			if (rand_r(random) % 8 == 0)
				start_again(series, fixture->batch.previous_ns);
			series->delta.sum = n;
			series->total.sum += n;
			series->delta.count = series->total.count = 0;
			for (uint32_t k = 0; k < metric->layout.n_buckets; k++) {
				series->delta.bucket[k] = n ? (uint64_t)rand_r(random) % 3 : 0;
				series->total.bucket[k] += series->delta.bucket[k];
				series->delta.count += series->delta.bucket[k];
				series->total.count += series->total.bucket[k];
			}
		}
	}
}

static void windows_of_all_kinds_say_the_same_when_they_are_one(void **state)
{
	unsigned int random = 1;

	for (unsigned int round = 0; round < 400; round++) {
		enum otlp_temporality temporality = round & 1 ? OTLP_DELTA : OTLP_CUMULATIVE;
		enum otlp_histogram histogram = round & 2 ? OTLP_EXPONENTIAL : OTLP_EXPLICIT;
		struct bodies in = { 0 }, out = { 0 }, again = { 0 }, split = { 0 };
		struct fixture fixture;
		unsigned int n = 1 + round % 7;

		fixture_init(&fixture);
		for (unsigned int i = 0; i < n; i++) {
			encode(&fixture.batch, temporality, histogram, &in);
			encode_up_to(&fixture.batch, temporality, histogram, 1024, &split);
			grow(&fixture, &random);
		}
		assert_ok(merge(&in, sizeof(room), &out));
		assert_int_equal(out.n, 1);
		assert_same(&in, &out, true);
		/* What is merged can be merged, and split. */
		assert_ok(merge(&out, 4096, &again));
		assert_same(&in, &again, true);
		assert_in_order(&again);
		assert_in_order(&split);
		assert_true(split.n > n);
		assert_has_schemas(&out);
		assert_has_schemas(&again);
		bodies_done(&in);
		bodies_done(&out);
		bodies_done(&again);
		bodies_done(&split);
		fixture_done(&fixture);
	}
}

/* What is in doubt is what a receiver would add up: no level that an updowncounter shows. */
static void only_deltas_are_in_doubt(void **state)
{
	struct bodies in = { 0 };
	struct queue_item item = { 0 };
	struct fixture fixture;
	uint64_t expected = 0;

	fixture_init(&fixture);
	encode(&fixture.batch, OTLP_DELTA, OTLP_EXPLICIT, &in);
	for (size_t i = 0; i < FIXTURE_METRICS; i++) {
		const struct metric *metric = &fixture.metrics[i];
		struct series *series;

		metric_for_each_series(series, metric)
			if (metric->kind == METRIC_HISTOGRAM)
				expected += series->delta.count;
			else if (metric->kind == METRIC_SUM && metric->divisor == 1)
				expected += series->delta.sum;
	}
	item.data = (uint8_t *)in.items[0].data;
	item.size = in.items[0].size;
	assert_int_equal(otlp_sum_values(&item), expected);
	bodies_done(&in);
	fixture_done(&fixture);
}

static void a_body_that_is_cut_or_damaged_is_refused_or_read_within_its_bounds(void **state)
{
	struct bodies in = { 0 };
	struct fixture fixture;
	size_t size;
	uint8_t *copy;

	fixture_init(&fixture);
	encode(&fixture.batch, OTLP_DELTA, OTLP_EXPONENTIAL, &in);
	size = in.items[0].size;
	for (size_t i = 0; i < size; i++) {
		struct bodies cut = { .n = 2 }, out = { 0 };

		copy = memcpy(malloc(i + 1), in.items[0].data, i);
		cut.items[0] = in.items[0];
		cut.items[1] = (struct bytes){ copy, i };
		assert_int_equal(merge(&cut, sizeof(room), &out), i ? -EBADMSG : 0);
		bodies_done(&out);
		free(copy);
	}
	for (size_t i = 0; i < size * 8; i++) {
		struct bodies both = { .n = 2 }, out = { 0 };

		copy = memcpy(malloc(size), in.items[0].data, size);
		copy[i / 8] ^= (uint8_t)(1 << i % 8);
		both.items[0] = in.items[0];
		both.items[1] = (struct bytes){ copy, size };
		(void)merge(&both, sizeof(room), &out);
		bodies_done(&out);
		free(copy);
	}
	bodies_done(&in);
	fixture_done(&fixture);
}

static void without_memory_nothing_is_put(void **state)
{
	struct bodies in = { 0 }, out = { 0 };
	struct fixture fixture;
	unsigned int random = 1;
	int err;

	fixture_init(&fixture);
	encode(&fixture.batch, OTLP_DELTA, OTLP_EXPLICIT, &in);
	grow(&fixture, &random);
	encode(&fixture.batch, OTLP_DELTA, OTLP_EXPLICIT, &in);
	for (unsigned int n = 0; ; n++) {
		struct otlp_writer writer = { room, sizeof(room), collect, &out };
		size_t n_bodies = out.n;

		alloc_fail_at(n);
		err = merge_with(&in, &writer);
		if (!alloc_end())
			break;
		if (err) /* else it was the copy of this test */
			assert_int_equal(out.n, n_bodies);
		bodies_done(&out);
	}
	assert_ok(err);
	bodies_done(&in);
	bodies_done(&out);
	fixture_done(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_of_all_kinds_say_the_same_when_they_are_one),
		cmocka_unit_test(only_deltas_are_in_doubt),
		cmocka_unit_test(a_body_that_is_cut_or_damaged_is_refused_or_read_within_its_bounds),
		cmocka_unit_test(without_memory_nothing_is_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
