/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One point as a message of protobuf-c, for encode.c. */

#include "export/otlp/encode.h"
#include "otlp-metrics.pb-c.h"

#define OTLP_FRAME_BYTES 11 /* of a tag below 16 and a length, at most */

/* The tag and length of a message of size bytes in field: how long they are; and to out, whose end they return. */
size_t otlp_frame_size(size_t size);
uint8_t *otlp_put_frame(uint8_t *out, unsigned int field, size_t size);

/* Attributes, each a framed KeyValue in field: how long they are; and to out. */
size_t otlp_attributes_size(const struct attribute *attributes, unsigned int n);
void otlp_put_attributes(uint8_t *out, unsigned int field, const struct attribute *attributes, unsigned int n);

/* What a metric's points have in common. */
struct otlp_points {
	enum otlp_histogram histogram;
	bool is_delta;
	uint64_t previous_ns, time_ns; /* of the batch */
	double *bounds;		       /* of the metric's layout, for OTLP_EXPLICIT; NULL: no memory */
};

/* Points into itself, and to the series and its cache. */
struct otlp_point {
	union {
		ProtobufCMessage base;
		Otlp__NumberDataPoint number;
		Otlp__HistogramDataPoint histogram;
		Otlp__ExponentialHistogramDataPoint exponential;
	};
	Otlp__ExponentialHistogramDataPoint__Buckets positive;
	ProtobufCMessageUnknownField attributes;
};

/* The attributes come from the series' cache, where they are put if they are not there. -ENOMEM. */
int otlp_point_make(const struct otlp_points *points, struct series *series, struct otlp_point *ret_point);
