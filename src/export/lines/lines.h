/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A batch as lines of StatsD or of Graphite's plaintext protocol, packed into datagrams or pieces of a stream.
 * What each kind of metric becomes (NAME is that of name.h, tags are with it):
 *
 *     sum        StatsD: NAME:n|c, n whole; of seconds, in the time unit, whose rest is carried on (n is the
 *                difference of two rounded totals, so that nothing is ever lost to rounding)
 *                Graphite: NAME.count d t, what has grown since the time before t (a later push of the same time
 *                has the same lines, with more); or NAME.total d t; d with all its decimals
 *     gauge      NAME:d|g; one below 0 is refused, since a sign there means "change by"; Graphite: NAME d t
 *     histogram  NAME.count, NAME.sum as of sums, and NAME.bucket, with a tag upper=BOUND or a level BOUND, each
 *                counting only what lies in its own bucket; Graphite's totals with a .total behind each
 *                or one value a bucket, NAME:d|ms|@r or NAME:d|d|@r, off by at most a third (at scale 0), with a
 *                sample rate r that gives the count of values back
 *
 * A counter that did not grow and a gauge that stayed as it was have no lines, unless asked for. (Of Graphite,
 * every gauge has one: its points are what a graph is drawn from.)
 */

#include "export/exporter.h"
#include "export/lines/name.h"
#include "export/lines/pack.h"

enum lines_histogram { LINES_COUNTERS,
		       LINES_DISTRIBUTION,
		       LINES_TIMER };

enum lines_unit { LINES_SECONDS,
		  LINES_MILLISECONDS,
		  LINES_MICROSECONDS,
		  LINES_NANOSECONDS };

struct lines_options {
	struct naming naming;
	enum lines_histogram histogram;
	enum lines_unit time_unit; /* what sums and histograms of seconds are in; Graphite: LINES_SECONDS */
	bool is_cumulative;	   /* Graphite only */
	bool sends_unchanged;
	struct pack pack; /* limit_bytes, is_stream, put and user */
};

struct lines;

/* options are copied, what they point to is borrowed, as is exporter, which counts the points. -ENOMEM. */
int lines_new(const struct lines_options *options, struct exporter *exporter, struct lines **ret_lines);
/*
 * time_s: Unix time, for Graphite. losses: a number that changes when what was sent before may not have arrived;
 * gauges are then sent again. The first error of memory or of put(): the rest went through all the same, and what
 * did not is counted.
 */
int lines_push(struct lines *lines, const struct batch *batch, uint64_t time_s, unsigned int losses);
/* Logs, once each, that points could not be sent as lines, that names were taken, and the error err of a push. */
void lines_complain(struct lines *lines, const char *exporter_name, int err);
struct lines *lines_free(struct lines *lines);

DEFINE_CLEANUP(struct lines *, lines_free);
