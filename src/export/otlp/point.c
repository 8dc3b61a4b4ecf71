/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a series never change. They are encoded once, as a run of "tag length KeyValue", and
 * ride in each point as an unknown field, which protobuf-c copies verbatim.
 */
#include "export/otlp/point.h"

#include <errno.h>

size_t otlp_frame_size(size_t size)
{
	size_t n = 2;

	while (size >>= 7)
		n++;
	return n;
}

uint8_t *otlp_put_frame(uint8_t *out, unsigned int field, size_t size)
{
	*out++ = (uint8_t)(field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
	for (; size >= 0x80; size >>= 7)
		*out++ = (uint8_t)(size | 0x80);
	*out++ = (uint8_t)size;
	return out;
}

static void fill_key_value(const struct attribute *attribute, Otlp__KeyValue *item, Otlp__AnyValue *value)
{
	otlp__key_value__init(item);
	otlp__any_value__init(value);
	item->key = (char *)attribute->name;
	item->value = value;
	switch (attribute->type) {
	case ATTRIBUTE_TEXT:
		value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value->string_value = (char *)attribute->text;
		break;
	case ATTRIBUTE_NUMBER:
		value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		value->int_value = attribute->number;
		break;
	case ATTRIBUTE_FLAG:
		value->value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
		value->bool_value = attribute->number != 0;
		break;
	}
}

size_t otlp_attributes_size(const struct attribute *attributes, unsigned int n)
{
	size_t total = 0, size;
	Otlp__KeyValue item;
	Otlp__AnyValue value;

	for (unsigned int i = 0; i < n; i++) {
		fill_key_value(&attributes[i], &item, &value);
		size = protobuf_c_message_get_packed_size(&item.base);
		total += otlp_frame_size(size) + size;
	}
	return total;
}

void otlp_put_attributes(uint8_t *out, unsigned int field, const struct attribute *attributes, unsigned int n)
{
	Otlp__KeyValue item;
	Otlp__AnyValue value;

	for (unsigned int i = 0; i < n; i++) {
		fill_key_value(&attributes[i], &item, &value);
		out = otlp_put_frame(out, field, protobuf_c_message_get_packed_size(&item.base));
		out += protobuf_c_message_pack(&item.base, out);
	}
}

/* Adds the attributes to the message; field: their number in it. */
static int add_attributes(struct otlp_point *point, unsigned int field, struct series *series)
{
	static const char owners[16]; /* of the caches: one for each number */
	struct series_cache *cache;

	if (!series->n_attributes)
		return 0;
	cache = series_cache(series, &owners[field]);
	if (!cache) {
		cache = series_cache_new(series, &owners[field], NULL,
					 otlp_attributes_size(series->attributes, series->n_attributes));
		if (!cache)
			return -ENOMEM;
		otlp_put_attributes(cache->data, field, series->attributes, series->n_attributes);
	}
	/* The first tag is protobuf-c's to write. */
	point->attributes = (ProtobufCMessageUnknownField){ field, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
							    cache->size - 1, cache->data + 1 };
	point->base.n_unknown_fields = 1;
	point->base.unknown_fields = &point->attributes;
	return 0;
}

static double in_unit(const struct metric *metric, uint64_t raw)
{
	return metric->divisor == 1 ? (double)raw : (double)raw / (double)metric->divisor;
}

static void fill_number(Otlp__NumberDataPoint *point, const struct metric *metric, uint64_t raw)
{
	bool is_gauge = metric->kind == METRIC_GAUGE;

	otlp__number_data_point__init(point);
	if (metric->divisor == 1 && (raw <= INT64_MAX || is_gauge)) {
		point->value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_INT;
		point->as_int = (int64_t)raw;
	} else {
		point->value_case = OTLP__NUMBER_DATA_POINT__VALUE_AS_DOUBLE;
		point->as_double = is_gauge ? (double)(int64_t)raw / (double)metric->divisor : in_unit(metric, raw);
	}
}

static void fill_explicit(Otlp__HistogramDataPoint *point, const struct metric *metric, const struct numbers *numbers,
			  double *bounds)
{
	otlp__histogram_data_point__init(point);
	point->count = numbers->count;
	point->sum_of_values_case = OTLP__HISTOGRAM_DATA_POINT__SUM_OF_VALUES_SUM;
	point->sum = in_unit(metric, numbers->sum);
	point->n_bucket_counts = metric->layout.n_buckets;
	point->bucket_counts = numbers->bucket;
	point->n_explicit_bounds = metric->layout.n_buckets - 1;
	point->explicit_bounds = bounds;
}

static void fill_exponential(Otlp__ExponentialHistogramDataPoint *point,
			     Otlp__ExponentialHistogramDataPoint__Buckets *positive, const struct metric *metric,
			     const struct numbers *numbers)
{
	const struct histogram_layout *layout = &metric->layout;
	uint32_t first = 1, end = layout->n_buckets;

	otlp__exponential_histogram_data_point__init(point);
	point->count = numbers->count;
	point->sum_of_values_case = OTLP__EXPONENTIAL_HISTOGRAM_DATA_POINT__SUM_OF_VALUES_SUM;
	point->sum = in_unit(metric, numbers->sum);
	point->scale = layout->scale;
	point->zero_count = numbers->bucket[0];
	while (first < end && !numbers->bucket[first])
		first++;
	while (first < end && !numbers->bucket[end - 1])
		end--;
	if (first == end)
		return;
	otlp__exponential_histogram_data_point__buckets__init(positive);
	positive->offset = layout->offset + (int32_t)first - 1;
	positive->n_bucket_counts = end - first;
	positive->bucket_counts = numbers->bucket + first;
	point->positive = positive;
}

int otlp_point_make(const struct otlp_points *points, struct series *series, struct otlp_point *ret_point)
{
	const struct metric *metric = series->metric;
	const struct numbers *numbers = points->is_delta ? &series->delta : &series->total;
	uint64_t start_ns = points->is_delta ? points->previous_ns : series->start_ns;

	if (metric->kind != METRIC_HISTOGRAM) {
		fill_number(&ret_point->number, metric, numbers->sum);
		ret_point->number.start_time_unix_nano = metric->kind == METRIC_GAUGE ? 0 : start_ns;
		ret_point->number.time_unix_nano = points->time_ns;
		return add_attributes(ret_point, 7, series);
	}
	if (points->histogram == OTLP_EXPLICIT) {
		if (!points->bounds)
			return -ENOMEM;
		fill_explicit(&ret_point->histogram, metric, numbers, points->bounds);
		ret_point->histogram.start_time_unix_nano = start_ns;
		ret_point->histogram.time_unix_nano = points->time_ns;
		return add_attributes(ret_point, 9, series);
	}
	fill_exponential(&ret_point->exponential, &ret_point->positive, metric, numbers);
	ret_point->exponential.start_time_unix_nano = start_ns;
	ret_point->exponential.time_unix_nano = points->time_ns;
	return add_attributes(ret_point, 1, series);
}
