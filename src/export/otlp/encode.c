/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a series never change: they are encoded once and copied after the numbers. */
#include "export/otlp/encode.h"

#include <errno.h>
#include <string.h>

#include "metric/bounds.h"
#include "export/otlp/message/point.h"
#include "export/otlp/message/value.h"
#include "util/array.h"
#include "util/buf.h"

#define FIELD_ATTRIBUTES 1 /* of a resource */

struct walk {
	const struct otlp_encoding *encoding;
	struct otlp_writer writer;
	struct otlp_encoded encoded;
	int err; /* the first one */
	struct otlp_place place;
	struct buf resource, scope, header, tail, numbers; /* the last: of one point */
	struct otlp_points points;
};

/* Attributes */

static void append_owner(struct buf *out, unsigned int field,
			 const struct series *series, char *name)
{
	const struct attribute *found = series_owner(series);
	struct attribute owner;

	if (!found || array_find(series->attributes, series->n_attributes, name))
		return;
	owner = *found;
	owner.name = name;
	value_append_attributes(out, field, &owner, 1);
}

/*
 * Those of a series, which never change: encoded once for each number of the field that is in use,
 * and kept with the series, for all encodings without an attribute of their own. NULL: no memory.
 */
static const struct series_cache *attributes_of(struct series *series, unsigned int field,
						const struct otlp_encoding *encoding)
{
	static const char shared[OTLP_FIELDS];
	const char *owners = encoding->owner_attribute ? encoding->owners : shared;
	const struct series_cache *cache = series_cache(series, &owners[field]);
	_cleanup_(buf_done) struct buf encoded = BUF_INIT;

	if (cache)
		return cache;
	value_append_attributes(&encoded, field, series->attributes, series->n_attributes);
	if (encoding->owner_attribute)
		append_owner(&encoded, field, series, encoding->owner_attribute);
	return buf_error(&encoded) ? NULL :
	       series_cache_new(series, &owners[field], encoded.data, encoded.size);
}

/* Points */

static int pack_point(struct walk *walk, struct series *series, enum otlp_form form)
{
	struct otlp_point point;
	const struct series_cache *attributes =
		attributes_of(series, otlp_kinds[walk->place.data_field].attributes,
			      walk->encoding);
	struct bytes numbers;

	otlp_point_make(&walk->points, series, form, &point);
	buf_reset(&walk->numbers);
	numbers = value_pack(&walk->numbers, &point.base);
	if (!attributes || buf_error(&walk->numbers) || buf_error(&walk->resource) ||
	    buf_error(&walk->scope) || buf_error(&walk->header) || buf_error(&walk->tail))
		return -ENOMEM;
	otlp_writer_put(&walk->writer, &walk->place, numbers,
			(struct bytes){ attributes->data, attributes->size });
	return 0;
}

static void put_point(struct walk *walk, struct series *series, enum otlp_form form)
{
	int err = pack_point(walk, series, form);

	walk->encoded.n_points++;
	walk->encoded.n_failed += err != 0;
	walk->err = walk->err ?: err;
}

static bool has_zero(const struct walk *walk, const struct series *series)
{
	return series->start_ns == walk->points.previous_ns &&
	       (series->total.sum || series->total.count);
}

static bool has_point(const struct walk *walk, const struct series *series)
{
	return !walk->points.is_delta || series->delta.sum || series->delta.count;
}

/* The walk */

static void set_metric(struct walk *walk, const struct metric *metric)
{
	static const Otlp__Metric__DataCase fields[][2] = {
		[METRIC_GAUGE] = { OTLP__METRIC__DATA_GAUGE, OTLP__METRIC__DATA_GAUGE },
		[METRIC_SUM] = { OTLP__METRIC__DATA_SUM, OTLP__METRIC__DATA_SUM },
		[METRIC_HISTOGRAM] = { [OTLP_EXPLICIT] = OTLP__METRIC__DATA_HISTOGRAM,
				       [OTLP_EXPONENTIAL] =
				       OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM },
	};
	Otlp__Metric header = OTLP__METRIC__INIT;
	Otlp__Sum tail = OTLP__SUM__INIT; /* what follows the points in any of these */
	bool is_gauge = metric->kind == METRIC_GAUGE;

	header.name = (char *)metric->name;
	header.description = (char *)metric->description;
	header.unit = (char *)metric->unit;
	/* Explicit bounds are not those of an exponential histogram. */
	walk->points.histogram = metric->layout.bounds ? OTLP_EXPLICIT : walk->encoding->histogram;
	walk->points.is_delta = walk->encoding->temporality == OTLP_DELTA && !is_gauge;
	if (!is_gauge || metric->is_updown)
		tail.aggregation_temporality =
			walk->points.is_delta ?
			OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_DELTA :
			OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE;
	tail.is_monotonic = metric->kind == METRIC_SUM;
	walk->place.data_field =
		fields[metric->is_updown ? METRIC_SUM : metric->kind][walk->points.histogram];
	for (uint32_t i = 0;
	     walk->place.data_field == OTLP__METRIC__DATA_HISTOGRAM &&
	     i < bounds_explicit_n(metric);
	     i++)
		walk->points.bounds[i] = bounds_upper(metric, bounds_explicit_last(metric, i));
	buf_reset(&walk->header);
	buf_reset(&walk->tail);
	walk->place.header = value_pack(&walk->header, &header.base);
	walk->place.tail = value_pack(&walk->tail, &tail.base);
}

static void set_scope(struct walk *walk, const char *name)
{
	buf_reset(&walk->scope);
	walk->place.scope = value_pack_scope(&walk->scope, name, walk->encoding->version);
}

static void put_zeros(struct walk *walk, const struct metric *metric)
{
	struct series *series;
	size_t n_zeros = 0;

	if (metric->kind == METRIC_GAUGE)
		return;
	metric_for_each_series(series, metric) {
		if (!has_zero(walk, series))
			continue;
		if (!n_zeros++)
			set_metric(walk, metric);
		put_point(walk, series, OTLP_ZERO);
	}
	otlp_writer_leave(&walk->writer, OTLP_METRIC);
}

/*
 * Series that have ended come last: the Collector's exporter for Prometheus skips what follows such
 * a point in the metric.
 */
static void put_points(struct walk *walk, const struct metric *metric)
{
	struct series *series;
	size_t n_present = 0;

	set_metric(walk, metric);
	metric_for_each_series(series, metric) {
		if (has_point(walk, series))
			put_point(walk, series, OTLP_POINT);
		n_present++;
	}
	for (size_t i = 0;
	     n_present < metric->n_series && !walk->points.is_delta && i < metric->n_series; i++)
		if (metric->series[i]->is_ended)
			put_point(walk, metric->series[i], OTLP_ENDED);
	otlp_writer_leave(&walk->writer, OTLP_METRIC);
}

static void walk_batch(struct walk *walk, const struct batch *batch,
		       void (*put)(struct walk *walk, const struct metric *metric))
{
	const char *scope = NULL;
	struct metric *metric;

	batch_for_each_metric(metric, batch) {
		if (!scope || strcmp(scope, metric->scope)) {
			otlp_writer_leave(&walk->writer, OTLP_SCOPE_METRICS);
			set_scope(walk, metric->scope);
		}
		scope = metric->scope;
		put(walk, metric);
	}
}

int otlp_encode(const struct otlp_encoding *encoding, const struct batch *batch, otlp_body_fn *body,
		void *user, struct otlp_encoded *ret_encoded)
{
	struct walk walk = {
		.encoding = encoding,
		.writer = { encoding->room, encoding->limit_bytes, body, user,
			    encoding->limit_points },
		.points = { .previous_ns = batch->previous_ns, .time_ns = batch->time_ns },
	};

	value_append_attributes(&walk.resource, FIELD_ATTRIBUTES, encoding->resource,
			  encoding->n_resource);
	walk.place.resource = (struct bytes){ walk.resource.data, walk.resource.size };
	/*
	 * A receiver sees growth between two points alone: one of 0 shows what the first one has
	 * grown by. Those of all metrics come first, as they are of the time of the batch before.
	 * So no request begins before the end of another one, which Prometheus would refuse.
	 */
	if (encoding->has_zero_points && encoding->temporality == OTLP_CUMULATIVE)
		walk_batch(&walk, batch, put_zeros);
	walk_batch(&walk, batch, put_points);
	otlp_writer_end(&walk.writer);
	walk.encoded.n_too_large = walk.writer.n_too_large;
	*ret_encoded = walk.encoded;
	for (struct buf *buf = &walk.resource; buf <= &walk.numbers; buf++)
		buf_done(buf);
	return walk.err ?: walk.writer.err;
}
