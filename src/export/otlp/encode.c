/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body is written once, from its beginning to its end. In protobuf the length of a message comes
 * before its content, and OTLP nests four levels of messages around a point. So each level begins with
 * four bytes for its length, which are filled in when the level ends. A short length then has more
 * bytes than it needs (5 is 85 80 80 00); the encoding allows this and parsers read it. The attributes
 * of a series never change: they are encoded once and copied after the numbers.
 */
#include "export/otlp/encode.h"

#include <errno.h>
#include <string.h>

#include "export/bounds.h"
#include "export/otlp/point.h"
#include "util/buf.h"

/* The numbers of fields in the messages around points: proto/otlp-metrics.proto. */
enum {
	FIELD_RESOURCE_METRICS = 1,
	FIELD_RESOURCE = 1,
	FIELD_ATTRIBUTES = 1,
	FIELD_SCOPE_METRICS = 2,
	FIELD_SCOPE = 1,
	FIELD_METRIC = 2,
	FIELD_DATA_POINT = 1,
};

#define LENGTH_BYTES 4	 /* of seven bits each: more than a body may have */
#define LEVELS	     7	 /* resource metrics, resource, scope metrics, scope, metric, its data, point */
#define SCOPE_BYTES  300 /* "bpfpush." and the name of a collector, which is that of a file */

/* Levels that stay open from one point to the next, from the outermost on. */
enum level { RESOURCE_METRICS,
	     SCOPE_METRICS,
	     METRIC,
	     DATA,
	     NESTED };

struct writer {
	const struct otlp_encoding *encoding;
	otlp_body_fn *body;
	void *user;
	struct otlp_encoded encoded;
	int err; /* the first one */

	uint8_t *at;			 /* the end of the body so far */
	uint8_t *begun[NESTED]; /* levels; NULL: not */
	size_t n_points;		 /* in the body */

	/* What the points at hand are in, written when the first of them comes. */
	struct buf resource; /* its attributes */
	char scope_name[SCOPE_BYTES];
	Otlp__InstrumentationScope scope;
	Otlp__Metric header;		   /* without data */
	Otlp__Metric__DataCase data_field; /* Gauge, Sum … in the metric */
	Otlp__Sum tail;			   /* what follows the points in any of these */
	size_t around_bytes;		   /* of all this */
	size_t most_bytes;		   /* of a point without attributes */
	struct otlp_points points;
};

/* Writing; there is room */

static uint8_t *begin(struct writer *writer, unsigned int field)
{
	*writer->at = (uint8_t)(field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
	writer->at += 1 + LENGTH_BYTES;
	return writer->at;
}

static void end(struct writer *writer, uint8_t *begun)
{
	size_t size = (size_t)(writer->at - begun);

	for (int i = 0; i < LENGTH_BYTES; i++)
		begun[i - LENGTH_BYTES] = (uint8_t)(size >> 7 * i & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0);
}

static void put(struct writer *writer, const ProtobufCMessage *message)
{
	writer->at += protobuf_c_message_pack(message, writer->at);
}

/* Levels */

static void begin_levels(struct writer *writer)
{
	uint8_t **begun = writer->begun, *inner;

	if (!begun[RESOURCE_METRICS]) {
		begun[RESOURCE_METRICS] = begin(writer, FIELD_RESOURCE_METRICS);
		inner = begin(writer, FIELD_RESOURCE);
		if (writer->resource.size) /* else data is NULL */
			writer->at = mempcpy(writer->at, writer->resource.data, writer->resource.size);
		end(writer, inner);
	}
	if (!begun[SCOPE_METRICS]) {
		begun[SCOPE_METRICS] = begin(writer, FIELD_SCOPE_METRICS);
		inner = begin(writer, FIELD_SCOPE);
		put(writer, &writer->scope.base);
		end(writer, inner);
	}
	if (!begun[METRIC]) {
		begun[METRIC] = begin(writer, FIELD_METRIC);
		put(writer, &writer->header.base);
		begun[DATA] = begin(writer, writer->data_field);
	}
}

/* This level and those in it. */
static void end_level(struct writer *writer, enum level outermost)
{
	if (writer->begun[DATA])
		put(writer, &writer->tail.base);
	for (enum level level = NESTED; level-- > outermost; writer->begun[level] = NULL)
		if (writer->begun[level])
			end(writer, writer->begun[level]);
}

static void end_body(struct writer *writer)
{
	uint8_t *room = writer->encoding->room;
	int err;

	if (!writer->begun[RESOURCE_METRICS])
		return;
	end_level(writer, RESOURCE_METRICS);
	err = writer->body(writer->user, room, (size_t)(writer->at - room), writer->n_points);
	writer->err = writer->err ?: err;
	writer->n_points = 0;
	writer->at = room;
}

/* Points */

static bool has_room(const struct writer *writer, const struct otlp_point *point, size_t attribute_bytes)
{
	size_t left = writer->encoding->limit_bytes - (size_t)(writer->at - writer->encoding->room);
	size_t around = writer->around_bytes + attribute_bytes;

	/* The exact size takes longer to find, and decides only at the end of a body. */
	return around + writer->most_bytes <= left ||
	       around + protobuf_c_message_get_packed_size(&point->base) <= left;
}

static int pack_point(struct writer *writer, struct series *series, enum otlp_form form)
{
	struct otlp_point point;
	unsigned int field = otlp_point_make(&writer->points, series, form, &point);
	const struct series_cache *attributes = otlp_attributes_of(series, field);
	uint8_t *begun;

	if (!attributes || buf_error(&writer->resource))
		return -ENOMEM;
	if (!has_room(writer, &point, attributes->size))
		end_body(writer);
	if (!has_room(writer, &point, attributes->size)) {
		writer->encoded.n_too_large++;
		return 0;
	}
	begin_levels(writer);
	begun = begin(writer, FIELD_DATA_POINT);
	put(writer, &point.base);
	writer->at = mempcpy(writer->at, attributes->data, attributes->size);
	end(writer, begun);
	writer->n_points++;
	return 0;
}

static void put_point(struct writer *writer, struct series *series, enum otlp_form form)
{
	int err = pack_point(writer, series, form);

	writer->encoded.n_points++;
	writer->encoded.n_failed += err != 0;
	writer->err = writer->err ?: err;
}

static void put_series(struct writer *writer, struct series *series)
{
	if (writer->points.is_delta) {
		if (series->delta.sum || series->delta.count)
			put_point(writer, series, OTLP_POINT);
		return;
	}
	/* A receiver sees growth between two points alone: one of 0 shows what the first one has grown by. */
	if (writer->encoding->has_zero_points && series->start_ns == writer->points.previous_ns &&
	    series->metric->kind != METRIC_GAUGE && (series->total.sum || series->total.count))
		put_point(writer, series, OTLP_ZERO);
	put_point(writer, series, OTLP_POINT);
}

/* The walk */

static void set_metric(struct writer *writer, const struct metric *metric)
{
	static const Otlp__Metric__DataCase fields[][2] = {
		[METRIC_GAUGE] = { OTLP__METRIC__DATA_GAUGE, OTLP__METRIC__DATA_GAUGE },
		[METRIC_SUM] = { OTLP__METRIC__DATA_SUM, OTLP__METRIC__DATA_SUM },
		[METRIC_HISTOGRAM] = { [OTLP_EXPLICIT] = OTLP__METRIC__DATA_HISTOGRAM,
				       [OTLP_EXPONENTIAL] = OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM },
	};
	const struct otlp_encoding *encoding = writer->encoding;

	otlp__metric__init(&writer->header);
	writer->header.name = (char *)metric->name;
	writer->header.description = (char *)metric->description;
	writer->header.unit = (char *)metric->unit;
	/* Explicit bounds are not those of an exponential histogram. */
	writer->points.histogram = metric->layout.bounds ? OTLP_EXPLICIT : encoding->histogram;
	writer->data_field = fields[metric->kind][writer->points.histogram];
	otlp__sum__init(&writer->tail);
	if (metric->kind != METRIC_GAUGE)
		writer->tail.aggregation_temporality =
			encoding->temporality == OTLP_DELTA ?
				OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_DELTA :
				OTLP__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE;
	writer->tail.is_monotonic = metric->kind == METRIC_SUM;
	writer->points.is_delta = encoding->temporality == OTLP_DELTA && metric->kind != METRIC_GAUGE;
	for (uint32_t i = 0; writer->data_field == OTLP__METRIC__DATA_HISTOGRAM && i < metric->layout.n_buckets; i++)
		writer->points.bounds[i] = bounds_upper(metric, i);
	writer->most_bytes = otlp_point_most_bytes(metric);
	writer->around_bytes = LEVELS * (1 + LENGTH_BYTES) + writer->resource.size +
			       protobuf_c_message_get_packed_size(&writer->scope.base) +
			       protobuf_c_message_get_packed_size(&writer->header.base) +
			       protobuf_c_message_get_packed_size(&writer->tail.base);
}

/*
 * Series that have ended come last: the Collector's exporter for Prometheus skips what follows such a
 * point in the metric.
 */
static void put_metric(struct writer *writer, const struct metric *metric)
{
	struct series *series;
	size_t n_present = 0;

	set_metric(writer, metric);
	metric_for_each_series(series, metric) {
		put_series(writer, series);
		n_present++;
	}
	for (size_t i = 0; n_present < metric->n_series && !writer->points.is_delta && i < metric->n_series; i++)
		if (metric->series[i]->is_ended)
			put_point(writer, metric->series[i], OTLP_ENDED);
	end_level(writer, METRIC);
}

int otlp_encode(const struct otlp_encoding *encoding, const struct batch *batch, otlp_body_fn *body,
		void *user, struct otlp_encoded *ret_encoded)
{
	struct writer writer = {
		.encoding = encoding,
		.body = body,
		.user = user,
		.at = encoding->room,
		.points = { .previous_ns = batch->previous_ns, .time_ns = batch->time_ns },
		.scope = OTLP__INSTRUMENTATION_SCOPE__INIT,
	};
	const char *scope = NULL;
	struct metric *metric;

	writer.scope.name = writer.scope_name;
	writer.scope.version = (char *)encoding->version;
	otlp_attributes_append(&writer.resource, FIELD_ATTRIBUTES, encoding->resource, encoding->n_resource);
	batch_for_each_metric(metric, batch) {
		if (!scope || strcmp(scope, metric->scope)) {
			end_level(&writer, SCOPE_METRICS);
			snprintf(writer.scope_name, sizeof(writer.scope_name), "bpfpush.%s", metric->scope);
		}
		scope = metric->scope;
		put_metric(&writer, metric);
	}
	end_body(&writer);
	buf_done(&writer.resource);
	*ret_encoded = writer.encoded;
	return writer.err;
}
