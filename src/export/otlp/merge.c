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

#include "export/otlp/add.h"
#include "export/otlp/gzip.h"
#include "otlp-metrics.pb-c.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/index.h"

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
		  otlp_add(section->place.data_field, older->numbers, &numbers, &sum) : 0;

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
