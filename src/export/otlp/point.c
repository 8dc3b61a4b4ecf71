/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a series never change: they are encoded once, as a run of "tag length KeyValue", and
 * ride in each point as an unknown field, which protobuf-c copies verbatim.
 */
#include "export/otlp/point.h"

#include <errno.h>
#include <string.h>

#include "otlp-metrics.pb-c.h"

#define POINT_BYTES  96	      /* a point without attributes and buckets, at most */
#define BUCKET_BYTES (8 + 10) /* a bound and a count, at most */

size_t otlp_put_frame(uint8_t *out, unsigned int field, size_t size)
{
	size_t n = 0;

	out[n++] = (uint8_t)(field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
	for (; size >= 0x80; size >>= 7)
		out[n++] = (uint8_t)(size | 0x80);
	out[n++] = (uint8_t)size;
	return n;
}

void otlp_pack_framed(struct buf *out, unsigned int field, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *end = buf_reserve(out, OTLP_FRAME_BYTES + size);

	if (!end)
		return;
	out->size += otlp_put_frame(end, field, size);
	out->size += protobuf_c_message_pack(message, out->data + out->size);
}

void otlp_pack_attributes(struct buf *out, unsigned int field, const struct attribute *attributes,
			  unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct attribute *attribute = &attributes[i];
		Otlp__KeyValue item = OTLP__KEY_VALUE__INIT;
		Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;

		item.key = (char *)attribute->name;
		item.value = &value;
		switch (attribute->type) {
		case ATTRIBUTE_TEXT:
			value.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
			value.string_value = (char *)attribute->text;
			break;
		case ATTRIBUTE_NUMBER:
			value.value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
			value.int_value = attribute->number;
			break;
		case ATTRIBUTE_FLAG:
			value.value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
			value.bool_value = attribute->number != 0;
			break;
		}
		otlp_pack_framed(out, field, &item.base);
	}
}

const char otlp_cache_owner;

/*
 * The run of a series' attributes, for use as an unknown field. Two kinds of histograms number the field
 * differently and share the cache, so a histogram's cache holds both runs, of one size.
 */
static int attributes_run(struct series *series, bool is_second, ProtobufCMessageUnknownField *ret_field)
{
	static const unsigned int fields[][2] = {
		[METRIC_SUM] = { 7, 0 }, [METRIC_GAUGE] = { 7, 0 }, [METRIC_HISTOGRAM] = { 9, 1 }
	};
	const unsigned int *field = fields[series->metric->kind];
	struct series_cache *cache = series_cache(series, &otlp_cache_owner);
	size_t size;

	if (!cache) {
		_cleanup_(buf_done) struct buf run = BUF_INIT;

		otlp_pack_attributes(&run, field[0], series->attributes, series->n_attributes);
		if (field[1])
			otlp_pack_attributes(&run, field[1], series->attributes, series->n_attributes);
		if (!buf_error(&run))
			cache = series_cache_new(series, &otlp_cache_owner, run.data, run.size);
		if (!cache)
			return -ENOMEM;
	}
	size = field[1] ? cache->size / 2 : cache->size;
	/* The first tag is protobuf-c's to write. */
	*ret_field = (ProtobufCMessageUnknownField){
		.tag = field[is_second],
		.wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
		.len = size - 1,
		.data = cache->data + (is_second ? size : 0) + 1,
	};
	return 0;
}

static double in_unit(const struct metric *metric, uint64_t raw)
{
	return metric->divisor == 1 ? (double)raw : (double)raw / (double)metric->divisor;
}

static size_t pack_number(const struct otlp_point *point, const struct series *series,
			  ProtobufCMessageUnknownField *attributes, uint8_t *out)
{
	Otlp__NumberDataPoint message = OTLP__NUMBER_DATA_POINT__INIT;
	bool is_gauge = series->metric->kind == METRIC_GAUGE;
	uint64_t raw = point->numbers->sum;

	message.base.n_unknown_fields = series->n_attributes != 0;
	message.base.unknown_fields = attributes;
	if (series->metric->kind != METRIC_GAUGE)
		message.start_time_unix_nano = point->start_ns;
	message.time_unix_nano = point->time_ns;
	if (series->metric->divisor == 1 && (raw <= INT64_MAX || is_gauge)) {
		message.value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_INT;
		message.as_int = (int64_t)raw;
	} else {
		message.value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_DOUBLE;
		message.as_double = is_gauge ? (double)(int64_t)raw / (double)series->metric->divisor :
					       in_unit(series->metric, raw);
	}
	return protobuf_c_message_pack(&message.base, out);
}

static size_t pack_explicit(const struct otlp_point *point, const struct series *series,
			    ProtobufCMessageUnknownField *attributes, uint8_t *out)
{
	Otlp__HistogramDataPoint message = OTLP__HISTOGRAM_DATA_POINT__INIT;
	const struct histogram_layout *layout = &series->metric->layout;

	message.base.n_unknown_fields = series->n_attributes != 0;
	message.base.unknown_fields = attributes;
	message.start_time_unix_nano = point->start_ns;
	message.time_unix_nano = point->time_ns;
	message.count = point->numbers->count;
	message.sum_of_values_case = OTLP__HISTOGRAM_DATA_POINT__SUM_OF_VALUES_SUM;
	message.sum = in_unit(series->metric, point->numbers->sum);
	message.n_bucket_counts = layout->n_buckets;
	message.bucket_counts = point->numbers->bucket;
	message.n_explicit_bounds = layout->n_buckets - 1;
	message.explicit_bounds = point->bounds;
	return protobuf_c_message_pack(&message.base, out);
}

static size_t pack_exponential(const struct otlp_point *point, const struct series *series,
			       ProtobufCMessageUnknownField *attributes, uint8_t *out)
{
	Otlp__ExponentialHistogramDataPoint message = OTLP__EXPONENTIAL_HISTOGRAM_DATA_POINT__INIT;
	Otlp__ExponentialHistogramDataPoint__Buckets positive =
		OTLP__EXPONENTIAL_HISTOGRAM_DATA_POINT__BUCKETS__INIT;
	const struct histogram_layout *layout = &series->metric->layout;
	uint64_t *bucket = point->numbers->bucket;
	uint32_t first = 1, end = layout->n_buckets;

	message.base.n_unknown_fields = series->n_attributes != 0;
	message.base.unknown_fields = attributes;
	message.start_time_unix_nano = point->start_ns;
	message.time_unix_nano = point->time_ns;
	message.count = point->numbers->count;
	message.sum_of_values_case = OTLP__EXPONENTIAL_HISTOGRAM_DATA_POINT__SUM_OF_VALUES_SUM;
	message.sum = in_unit(series->metric, point->numbers->sum);
	message.scale = layout->scale;
	message.zero_count = bucket[0];
	while (first < end && !bucket[first])
		first++;
	while (first < end && !bucket[end - 1])
		end--;
	if (first < end) {
		positive.offset = layout->offset + (int32_t)first - 1;
		positive.n_bucket_counts = end - first;
		positive.bucket_counts = bucket + first;
		message.positive = &positive;
	}
	return protobuf_c_message_pack(&message.base, out);
}

int otlp_pack_point(struct buf *out, const struct otlp_point *point, struct series *series)
{
	const struct metric *metric = series->metric;
	bool is_histogram = metric->kind == METRIC_HISTOGRAM;
	bool is_exponential = is_histogram && point->histogram == OTLP_EXPONENTIAL;
	size_t n_buckets = is_histogram ? metric->layout.n_buckets : 0;
	ProtobufCMessageUnknownField attributes = { 0 };
	uint8_t *end;
	int err = 0;

	if (series->n_attributes)
		err = attributes_run(series, is_exponential, &attributes);
	if (err)
		return err;
	buf_reset(out);
	end = buf_reserve(out, POINT_BYTES + n_buckets * BUCKET_BYTES + attributes.len + 1);
	if (!end)
		return -ENOMEM;
	if (is_exponential)
		out->size = pack_exponential(point, series, &attributes, end);
	else if (is_histogram)
		out->size = pack_explicit(point, series, &attributes, end);
	else
		out->size = pack_number(point, series, &attributes, end);
	return 0;
}
