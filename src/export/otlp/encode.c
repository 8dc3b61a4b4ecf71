/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of protobuf is framed by its length, and OTLP nests four levels of messages around a point. So a
 * body is written from its end to its beginning: when the length of a message is put before it, all that is
 * inside is there already. Each point is packed where it stays; no byte is moved. Metrics and series are
 * walked backwards too, which puts them in the body in their own order.
 */
#include "export/otlp/encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/bounds.h"
#include "export/otlp/point.h"
#include "util/cleanup.h"

/* What is repeated or nested, by its number in what holds it: proto/otlp-metrics.proto. */
enum {
	FIELD_RESOURCE_METRICS = 1,
	FIELD_RESOURCE = 1,
	FIELD_ATTRIBUTES = 1,
	FIELD_SCOPE_METRICS = 2,
	FIELD_SCOPE = 1,
	FIELD_METRIC = 2,
	FIELD_DATA_POINT = 1,
};

#define SCOPE_BYTES 300 /* of "bpfpush." and the name of a collector, which is that of a file */

#define FRAMES_BYTES (8 * OTLP_FRAME_BYTES) /* of all levels around a point, with room to spare */

struct writer {
	const struct otlp_encoding *encoding;
	otlp_body_fn *body;
	void *user;
	struct otlp_encoded encoded;
	int err; /* the first one */

	uint8_t *at;			 /* the body so far: from here to the end of the room */
	uint8_t *scope_end, *metric_end; /* of those that are open; NULL: none is */
	size_t n_points;		 /* in the body */

	/* What the points at hand are in. */
	size_t resource_bytes; /* of its attributes */
	char scope_name[SCOPE_BYTES];
	Otlp__InstrumentationScope scope;
	Otlp__Metric header;		   /* without data */
	Otlp__Metric__DataCase data_field; /* of Gauge, Sum … in the metric */
	Otlp__Sum tail;			   /* what follows the points in it; the same numbers in all four */
	size_t around_bytes;		   /* all of this */
	struct otlp_points points;
};

static void note(struct writer *writer, int err)
{
	if (!writer->err)
		writer->err = err;
}

static uint8_t *room_end(const struct writer *writer)
{
	return writer->encoding->room + writer->encoding->limit_bytes;
}

static void prepend(struct writer *writer, const ProtobufCMessage *message, size_t size)
{
	writer->at -= size;
	protobuf_c_message_pack(message, writer->at);
}

/* Makes a message in field of what lies before end. */
static void prepend_frame(struct writer *writer, unsigned int field, const uint8_t *end)
{
	size_t size = (size_t)(end - writer->at);

	writer->at -= otlp_frame_size(size);
	otlp_put_frame(writer->at, field, size);
}

/* Ending what is open */

static void metric_close(struct writer *writer)
{
	if (!writer->metric_end)
		return;
	prepend_frame(writer, writer->data_field, writer->metric_end);
	prepend(writer, &writer->header.base, protobuf_c_message_get_packed_size(&writer->header.base));
	prepend_frame(writer, FIELD_METRIC, writer->metric_end);
	writer->metric_end = NULL;
}

static void scope_close(struct writer *writer)
{
	uint8_t *end;

	metric_close(writer);
	if (!writer->scope_end)
		return;
	end = writer->at;
	prepend(writer, &writer->scope.base, protobuf_c_message_get_packed_size(&writer->scope.base));
	prepend_frame(writer, FIELD_SCOPE, end);
	prepend_frame(writer, FIELD_SCOPE_METRICS, writer->scope_end);
	writer->scope_end = NULL;
}

static void body_close(struct writer *writer)
{
	const struct otlp_encoding *encoding = writer->encoding;
	uint8_t *end;

	if (!writer->n_points)
		return;
	scope_close(writer);
	end = writer->at;
	writer->at -= writer->resource_bytes;
	otlp_put_attributes(writer->at, FIELD_ATTRIBUTES, encoding->resource, encoding->n_resource);
	prepend_frame(writer, FIELD_RESOURCE, end);
	prepend_frame(writer, FIELD_RESOURCE_METRICS, room_end(writer));
	note(writer, writer->body(writer->user, writer->at, (size_t)(room_end(writer) - writer->at), writer->n_points));
	writer->n_points = 0;
	writer->at = room_end(writer);
}

/* Points */

static bool has_room(const struct writer *writer, size_t point_bytes)
{
	return (size_t)(writer->at - writer->encoding->room) >= point_bytes + writer->around_bytes;
}

static void put_point(struct writer *writer, const struct otlp_point *point)
{
	size_t size = protobuf_c_message_get_packed_size(&point->base);
	uint8_t *end;

	if (!has_room(writer, size))
		body_close(writer);
	if (!has_room(writer, size)) {
		writer->encoded.n_too_large++;
		return;
	}
	if (!writer->scope_end)
		writer->scope_end = writer->at;
	if (!writer->metric_end) {
		writer->metric_end = writer->at;
		prepend(writer, &writer->tail.base, protobuf_c_message_get_packed_size(&writer->tail.base));
	}
	end = writer->at;
	prepend(writer, &point->base, size);
	prepend_frame(writer, FIELD_DATA_POINT, end);
	writer->n_points++;
}

static void put_series(struct writer *writer, struct series *series)
{
	struct otlp_point point;
	int err;

	if (!series->is_present || (writer->points.is_delta && !series->delta.sum && !series->delta.count))
		return;
	writer->encoded.n_points++;
	err = otlp_point_make(&writer->points, series, &point);
	if (err)
		writer->encoded.n_failed++;
	else
		put_point(writer, &point);
	note(writer, err);
}

/* The walk */

static void metric_begin(struct writer *writer, const struct metric *metric)
{
	static const Otlp__Metric__DataCase fields[][2] = {
		[METRIC_GAUGE] = { OTLP__METRIC__DATA_GAUGE, OTLP__METRIC__DATA_GAUGE },
		[METRIC_SUM] = { OTLP__METRIC__DATA_SUM, OTLP__METRIC__DATA_SUM },
		[METRIC_HISTOGRAM] = { [OTLP_EXPLICIT] = OTLP__METRIC__DATA_HISTOGRAM,
				       [OTLP_EXPONENTIAL] = OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM },
	};
	static const Otlp__AggregationTemporality temporalities[] = {
		[OTLP_CUMULATIVE] = OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE,
		[OTLP_DELTA] = OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_DELTA,
	};
	const struct otlp_encoding *encoding = writer->encoding;

	otlp__metric__init(&writer->header);
	writer->header.name = (char *)metric->name;
	writer->header.description = (char *)metric->description;
	writer->header.unit = (char *)metric->unit;
	writer->data_field = fields[metric->kind][encoding->histogram];
	otlp__sum__init(&writer->tail);
	if (metric->kind != METRIC_GAUGE)
		writer->tail.aggregation_temporality = temporalities[encoding->temporality];
	writer->tail.is_monotonic = metric->kind == METRIC_SUM;
	writer->points.is_delta = encoding->temporality == OTLP_DELTA && metric->kind != METRIC_GAUGE;
	writer->around_bytes = FRAMES_BYTES + writer->resource_bytes +
			       protobuf_c_message_get_packed_size(&writer->scope.base) +
			       protobuf_c_message_get_packed_size(&writer->header.base) +
			       protobuf_c_message_get_packed_size(&writer->tail.base);
}

/* NULL where metric needs none, or without memory. */
static double *make_bounds(const struct writer *writer, const struct metric *metric)
{
	double *bounds;

	if (metric->kind != METRIC_HISTOGRAM || writer->encoding->histogram != OTLP_EXPLICIT)
		return NULL;
	bounds = malloc(metric->layout.n_buckets * sizeof(*bounds));
	for (uint32_t i = 0; bounds && i < metric->layout.n_buckets; i++)
		bounds[i] = bounds_upper(&metric->layout, i);
	return bounds;
}

static void put_metric(struct writer *writer, const struct metric *metric)
{
	_cleanup_(freep) double *bounds = make_bounds(writer, metric);

	metric_begin(writer, metric);
	writer->points.bounds = bounds;
	for (size_t i = metric->n_series; i--;)
		put_series(writer, metric->series[i]);
	metric_close(writer);
}

static void scope_begin(struct writer *writer, const struct metric *metric)
{
	scope_close(writer);
	snprintf(writer->scope_name, sizeof(writer->scope_name), "bpfpush.%s", metric->scope);
	otlp__instrumentation_scope__init(&writer->scope);
	writer->scope.name = writer->scope_name;
	writer->scope.version = (char *)writer->encoding->version;
}

int otlp_encode(const struct otlp_encoding *encoding, const struct batch *batch, otlp_body_fn *body,
		void *user, struct otlp_encoded *ret_encoded)
{
	struct writer writer = {
		.encoding = encoding,
		.body = body,
		.user = user,
		.resource_bytes = otlp_attributes_size(encoding->resource, encoding->n_resource),
		.points = { .histogram = encoding->histogram,
			    .previous_ns = batch->previous_ns,
			    .time_ns = batch->time_ns },
	};
	const char *scope = NULL;

	writer.at = room_end(&writer);
	for (size_t i = batch->n_metrics; i--;) {
		const struct metric *metric = batch->metrics[i];

		if (!scope || strcmp(scope, metric->scope))
			scope_begin(&writer, metric);
		scope = metric->scope;
		put_metric(&writer, metric);
	}
	body_close(&writer);
	*ret_encoded = writer.encoded;
	return writer.err;
}
