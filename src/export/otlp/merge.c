/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All points are gathered first, by what they are in and by their attributes, which one encoder has
 * written the same way each time. Only the numbers of deltas are looked into. Then they are written
 * by their times: no body begins before the end of the one before it.
 */
#include "export/otlp/merge.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "export/otlp/gzip.h"
#include "otlp-metrics.pb-c.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/index.h"

typedef Otlp__NumberDataPoint number_t;
typedef Otlp__HistogramDataPoint histogram_t;
typedef Otlp__ExponentialHistogramDataPoint exponential_t;
typedef Otlp__ExponentialHistogramDataPoint__Buckets buckets_t;

#define BUCKETS_MAX 4096 /* of one in our own bodies; more is not ours */

static double as_double(const number_t *number)
{
	return number->value_case == OTLP__NUMBER_DATA_POINT__VALUE_AS_INT ?
	       (double)number->as_int : number->as_double;
}

static void add_number(const number_t *older, number_t *newer)
{
	double sum = as_double(older) + as_double(newer);

	newer->start_time_unix_nano = older->start_time_unix_nano;
	if (older->value_case == OTLP__NUMBER_DATA_POINT__VALUE_AS_INT &&
	    newer->value_case == older->value_case &&
	    !__builtin_add_overflow(older->as_int, newer->as_int, &newer->as_int))
		return;
	newer->value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_DOUBLE;
	newer->as_double = sum;
}

static int add_histogram(const histogram_t *older, histogram_t *newer)
{
	const struct bytes bounds = { (const uint8_t *)older->explicit_bounds,
				      older->n_explicit_bounds * sizeof(*older->explicit_bounds) };
	const struct bytes new_bounds = { (const uint8_t *)newer->explicit_bounds,
					  newer->n_explicit_bounds *
					  sizeof(*newer->explicit_bounds) };

	if (older->n_bucket_counts != newer->n_bucket_counts ||
	    !bytes_are_equal(bounds, new_bounds))
		return 1;
	newer->start_time_unix_nano = older->start_time_unix_nano;
	newer->count += older->count;
	newer->sum += older->sum;
	for (size_t i = 0; i < newer->n_bucket_counts; i++)
		newer->bucket_counts[i] += older->bucket_counts[i];
	return 0;
}

/* Adds older's buckets to those of newer, from the lowest offset on. */
static int add_buckets(const buckets_t *older, buckets_t *newer)
{
	int64_t first = older->offset < newer->offset ? older->offset : newer->offset;
	int64_t ends[] = { (int64_t)older->n_bucket_counts + older->offset,
			   (int64_t)newer->n_bucket_counts + newer->offset };
	int64_t n = (ends[0] > ends[1] ? ends[0] : ends[1]) - first;
	uint64_t *counts;

	if (n > BUCKETS_MAX)
		return 1;
	counts = calloc((size_t)n + 1, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < older->n_bucket_counts; i++)
		counts[older->offset - first + (int64_t)i] += older->bucket_counts[i];
	for (size_t i = 0; i < newer->n_bucket_counts; i++)
		counts[newer->offset - first + (int64_t)i] += newer->bucket_counts[i];
	free(newer->bucket_counts);
	*newer = (buckets_t){ newer->base, (int32_t)first, (size_t)n, counts };
	return 0;
}

static int add_exponential(exponential_t *older, exponential_t *newer)
{
	int err = 0;

	if (older->scale != newer->scale)
		return 1;
	if (older->positive && newer->positive) {
		err = add_buckets(older->positive, newer->positive);
	} else if (older->positive) {
		newer->positive = older->positive;
		older->positive = NULL;
	}
	newer->start_time_unix_nano = older->start_time_unix_nano;
	newer->count += older->count;
	newer->sum += older->sum;
	newer->zero_count += older->zero_count;
	return err;
}

static int add_point(unsigned int data_field, ProtobufCMessage *older, ProtobufCMessage *newer)
{
	if (data_field == OTLP__METRIC__DATA_HISTOGRAM)
		return add_histogram((histogram_t *)older, (histogram_t *)newer);
	if (data_field == OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM)
		return add_exponential((exponential_t *)older, (exponential_t *)newer);
	add_number((number_t *)older, (number_t *)newer);
	return 0;
}

/*
 * Adds the numbers of an older point of the same series to *numbers, as they are on the wire:
 * *ret_sum is for free(), and *numbers are in it. 1: they cannot be added, because their buckets
 * differ. -EBADMSG, -ENOMEM.
 */
static int add_older(unsigned int data_field, struct bytes older_bytes, struct bytes *numbers,
		     uint8_t **ret_sum)
{
	const ProtobufCMessageDescriptor *message = otlp_kinds[data_field].message;
	ProtobufCMessage *older = protobuf_c_message_unpack(message, NULL, older_bytes.size,
							    older_bytes.data);
	ProtobufCMessage *newer = protobuf_c_message_unpack(message, NULL, numbers->size,
							    numbers->data);
	int err = older && newer ? add_point(data_field, older, newer) : -EBADMSG;
	size_t size = err ? 0 : protobuf_c_message_get_packed_size(newer);
	uint8_t *sum = err ? NULL : malloc(size + 1);

	if (!err && !sum)
		err = -ENOMEM;
	if (!err) {
		protobuf_c_message_pack(newer, sum);
		*numbers = (struct bytes){ sum, size };
		*ret_sum = sum;
	}
	protobuf_c_message_free_unpacked(older, NULL);
	protobuf_c_message_free_unpacked(newer, NULL);
	return err;
}

/* Points and what they are in */

/* The numbers of fields that points of all kinds have. */
enum { FIELD_START = 2, FIELD_TIME = 3 };

/* What a point is to its series: a value, a 0 at its start, or a last point without a value. */
enum mark { MARK_VALUE, MARK_ZERO, MARK_ENDED };

struct section {
	struct otlp_place place;
	bool is_delta;
};

struct point {
	struct bytes numbers, attributes;
	uint8_t *owned; /* NULL, or the numbers */
	uint32_t section, number; /* number: in the order in which points were gathered */
	enum mark mark;
	uint64_t time_ns;
};

struct merge {
	struct section *sections;
	struct point *points;
	size_t n_sections, n_points, at; /* at: the last section */
	struct index index; /* of points */
};

static enum mark mark_of(unsigned int data_field, struct bytes numbers)
{
	struct bytes start = otlp_find_field(numbers, FIELD_START),
		time = otlp_find_field(numbers, FIELD_TIME);

	if (otlp_find_field(numbers, otlp_kinds[data_field].flags).data)
		return MARK_ENDED;
	return start.size && bytes_are_equal(start, time) ? MARK_ZERO : MARK_VALUE;
}

static bool has_place(const struct section *section, const struct otlp_place *place)
{
	const struct otlp_place *own = &section->place;

	return own->data_field == place->data_field &&
	       bytes_are_equal(own->header, place->header) &&
	       bytes_are_equal(own->tail, place->tail) &&
	       bytes_are_equal(own->scope, place->scope) &&
	       bytes_are_equal(own->resource, place->resource);
}

static bool is_delta(struct bytes tail)
{
	struct bytes temporality = otlp_find_field(tail, 2); /* of each kind */

	return temporality.size &&
	       *temporality.data == OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_DELTA;
}

/* Sets merge->at. */
static int find_section(struct merge *merge, const struct otlp_place *place)
{
	struct section section;

	if (merge->at < merge->n_sections && has_place(&merge->sections[merge->at], place))
		return 0;
	for (merge->at = 0; merge->at < merge->n_sections; merge->at++)
		if (has_place(&merge->sections[merge->at], place))
			return 0;
	section = (struct section){ *place, is_delta(place->tail) };
	return array_append(&merge->sections, &merge->n_sections, &section);
}

static uint64_t time_of(struct bytes numbers)
{
	struct bytes content = otlp_find_field(numbers, FIELD_TIME);
	uint64_t time_ns = 0;

	if (content.size == sizeof(time_ns))
		memcpy(&time_ns, content.data, sizeof(time_ns));
	return le64toh(time_ns);
}

/* The newer of two points of a series. */
static int join_points(struct merge *merge, struct point *older, struct bytes numbers)
{
	const struct section *section = &merge->sections[older->section];
	struct point left = *older;
	uint8_t *sum = NULL;
	int err = section->is_delta ?
		  add_older(section->place.data_field, older->numbers, &numbers, &sum) : 0;

	if (err < 0)
		return err;
	older->numbers = numbers;
	older->owned = sum;
	older->time_ns = time_of(numbers);
	if (!err)
		free(left.owned);
	left.number = (uint32_t)merge->n_points;
	return err ? array_append(&merge->points, &merge->n_points, &left) : 0;
}

/* Totals that began again say nothing of those before. */
static bool is_same(const struct merge *merge, const struct point *a, const struct point *b)
{
	bool is_delta = merge->sections[a->section].is_delta;

	return a->section == b->section && a->mark == b->mark &&
	       bytes_are_equal(a->attributes, b->attributes) &&
	       (is_delta || bytes_are_equal(otlp_find_field(a->numbers, FIELD_START),
					    otlp_find_field(b->numbers, FIELD_START)));
}

static int merge_point(void *user, const struct otlp_place *place, struct bytes numbers,
		       struct bytes attributes)
{
	struct merge *merge = user;
	int err = find_section(merge, place);
	struct point point = { numbers, attributes, NULL, (uint32_t)merge->at,
			       (uint32_t)merge->n_points, mark_of(place->data_field, numbers),
			       time_of(numbers) };
	uint64_t hash = hash_bytes(attributes.data, attributes.size) + merge->at * 8 + point.mark;
	uint32_t i;

	if (err)
		return err;
	index_for_each(i, &merge->index, hash)
		if (is_same(merge, &merge->points[i], &point))
			return join_points(merge, &merge->points[i], numbers);
	err = array_append(&merge->points, &merge->n_points, &point);
	return err ?: index_add(&merge->index, hash, (uint32_t)(merge->n_points - 1));
}

/* Of points of one time, as in encode.c: last points of a metric come last. */
static uint64_t rank_of(const struct point *point)
{
	return (uint64_t)point->section << 33 | (uint64_t)(point->mark == MARK_ENDED) << 32 |
	       point->number;
}

static int compare_points(const void *a, const void *b)
{
	const struct point *one = a, *other = b;

	if (one->time_ns != other->time_ns)
		return one->time_ns < other->time_ns ? -1 : 1;
	return rank_of(one) < rank_of(other) ? -1 : 1;
}

static void put_points(struct merge *merge, struct otlp_writer *writer)
{
	uint64_t time_ns = 0;

	qsort(merge->points, merge->n_points, sizeof(*merge->points), compare_points);
	array_for_each (point, merge->points, merge->n_points) {
		if (point->time_ns != time_ns)
			otlp_writer_leave(writer, OTLP_METRIC);
		time_ns = point->time_ns;
		otlp_writer_put(writer, &merge->sections[point->section].place, point->numbers,
				point->attributes);
	}
}

int otlp_merge(struct queue_item *const *items, size_t n, struct otlp_writer *writer)
{
	struct buf *bodies = calloc(n, sizeof(*bodies));
	struct merge merge = { 0 };
	int err = bodies ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++)
		err = gzip_read(&bodies[i], items[i]->data, items[i]->size) ?:
		      otlp_body_read(bodies[i].data, bodies[i].size, merge_point, &merge);
	if (!err)
		put_points(&merge, writer);
	/* The places that the writer knows end with the call. */
	if (!err)
		otlp_writer_end(writer);
	for (size_t i = 0; i < merge.n_points; i++)
		free(merge.points[i].owned);
	free(merge.points);
	free(merge.sections);
	index_done(&merge.index);
	for (size_t i = 0; bodies && i < n; i++)
		buf_done(&bodies[i]);
	free(bodies);
	return err;
}

/* A sum of whole numbers, or how many values are in a histogram. */
static int add_value(void *user, const struct otlp_place *place, struct bytes numbers,
		     struct bytes attributes)
{
	struct bytes content = otlp_find_field(numbers, otlp_kinds[place->data_field].value);
	uint64_t value = 0;

	if (is_delta(place->tail) && content.size == sizeof(value))
		memcpy(&value, content.data, sizeof(value));
	*(uint64_t *)user += le64toh(value);
	return 0;
}

uint64_t otlp_sum_values(const struct queue_item *item)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT;
	uint64_t sum = 0;

	if (!gzip_read(&body, item->data, item->size))
		(void)otlp_body_read(body.data, body.size, add_value, &sum);
	return sum;
}
