/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One point as a message of protobuf-c, without its attributes, which are appended to the packed
 * message.
 */

#include "export/otlp/form.h"
#include "metric/metric.h"
#include "otlp-metrics.pb-c.h"

/*
 * What a series has in a batch: its point, before it a 0 at its start if it is new, or a last point
 * without a value.
 */
enum otlp_form { OTLP_POINT, OTLP_ZERO, OTLP_ENDED };

/* What a metric's points have in common. */
struct otlp_points {
	enum otlp_histogram histogram;
	bool is_delta;
	uint64_t previous_ns, time_ns; /* of the batch */
	double bounds[HISTOGRAM_BUCKETS_MAX]; /* for OTLP_EXPLICIT */
};

/* Points into itself and into the series. */
struct otlp_point {
	union {
		ProtobufCMessage base;
		Otlp__NumberDataPoint number;
		Otlp__HistogramDataPoint histogram;
		Otlp__ExponentialHistogramDataPoint exponential;
	};
	Otlp__ExponentialHistogramDataPoint__Buckets positive;
	uint64_t counts[HISTOGRAM_BUCKETS_MAX]; /* of an explicit histogram */
};

void otlp_point_make(const struct otlp_points *points, const struct series *series,
		     enum otlp_form form, struct otlp_point *ret_point);
