/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The point of one series as lines; for lines.c, which says what they are. */

#include "export/lines/line-name.h"
#include "export/lines/lines.h"

/* How the numbers of a metric are shown: raw * multiplier / divisor. */
struct line_scale {
	uint64_t multiplier, divisor;
	const char *suffix; /* of the metric's name */
};

/* What is the same for all series of a metric. */
struct line_metric {
	struct line_scale scale;
	const struct line_bounds *bounds; /* of a histogram */
	struct line_kind kind;
};

/* Where a name's base has what. */
enum { BASE_SUM,
       BASE_COUNT,
       BASE_BUCKETS };

struct line_writer {
	const struct lines_options *options;
	const char *histogram_ending; /* of struct line_names */
	struct pack *pack;
	unsigned int losses;
	uint64_t time_s;
	char time[24]; /* of Graphite's lines: " 1700000000" */
	size_t time_size;
	/* Of the point at hand; the caller's to set to 0 before it. */
	int failure; /* of a line: 0 or -errno */
	unsigned int n_lines;
};

/* False: the format has no words for a part of it. What became of the rest is in the writer. */
bool line_render(struct line_writer *writer, const struct line_metric *metric, const struct series *series,
		 struct line_name *name);
