/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The buckets of a histogram as text, in the unit in which its lines are sent. */

#include "metric/metric.h"

struct bucket_text {
	char bound[32];	 /* the upper bound; "inf" for the last bucket */
	char middle[32]; /* the value that stands for all values in the bucket */
};

/*
 * One for each bucket, for the caller to free. per_second: units in a second; 1 for everything
 * except times. dot: written instead of the decimal point of a bound. NULL: no memory.
 */
struct bucket_text *bucket_texts_new(const struct metric *metric, double per_second, char dot);
