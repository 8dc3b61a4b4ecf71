/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/add.h"

#include <errno.h>
#include <stdlib.h>

#include "otlp-metrics.pb-c.h"

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

int otlp_add(unsigned int data_field, struct bytes older_bytes, struct bytes *numbers,
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
