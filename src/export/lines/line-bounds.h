/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bounds of one histogram metric's buckets in a time unit, as text. */

#include "metric/metric.h"

#define LINE_BOUND_BYTES 24 /* of a bound's text, at most */

struct line_bounds {
	const struct metric *metric;
	uint32_t n;
	char (*text)[32];   /* of the upper bound; "inf" for the last */
	char (*level)[32];  /* the same as a level of a path: "0_5" */
	char (*middle)[32]; /* the value that stands for those in the bucket */
};

/* per_second: of the unit in which bounds of seconds are shown; 1 for all others. -ENOMEM. */
int line_bounds_init(struct line_bounds *bounds, const struct metric *metric, double per_second);
void line_bounds_done(struct line_bounds *bounds);
