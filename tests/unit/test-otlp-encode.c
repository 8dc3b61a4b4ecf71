/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "alloc.h"
#include "export/otlp/encode.h"
#include "fixture.h"
#include "otlp-metrics.pb-c.h"
#include "util/cleanup.h"

typedef Otlp__ExportMetricsServiceRequest request_t;

/* What came out of one otlp_encode(). */
struct bodies {
	request_t *requests[64];
	size_t sizes[64];
	size_t n, n_points;
	struct otlp_encoded encoded;
};

static int collect(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	struct bodies *bodies = user;

	assert_true(bodies->n < ARRAY_SIZE(bodies->requests));
	bodies->requests[bodies->n] = otlp__export_metrics_service_request__unpack(NULL, size, data);
	assert_non_null(bodies->requests[bodies->n]);
	bodies->sizes[bodies->n++] = size;
	bodies->n_points += n_points;
	return 0;
}

static void bodies_done(struct bodies *bodies)
{
	for (size_t i = 0; i < bodies->n; i++)
		otlp__export_metrics_service_request__free_unpacked(bodies->requests[i], NULL);
}

static size_t metric_points(const Otlp__Metric *metric)
{
	switch (metric->data_case) {
	case OTLP__METRIC__DATA_GAUGE: return metric->gauge->n_data_points;
	case OTLP__METRIC__DATA_SUM: return metric->sum->n_data_points;
	case OTLP__METRIC__DATA_HISTOGRAM: return metric->histogram->n_data_points;
	case OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM: return metric->exponential_histogram->n_data_points;
	default: fail_msg("a metric of no kind"); return 0;
	}
}

/* Counts points, and that no envelope on the way to them is empty. */
static size_t count_points(const request_t *request)
{
	const Otlp__ResourceMetrics *resource;
	size_t n = 0;

	assert_int_equal(request->n_resource_metrics, 1);
	resource = request->resource_metrics[0];
	assert_string_equal(resource->schema_url, "https://opentelemetry.io/schemas/1.44.0");
	assert_true(resource->n_scope_metrics > 0);
	for (size_t i = 0; i < resource->n_scope_metrics; i++) {
		const Otlp__ScopeMetrics *scope = resource->scope_metrics[i];

		assert_true(scope->n_metrics > 0);
		assert_string_equal(scope->schema_url, resource->schema_url);
		for (size_t j = 0; j < scope->n_metrics; j++) {
			assert_true(metric_points(scope->metrics[j]) > 0);
			n += metric_points(scope->metrics[j]);
		}
	}
	return n;
}

static struct otlp_encoding encoding(void)
{
	static const struct attribute resource[] = { { .name = "service.name", .text = "x" } };
	static uint8_t room[1 << 20];

	return (struct otlp_encoding){ .limit_bytes = sizeof(room), .room = room, .resource = resource, .n_resource = 1,
				       .version = "1" };
}

static void a_batch_without_points_gives_no_body(void **state)
{
	struct otlp_encoding options = encoding();
	struct metric metric = { .scope = "s", .name = "m", .unit = "1", .description = "", .divisor = 1 };
	struct metric *metrics[] = { &metric };
	struct batch batch = { .time_ns = 2, .previous_ns = 1, .metrics = metrics, .n_metrics = 1 };
	struct attributes attributes;
	struct bodies bodies = { 0 };
	struct series *series;

	metric_init_series(&metric, NULL);
	assert_ok(otlp_encode(&options, &batch, collect, &bodies, &bodies.encoded));
	assert_int_equal(bodies.n, 0);

	/* Nor does one in which nothing grew, as deltas. */
	attributes_init(&attributes);
	assert_ok(series_get(&metric, &attributes, 1, &series));
	series_begin(&metric);
	series_end(&metric);
	options.temporality = OTLP_DELTA;
	assert_ok(otlp_encode(&options, &batch, collect, &bodies, &bodies.encoded));
	assert_int_equal(bodies.n, 0);
	options.temporality = OTLP_CUMULATIVE;
	assert_ok(otlp_encode(&options, &batch, collect, &bodies, &bodies.encoded));
	assert_int_equal(bodies.n_points, 1);
	bodies_done(&bodies);
	metric_done_series(&metric);
}

static void histograms_add_up(void **state)
{
	struct otlp_encoding options = encoding();
	struct bodies bodies = { 0 };
	const Otlp__Histogram *histogram;
	struct fixture fixture;

	fixture_init(&fixture);
	assert_ok(otlp_encode(&options, &fixture.batch, collect, &bodies, &bodies.encoded));
	assert_int_equal(bodies.n_points, FIXTURE_POINTS + FIXTURE_ENDED);
	assert_int_equal(count_points(bodies.requests[0]), FIXTURE_POINTS + FIXTURE_ENDED);
	histogram = bodies.requests[0]->resource_metrics[0]->scope_metrics[0]->metrics[1]->histogram;
	assert_int_equal(histogram->n_data_points, 3);
	for (size_t i = 0; i < 3; i++) {
		const Otlp__HistogramDataPoint *point = histogram->data_points[i];
		uint64_t count = 0;

		assert_int_equal(point->n_bucket_counts, point->n_explicit_bounds + 1);
		for (size_t j = 0; j < point->n_bucket_counts; j++)
			count += point->bucket_counts[j];
		assert_int_equal(count, point->count);
		for (size_t j = 1; j < point->n_explicit_bounds; j++)
			assert_true(point->explicit_bounds[j] > point->explicit_bounds[j - 1]);
		assert_int_equal(point->sum_of_values_case, OTLP__HISTOGRAM_DATA_POINT__SUM_OF_VALUES_SUM);
		assert_int_equal(point->n_attributes, 1);
	}
	assert_true(histogram->data_points[0]->sum == 0.126456789);
	bodies_done(&bodies);
	fixture_done(&fixture);
}

static void an_exponential_histogram_is_trimmed(void **state)
{
	struct otlp_encoding options = encoding();
	struct bodies bodies = { 0 };
	const Otlp__ExponentialHistogramDataPoint *point;
	const Otlp__Metric *metric;
	struct fixture fixture;

	options.histogram = OTLP_EXPONENTIAL;
	fixture_init(&fixture);
	assert_ok(otlp_encode(&options, &fixture.batch, collect, &bodies, &bodies.encoded));
	metric = bodies.requests[0]->resource_metrics[0]->scope_metrics[0]->metrics[1];
	point = metric->exponential_histogram->data_points[0];
	assert_int_equal(point->zero_count, 1);
	assert_int_equal(point->scale, 0);
	/* bucket[10] is (2^-21, 2^-20] */
	assert_int_equal(point->positive->offset, -21);
	assert_int_equal(point->positive->n_bucket_counts, 2);
	assert_int_equal(point->positive->bucket_counts[0], 5);
	assert_int_equal(point->positive->bucket_counts[1], 5);
	assert_int_equal(point->count, 11);
	bodies_done(&bodies);
	fixture_done(&fixture);
}

static unsigned int count_caches(const struct series *series)
{
	unsigned int n = 0;

	for (const struct series_cache *cache = series->caches; cache; cache = cache->next)
		n++;
	return n;
}

static void attributes_are_encoded_once_for_each_number_of_their_field(void **state)
{
	struct otlp_encoding options = encoding();
	const struct series *sum, *histogram;
	const struct series_cache *cache;
	struct bodies bodies = { 0 };
	struct fixture fixture;

	fixture_init(&fixture);
	sum = fixture.metrics[0].series[0];
	histogram = fixture.metrics[1].series[0];
	assert_ok(otlp_encode(&options, &fixture.batch, collect, &bodies, &bodies.encoded));
	cache = sum->caches;
	assert_int_equal(count_caches(sum), 1);
	assert_int_equal(count_caches(histogram), 1);
	options.histogram = OTLP_EXPONENTIAL;
	for (int i = 0; i < 2; i++)
		assert_ok(otlp_encode(&options, &fixture.batch, collect, &bodies, &bodies.encoded));
	assert_ptr_equal(sum->caches, cache);
	assert_int_equal(count_caches(sum), 1);
	assert_int_equal(count_caches(histogram), 2);
	for (size_t i = 0; i < 2; i++) {
		const Otlp__Metric *metric = bodies.requests[i]->resource_metrics[0]->scope_metrics[0]->metrics[1];
		const Otlp__KeyValue *item = i ? metric->exponential_histogram->data_points[1]->attributes[0] :
						 metric->histogram->data_points[1]->attributes[0];

		assert_string_equal(item->key, "bpfpush.syscall.name");
		assert_string_equal(item->value->string_value, "write");
	}
	bodies_done(&bodies);
	fixture_done(&fixture);
}

static void fill(struct metric *metric, unsigned int n)
{
	struct attributes attributes;
	struct series *series;

	metric_init_series(metric, NULL);
	series_begin(metric);
	for (unsigned int i = 0; i < n; i++) {
		attributes_init(&attributes);
		assert_ok(attributes_add_number(&attributes, "n", i));
		assert_ok(series_get(metric, &attributes, 1, &series));
		series_add(series, i + 1);
	}
	series_end(metric);
}

static void a_large_batch_is_split_and_no_point_is_lost(void **state)
{
	struct otlp_encoding options = encoding();
	struct metric first = { .scope = "a", .name = "first", .unit = "1", .description = "", .divisor = 1 };
	struct metric second = { .scope = "b", .name = "second", .unit = "1", .description = "", .divisor = 1 };
	struct metric *metrics[] = { &first, &second };
	struct batch batch = { .time_ns = 2, .previous_ns = 1, .metrics = metrics, .n_metrics = 2 };
	const Otlp__Resource *resource;
	struct bodies bodies = { 0 };
	size_t n = 0;

	fill(&first, 300);
	fill(&second, 300);
	options.limit_bytes = 2000;
	assert_ok(otlp_encode(&options, &batch, collect, &bodies, &bodies.encoded));
	assert_true(bodies.n > 10);
	for (size_t i = 0; i < bodies.n; i++) {
		assert_true(bodies.sizes[i] <= 2000);
		assert_true(i + 1 == bodies.n || bodies.sizes[i] > 1500);
		resource = bodies.requests[i]->resource_metrics[0]->resource;
		assert_string_equal(resource->attributes[0]->value->string_value, "x");
		n += count_points(bodies.requests[i]);
	}
	assert_int_equal(n, 600);
	assert_int_equal(bodies.n_points, 600);
	assert_int_equal(bodies.encoded.n_too_large, 0);
	bodies_done(&bodies);
	metric_done_series(&first);
	metric_done_series(&second);
}

static void a_point_that_fits_no_request_is_counted_and_the_others_go(void **state)
{
	struct otlp_encoding options = encoding();
	struct metric metric = { .scope = "a", .name = "m", .unit = "1", .description = "", .divisor = 1 };
	struct metric *metrics[] = { &metric };
	struct batch batch = { .time_ns = 2, .previous_ns = 1, .metrics = metrics, .n_metrics = 1 };
	struct bodies bodies = { 0 };
	struct attributes attributes;
	struct series *series;
	char text[250];

	fill(&metric, 2);
	memset(text, 'x', sizeof(text));
	attributes_init(&attributes);
	assert_ok(attributes_add_text(&attributes, "long", text, sizeof(text)));
	assert_ok(series_get(&metric, &attributes, 1, &series));
	series_end(&metric);
	options.limit_bytes = 350;
	assert_ok(otlp_encode(&options, &batch, collect, &bodies, &bodies.encoded));
	assert_int_equal(bodies.encoded.n_too_large, 1);
	assert_int_equal(bodies.n_points, 2);
	bodies_done(&bodies);
	options.limit_bytes = 16;
	bodies = (struct bodies){ 0 };
	assert_ok(otlp_encode(&options, &batch, collect, &bodies, &bodies.encoded));
	assert_int_equal(bodies.encoded.n_too_large, 3);
	assert_int_equal(bodies.n, 0);
	metric_done_series(&metric);
}

static void numbers_beyond_a_signed_integer_are_doubles(void **state)
{
	struct otlp_encoding options = encoding();
	struct metric metric = { .scope = "a", .name = "m", .unit = "1", .description = "", .divisor = 1 };
	struct metric *metrics[] = { &metric };
	struct batch batch = { .time_ns = 2, .previous_ns = 1, .metrics = metrics, .n_metrics = 1 };
	struct bodies bodies = { 0 };
	Otlp__NumberDataPoint **points;

	fill(&metric, 2);
	metric.series[0]->total.sum = INT64_MAX;
	metric.series[1]->total.sum = UINT64_MAX;
	assert_ok(otlp_encode(&options, &batch, collect, &bodies, &bodies.encoded));
	points = bodies.requests[0]->resource_metrics[0]->scope_metrics[0]->metrics[0]->sum->data_points;
	assert_int_equal(points[0]->value_case, OTLP__NUMBER_DATA_POINT__VALUE_AS_INT);
	assert_true(points[0]->as_int == INT64_MAX);
	assert_int_equal(points[1]->value_case, OTLP__NUMBER_DATA_POINT__VALUE_AS_DOUBLE);
	assert_true(points[1]->as_double == 0x1p64);
	bodies_done(&bodies);
	metric_done_series(&metric);
}

static int ignore(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	return 0;
}

static void failing_allocations_are_reported(void **state)
{
	struct otlp_encoding options = encoding();
	struct fixture fixture;
	struct otlp_encoded encoded;

	fixture_init(&fixture);
	assert_survives_failing_allocations(otlp_encode(&options, &fixture.batch, ignore, NULL, &encoded), (void)0);
	fixture_done(&fixture);
}

static int refuse(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	*(size_t *)user += n_points;
	return -E2BIG;
}

static void a_body_that_is_refused_does_not_keep_the_others_back(void **state)
{
	struct otlp_encoding options = encoding();
	struct fixture fixture;
	struct otlp_encoded encoded;
	size_t n_refused = 0;

	fixture_init(&fixture);
	assert_error(otlp_encode(&options, &fixture.batch, refuse, &n_refused, &encoded), E2BIG);
	assert_int_equal(n_refused, FIXTURE_POINTS + FIXTURE_ENDED);
	n_refused = 0;
	options.limit_bytes = 2000;
	assert_error(otlp_encode(&options, &fixture.batch, refuse, &n_refused, &encoded), E2BIG);
	assert_int_equal(n_refused, FIXTURE_POINTS + FIXTURE_ENDED);
	fixture_done(&fixture);
}

/* The points of a metric with these series: one from before, a new one, a new one of 0, one that has ended. */
struct rounds {
	struct metric metric;
	struct series *series[4];
	struct bodies bodies;
};

enum { OLD, NEW, ZERO, ENDED };

#define UPDOWN 3 /* a kind besides those of metric.h */

static void encode_rounds(struct rounds *rounds, int kind, const struct otlp_encoding *options)
{
	struct metric *metrics[] = { &rounds->metric };
	const struct batch batch = { .time_ns = 30, .previous_ns = 20, .metrics = metrics, .n_metrics = 1 };
	const uint64_t bucket[3] = { 1, 2, 3 };
	struct attributes attributes;

	*rounds = (struct rounds){ .metric = { .scope = "s", .name = "m", .unit = "1", .description = "", .divisor = 1,
					       .kind = kind == UPDOWN ? METRIC_GAUGE : (enum metric_kind)kind,
					       .is_updown = kind == UPDOWN,
					       .layout.n_buckets = kind == METRIC_HISTOGRAM ? 3 : 0 } };
	metric_init_series(&rounds->metric, NULL);
	for (int round = 0; round < 2; round++) {
		series_begin(&rounds->metric);
		for (int i = OLD; i <= ENDED; i++) {
			if (round != (i == NEW || i == ZERO))
				continue;
			attributes_init(&attributes);
			assert_ok(attributes_add_number(&attributes, "n", i));
			assert_ok(series_get(&rounds->metric, &attributes, round ? 20 : 10, &rounds->series[i]));
			if (i == ZERO)
				continue;
			if (kind == METRIC_HISTOGRAM)
				series_add_histogram(rounds->series[i], 9, bucket);
			else
				series_add(rounds->series[i], 5);
		}
		if (round)
			series_put(rounds->series[ENDED]);
		series_end(&rounds->metric);
	}
	assert_ok(otlp_encode(options, &batch, collect, &rounds->bodies, &rounds->bodies.encoded));
	assert_int_equal(rounds->bodies.encoded.n_points, rounds->bodies.n_points);
}

static void rounds_done(struct rounds *rounds)
{
	bodies_done(&rounds->bodies);
	metric_done_series(&rounds->metric);
}

/* Of the first body: points of 0 are in a metric of their own, before the others. */
static const Otlp__Metric *metric_at(const struct bodies *bodies, size_t i)
{
	return bodies->requests[0]->resource_metrics[0]->scope_metrics[i]->metrics[0];
}

#define only(bodies) metric_at(bodies, 0)

static void assert_number(const Otlp__NumberDataPoint *point, uint64_t start_ns, uint64_t time_ns, int64_t value)
{
	assert_int_equal(point->start_time_unix_nano, start_ns);
	assert_int_equal(point->time_unix_nano, time_ns);
	assert_int_equal(point->value_case, OTLP__NUMBER_DATA_POINT__VALUE_AS_INT);
	assert_int_equal(point->as_int, value);
	assert_int_equal(point->flags, 0);
}

static void a_new_sum_begins_with_zero_and_an_ended_one_says_so(void **state)
{
	struct otlp_encoding options = encoding();
	struct rounds rounds;
	Otlp__NumberDataPoint **points;

	options.has_zero_points = true;
	encode_rounds(&rounds, METRIC_SUM, &options);
	assert_int_equal(rounds.bodies.n_points, 5);
	assert_int_equal(metric_at(&rounds.bodies, 0)->sum->n_data_points, 1);
	assert_number(metric_at(&rounds.bodies, 0)->sum->data_points[0], 20, 20, 0);
	points = metric_at(&rounds.bodies, 1)->sum->data_points;
	assert_number(points[0], 10, 30, 5);
	assert_number(points[1], 20, 30, 5);
	assert_int_equal(points[1]->attributes[0]->value->int_value, NEW);
	assert_number(points[2], 20, 30, 0);
	assert_int_equal(points[3]->value_case, OTLP__NUMBER_DATA_POINT__VALUE__NOT_SET);
	assert_int_equal(points[3]->flags, 1);
	assert_int_equal(points[3]->start_time_unix_nano, 10);
	assert_int_equal(points[3]->time_unix_nano, 30);
	assert_int_equal(points[3]->attributes[0]->value->int_value, ENDED);
	rounds_done(&rounds);
	options.has_zero_points = false;
	encode_rounds(&rounds, METRIC_SUM, &options);
	assert_int_equal(rounds.bodies.n_points, 4);
	rounds_done(&rounds);
}

static void a_new_histogram_begins_with_zero_and_an_ended_one_says_so(void **state)
{
	struct otlp_encoding options = encoding();
	struct rounds rounds;

	options.has_zero_points = true;
	encode_rounds(&rounds, METRIC_HISTOGRAM, &options);
	assert_int_equal(rounds.bodies.n_points, 5);
	for (int is_end = 0; is_end < 2; is_end++) { /* the 0 of the new one, and the end of another */
		const Otlp__Metric *metric = metric_at(&rounds.bodies, (size_t)is_end);
		const Otlp__HistogramDataPoint *point = metric->histogram->data_points[is_end ? 3 : 0];

		assert_int_equal(point->flags, is_end);
		assert_int_equal(point->start_time_unix_nano, is_end ? 10 : 20);
		assert_int_equal(point->time_unix_nano, is_end ? 30 : 20);
		assert_int_equal(point->n_bucket_counts, 3);
		assert_int_equal(point->n_explicit_bounds, 2);
		assert_int_equal(point->bucket_counts[1] + point->bucket_counts[2] + point->count, 0);
		assert_true(point->sum == 0);
	}
	rounds_done(&rounds);
	options.histogram = OTLP_EXPONENTIAL;
	encode_rounds(&rounds, METRIC_HISTOGRAM, &options);
	for (int is_end = 0; is_end < 2; is_end++) {
		const Otlp__Metric *metric = metric_at(&rounds.bodies, (size_t)is_end);
		const Otlp__ExponentialHistogramDataPoint *point =
			metric->exponential_histogram->data_points[is_end ? 3 : 0];

		assert_int_equal(point->flags, is_end);
		assert_int_equal(point->time_unix_nano, is_end ? 30 : 20);
		assert_int_equal(point->count + point->zero_count, 0);
		assert_null(point->positive);
	}
	rounds_done(&rounds);
}

static void deltas_and_gauges_have_no_zero_and_deltas_no_end(void **state)
{
	struct otlp_encoding options = encoding();
	struct rounds rounds;

	options.has_zero_points = true;
	encode_rounds(&rounds, METRIC_GAUGE, &options);
	assert_int_equal(rounds.bodies.n_points, 4);
	assert_int_equal(only(&rounds.bodies)->gauge->data_points[3]->flags, 1);
	rounds_done(&rounds);
	options.temporality = OTLP_DELTA;
	encode_rounds(&rounds, METRIC_SUM, &options);
	assert_int_equal(rounds.bodies.n_points, 1);
	assert_number(only(&rounds.bodies)->sum->data_points[0], 20, 30, 5);
	rounds_done(&rounds);
}

/* "NAME=TEXT " for each attribute. */
static void assert_attributes(const Otlp__NumberDataPoint *point, const char *want)
{
	char text[256] = "";

	for (size_t i = 0; i < point->n_attributes; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s=%s ", point->attributes[i]->key,
			 point->attributes[i]->value->string_value);
	assert_string_equal(text, want);
}

static void an_owner_has_one_more_name_where_it_is_asked_for(void **state)
{
	static const char *const series[][2] = { { "systemd.unit.name", "cron.service" },
		{ "container.id", "0123abcd" }, { "process.linux.cgroup", "/" }, { "error.type", "ENOENT" } };
	static const char *const want[][4] = {
		{ "systemd.unit.name=cron.service ", "container.id=0123abcd ", "process.linux.cgroup=/ ", "error.type=ENOENT " },
		{ "systemd.unit.name=cron.service owner=cron.service ", "container.id=0123abcd owner=0123abcd ",
		  "process.linux.cgroup=/ owner=/ ", "error.type=ENOENT " },
		{ "systemd.unit.name=cron.service container.id=cron.service ", "container.id=0123abcd ",
		  "process.linux.cgroup=/ container.id=/ ", "error.type=ENOENT " },
	};
	static struct otlp_encoding encodings[ARRAY_SIZE(want)]; /* they outlive the series */
	static char *const names[ARRAY_SIZE(want)] = { NULL, (char *)"owner", (char *)"container.id" };
	struct metric metric = { .scope = "a", .name = "m", .unit = "1", .description = "", .divisor = 1 };
	struct batch batch = { 2, 1, .metrics = (struct metric *[]){ &metric }, .n_metrics = 1 };

	metric_init_series(&metric, NULL);
	series_begin(&metric);
	for (size_t i = 0; i < ARRAY_SIZE(series); i++) {
		struct attributes attributes;
		struct series *new;

		attributes_init(&attributes);
		assert_ok(attributes_add_text(&attributes, series[i][0], series[i][1], strlen(series[i][1])));
		assert_true(series_get(&metric, &attributes, 1, &new) >= 0);
		series_add(new, 1);
	}
	series_end(&metric);
	for (size_t round = 0, i; round < 2 * ARRAY_SIZE(want); round++) {
		struct bodies bodies = { 0 };

		i = round % ARRAY_SIZE(want);
		encodings[i] = encoding();
		encodings[i].owner_attribute = names[i];
		assert_ok(otlp_encode(&encodings[i], &batch, collect, &bodies, &bodies.encoded));
		for (size_t j = 0; j < ARRAY_SIZE(series); j++)
			assert_attributes(only(&bodies)->sum->data_points[j], want[i][j]);
		bodies_done(&bodies);
	}
	metric_done_series(&metric);
}

static void an_updowncounter_is_a_cumulative_sum_that_may_fall(void **state)
{
	struct otlp_encoding options = encoding();

	options.has_zero_points = true;
	for (int i = 0; i < 2; i++) {
		struct rounds rounds;
		const Otlp__Sum *sum;

		options.temporality = i ? OTLP_DELTA : OTLP_CUMULATIVE;
		encode_rounds(&rounds, UPDOWN, &options);
		assert_int_equal(rounds.bodies.n_points, 4);
		assert_int_equal(only(&rounds.bodies)->data_case, OTLP__METRIC__DATA_SUM);
		sum = only(&rounds.bodies)->sum;
		assert_false(sum->is_monotonic);
		assert_int_equal(sum->aggregation_temporality,
				 OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE);
		assert_number(sum->data_points[OLD], 10, 30, 0); /* nothing has set it since */
		assert_number(sum->data_points[NEW], 20, 30, 5);
		assert_number(sum->data_points[ZERO], 20, 30, 0);
		assert_int_equal(sum->data_points[ENDED]->flags, 1);
		assert_int_equal(sum->data_points[ENDED]->value_case, OTLP__NUMBER_DATA_POINT__VALUE__NOT_SET);
		assert_int_equal(sum->data_points[ENDED]->start_time_unix_nano, 10);
		rounds_done(&rounds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_without_points_gives_no_body),
		cmocka_unit_test(histograms_add_up),
		cmocka_unit_test(an_exponential_histogram_is_trimmed),
		cmocka_unit_test(attributes_are_encoded_once_for_each_number_of_their_field),
		cmocka_unit_test(a_large_batch_is_split_and_no_point_is_lost),
		cmocka_unit_test(a_point_that_fits_no_request_is_counted_and_the_others_go),
		cmocka_unit_test(numbers_beyond_a_signed_integer_are_doubles),
		cmocka_unit_test(a_new_sum_begins_with_zero_and_an_ended_one_says_so),
		cmocka_unit_test(a_new_histogram_begins_with_zero_and_an_ended_one_says_so),
		cmocka_unit_test(deltas_and_gauges_have_no_zero_and_deltas_no_end),
		cmocka_unit_test(an_owner_has_one_more_name_where_it_is_asked_for),
		cmocka_unit_test(an_updowncounter_is_a_cumulative_sum_that_may_fall),
		cmocka_unit_test(failing_allocations_are_reported),
		cmocka_unit_test(a_body_that_is_refused_does_not_keep_the_others_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
