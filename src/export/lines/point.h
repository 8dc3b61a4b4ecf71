/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One point of a series as lines; lines.h says which.
 *
 * What has grown is counted from the totals before the window ("base"), which are kept with the
 * series. A window is one push, or several: Graphite replaces a point by a later one with the same
 * time, and lines that were not taken are made again (lines.h). Then the later lines hold
 * everything that was counted in the window.
 */

#include "export/exporter.h"
#include "export/lines/name.h"
#include "export/lines/pack.h"

enum lines_unit { LINES_SECONDS,
		  LINES_MILLISECONDS,
		  LINES_MICROSECONDS,
		  LINES_NANOSECONDS };

enum lines_histogram { LINES_COUNTERS,
		       LINES_DISTRIBUTION,
		       LINES_TIMER };

/*
 * Begins with what its user sets; what that points to is borrowed. The rest is all 0, for lines.c
 * and point.c.
 */
struct lines {
	struct naming naming;
	/* what sums and histograms of seconds are in; Graphite: LINES_SECONDS */
	enum lines_unit time_unit;
	enum lines_histogram histogram;
	int is_cumulative; /* Graphite only */
	bool sends_unchanged;
	struct pack pack;	   /* limit_bytes, put and user */
	struct exporter *exporter; /* counts the points */

	struct line_metric *metrics; /* one for each metric of a batch */
	size_t n_metrics;
	uint64_t time_s;   /* of the batch */
	uint64_t n_pushed; /* points, in this push */
	/* of the newest lines: its number, and its first push's time in the queue */
	uint64_t window, window_ns;
};

/* A bucket of a histogram as text, in the unit in which its lines are sent. */
struct bucket_text {
	char bound[32];	 /* the upper bound; "inf" for the last bucket */
	char middle[32]; /* the value that stands for all values in the bucket */
};

/* What all series of a metric share. */
struct line_metric {
	uint64_t multiplier, divisor; /* a number is shown as raw * multiplier / divisor */
	struct bucket_text *buckets;  /* of a histogram */
	struct name_kind name;
};

/* The state kept with a series; at first all 0 except name and n_base. */
struct point_state {
	struct line_name name;
	int64_t last_gauge;
	unsigned int losses;
	bool is_sent;
	uint64_t time_s; /* of Graphite's gauge */
	uint64_t window; /* of the lines sent last */
	/* when its lines ended that are not made again; 1 for StatsD. A later line begins there. */
	uint64_t ended_s;
	uint32_t n_base;
	uint64_t base[]; /* totals before that window */
};

/* Numbers that base must have room for. */
uint32_t point_base_size(const struct lines *lines, const struct metric *metric);
/*
 * False: the format cannot express a part of the point. What happened to the rest is in
 * lines->pack.
 */
bool point_write(struct lines *lines, const struct line_metric *kind, const struct series *series,
		 struct point_state *state);
/*
 * One for each bucket, for the caller to free. per_second: units in a second; 1 for everything
 * except times. dot: written instead of the decimal point of a bound. NULL: no memory.
 */
struct bucket_text *bucket_texts_new(const struct metric *metric, double per_second, char dot);
