/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of protobuf is framed by its length, and OTLP nests four levels of them around a point. So a
 * body is written from its end to its beginning: what is inside is there already when its length is put
 * before it, and nothing is measured or moved twice. Metrics and series are walked backwards, which puts
 * them in the body in their own order.
 */
#include "export/otlp/encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/bounds.h"
#include "export/otlp/point.h"
#include "otlp-metrics.pb-c.h"

/* What is repeated or nested, by its number in what holds it: proto/otlp-metrics.proto. */
enum {
	FIELD_RESOURCE_METRICS = 1,
	FIELD_RESOURCE = 1,
	FIELD_SCOPE_METRICS = 2,
	FIELD_SCOPE = 1,
	FIELD_METRIC = 2,
	FIELD_DATA_POINT = 1,
};

#define FRAMES_BYTES (8 * OTLP_FRAME_BYTES) /* of all levels around a point, with room to spare */

struct writer {
	const struct otlp_encoding *encoding;
	const struct batch *batch;
	otlp_body_fn *body;
	void *user;
	struct otlp_point point;

	uint8_t *at;		   /* the body so far: from here to the end of the room */
	const struct metric *open; /* the metric being written, or NULL */
	uint8_t *metric_end, *scope_end;
	size_t n_points;
	int err; /* the first one */
	struct otlp_encoded encoded;

	struct buf resource, scope, header, trailer; /* encoded, around what is open */
	struct buf scratch;
};

static void prepend(struct writer *writer, const void *data, size_t size)
{
	if (!size)
		return;
	writer->at -= size;
	memcpy(writer->at, data, size);
}

/* Makes a message in field of all that was written before end was where at is now. */
static void prepend_frame(struct writer *writer, unsigned int field, const uint8_t *end)
{
	uint8_t frame[OTLP_FRAME_BYTES];

	prepend(writer, frame, otlp_put_frame(frame, field, (size_t)(end - writer->at)));
}

static void pack(struct buf *out, const ProtobufCMessage *message)
{
	uint8_t *end;

	buf_reset(out);
	end = buf_reserve(out, protobuf_c_message_get_packed_size(message));
	if (end)
		out->size = protobuf_c_message_pack(message, end);
}

static void pack_resource(struct writer *writer)
{
	struct buf attributes = BUF_INIT;
	uint8_t frame[OTLP_FRAME_BYTES];

	otlp_pack_attributes(&attributes, 1, writer->encoding->resource, writer->encoding->n_resource);
	buf_append(&writer->resource, frame, otlp_put_frame(frame, FIELD_RESOURCE, attributes.size));
	buf_append(&writer->resource, attributes.data, attributes.size);
	if (buf_error(&attributes))
		writer->resource.error = -ENOMEM;
	buf_done(&attributes);
}

static int pack_scope(struct writer *writer, const struct metric *metric)
{
	Otlp__InstrumentationScope scope = OTLP__INSTRUMENTATION_SCOPE__INIT;
	_cleanup_(freep) char *name = NULL;

	if (asprintf(&name, "bpfpush.%s", metric->scope) < 0)
		return -ENOMEM;
	scope.name = name;
	scope.version = (char *)writer->encoding->version;
	buf_reset(&writer->scope);
	otlp_pack_framed(&writer->scope, FIELD_SCOPE, &scope.base);
	return buf_error(&writer->scope);
}

/* What stands before the points of a metric and what stands behind them. */
static int pack_metric(struct writer *writer, const struct metric *metric)
{
	Otlp__AggregationTemporality temporality =
		writer->encoding->temporality == OTLP_DELTA ?
			OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_DELTA :
			OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE;
	Otlp__Metric header = OTLP__METRIC__INIT;
	Otlp__Sum sum = OTLP__SUM__INIT;
	Otlp__Histogram histogram = OTLP__HISTOGRAM__INIT; /* an exponential one ends in the same way */

	header.name = (char *)metric->name;
	header.description = (char *)metric->description;
	header.unit = (char *)metric->unit;
	pack(&writer->header, &header.base);
	sum.aggregation_temporality = histogram.aggregation_temporality = temporality;
	sum.is_monotonic = true;
	buf_reset(&writer->trailer);
	if (metric->kind == METRIC_SUM)
		pack(&writer->trailer, &sum.base);
	else if (metric->kind == METRIC_HISTOGRAM)
		pack(&writer->trailer, &histogram.base);
	return buf_error(&writer->header) ? buf_error(&writer->header) : buf_error(&writer->trailer);
}

static unsigned int metric_field(const struct writer *writer, const struct metric *metric)
{
	switch (metric->kind) {
	case METRIC_GAUGE:
		return 5;
	case METRIC_SUM:
		return 7;
	case METRIC_HISTOGRAM:
		return writer->encoding->histogram == OTLP_EXPONENTIAL ? 10 : 9;
	}
	return 0;
}

static void metric_close(struct writer *writer)
{
	if (!writer->open)
		return;
	prepend_frame(writer, metric_field(writer, writer->open), writer->metric_end);
	prepend(writer, writer->header.data, writer->header.size);
	prepend_frame(writer, FIELD_METRIC, writer->metric_end);
	writer->open = NULL;
}

static void scope_close(struct writer *writer)
{
	metric_close(writer);
	if (!writer->scope_end)
		return;
	prepend(writer, writer->scope.data, writer->scope.size);
	prepend_frame(writer, FIELD_SCOPE_METRICS, writer->scope_end);
	writer->scope_end = NULL;
}

static void note(struct writer *writer, int err)
{
	if (!writer->err)
		writer->err = err;
}

static void body_close(struct writer *writer)
{
	uint8_t *end = writer->encoding->room + writer->encoding->limit_bytes;
	size_t n_points = writer->n_points;

	if (!n_points)
		return;
	scope_close(writer);
	prepend(writer, writer->resource.data, writer->resource.size);
	prepend_frame(writer, FIELD_RESOURCE_METRICS, end);
	writer->n_points = 0;
	note(writer, writer->body(writer->user, writer->at, (size_t)(end - writer->at), n_points));
	writer->at = end;
}

/* Is there room for size bytes of a point and everything that will stand around it? */
static bool has_room(const struct writer *writer, size_t size)
{
	size_t around = writer->resource.size + writer->scope.size + writer->header.size +
			writer->trailer.size + FRAMES_BYTES;

	return (size_t)(writer->at - writer->encoding->room) >= size + around;
}

static void put_point(struct writer *writer, const struct metric *metric)
{
	uint8_t *end;

	if (!has_room(writer, writer->scratch.size))
		body_close(writer);
	if (!has_room(writer, writer->scratch.size)) {
		writer->encoded.n_too_large++;
		return;
	}
	if (!writer->scope_end)
		writer->scope_end = writer->at;
	if (!writer->open) {
		writer->open = metric;
		writer->metric_end = writer->at;
		prepend(writer, writer->trailer.data, writer->trailer.size);
	}
	end = writer->at;
	prepend(writer, writer->scratch.data, writer->scratch.size);
	prepend_frame(writer, FIELD_DATA_POINT, end);
	writer->n_points++;
}

static bool is_delta(const struct writer *writer, const struct metric *metric)
{
	return writer->encoding->temporality == OTLP_DELTA && metric->kind != METRIC_GAUGE;
}

static bool has_point(const struct writer *writer, const struct series *series)
{
	return series->is_present &&
	       (!is_delta(writer, series->metric) || series->delta.sum || series->delta.count);
}

static void put_series(struct writer *writer, struct series *series)
{
	const struct metric *metric = series->metric;
	bool has_deltas = is_delta(writer, metric);
	int err;

	writer->point.numbers = has_deltas ? &series->delta : &series->total;
	writer->point.start_ns = has_deltas ? writer->batch->previous_ns : series->start_ns;
	err = otlp_pack_point(&writer->scratch, &writer->point, series);
	if (err)
		writer->encoded.n_failed++;
	else
		put_point(writer, metric);
	note(writer, err);
}

/* What all points of a metric share; *ret_bounds, of an explicit histogram, is for free(). */
static int begin_metric(struct writer *writer, const struct metric *metric, double **ret_bounds)
{
	int err = pack_metric(writer, metric);

	if (err || metric->kind != METRIC_HISTOGRAM || writer->encoding->histogram != OTLP_EXPLICIT)
		return err;
	*ret_bounds = malloc(metric->layout.n_buckets * sizeof(**ret_bounds));
	if (!*ret_bounds)
		return -ENOMEM;
	for (uint32_t i = 0; i < metric->layout.n_buckets; i++)
		(*ret_bounds)[i] = bounds_upper(&metric->layout, i);
	return 0;
}

static void put_metric(struct writer *writer, const struct metric *metric, int err)
{
	_cleanup_(freep) double *bounds = NULL;

	if (!err)
		err = begin_metric(writer, metric, &bounds);
	note(writer, err);
	writer->point.bounds = bounds;
	for (size_t i = metric->n_series; i--;) {
		if (!has_point(writer, metric->series[i]))
			continue;
		writer->encoded.n_points++;
		if (err)
			writer->encoded.n_failed++;
		else
			put_series(writer, metric->series[i]);
	}
	metric_close(writer);
}

static void put_batch(struct writer *writer)
{
	const struct metric *last = NULL;
	int err = buf_error(&writer->resource);

	for (size_t i = writer->batch->n_metrics; i--;) {
		const struct metric *metric = writer->batch->metrics[i];

		if (!last || strcmp(last->scope, metric->scope)) {
			scope_close(writer);
			if (!err)
				err = pack_scope(writer, metric);
		}
		last = metric;
		put_metric(writer, metric, err);
	}
	body_close(writer);
}

int otlp_encode(const struct otlp_encoding *encoding, const struct batch *batch, otlp_body_fn *body,
		void *user, struct otlp_encoded *ret_encoded)
{
	struct writer writer = {
		.encoding = encoding,
		.batch = batch,
		.body = body,
		.user = user,
		.point = { .histogram = encoding->histogram, .time_ns = batch->time_ns },
		.at = encoding->room + encoding->limit_bytes,
	};

	pack_resource(&writer);
	put_batch(&writer);
	buf_done(&writer.resource);
	buf_done(&writer.scope);
	buf_done(&writer.header);
	buf_done(&writer.trailer);
	buf_done(&writer.scratch);
	*ret_encoded = writer.encoded;
	return writer.err;
}
