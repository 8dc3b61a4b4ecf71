/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The buckets of a histogram as text, in the unit in which its lines are sent. */

#include "metric/metric.h"

#define BUCKET_BOUND_BYTES 24 /* of an upper bound, at most */

struct bucket_text {
	char upper[32];	 /* the upper bound; "inf" for the last bucket */
	char level[32];	 /* the same as a level of a path: "0_5" */
	char middle[32]; /* the value that stands for all values in the bucket */
};

/*
 * One for each bucket, for the caller to free. per_second: units in a second; 1 for everything
 * except times. NULL: no memory.
 */
struct bucket_text *bucket_texts_new(const struct metric *metric, double per_second);
