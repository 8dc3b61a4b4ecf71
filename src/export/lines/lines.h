/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A batch as lines of StatsD or of Graphite's plaintext protocol, packed into datagrams or pieces
 * of a stream. NAME is the name in name.h, with its tags. What each kind of metric becomes:
 *
 *     sum        StatsD: NAME:n|c, with a whole n. Seconds are sent in time_unit, as the difference
 *                of two rounded totals, so that rounding loses nothing.
 *                Graphite: NAME.count d t, the growth since the time before t (a later push with
 *                the same time has the same lines, with higher counts); or NAME.total d t. d has
 *                all its decimals.
 *     gauge      StatsD: NAME:d|g. One below 0 is refused, since a sign there means "change by".
 *                Graphite: NAME d t.
 *     histogram  NAME.count, NAME.sum as for sums, and NAME.bucket with a tag upper=BOUND or a
 *                level BOUND, where each counts only what lies in its own bucket. Graphite's
 *                totals end in .total.
 *                Or one value for each bucket, NAME:d|ms|@r or NAME:d|d|@r, off by at most a third
 *                (at scale 0), with a sample rate r that gives the count of values back.
 *
 * Lines that are not taken do not pile up: the next push takes the newest window out of the queue,
 * if nothing of it has been sent, and counts from where that one did. So an outage costs resolution
 * and no counts. StatsD, whose lines have no time, does so whenever a whole window waits; Graphite
 * when the next push would fill three quarters of the queue.
 *
 * A counter that did not grow and a gauge that did not change have no lines, unless send_unchanged
 * is set. In Graphite every gauge has one, since graphs are drawn from its points.
 */

#include "export/lines/point.h"

/*
 * All batches have the same metrics. time_s: Unix time, for Graphite. Gauges that did not change
 * are sent again after a loss (exporter.n_losses). Returns the first error of memory or of put(),
 * which is already logged. The other points were sent, and the lost ones are counted.
 */
int lines_push(struct lines *lines, const struct batch *batch, uint64_t time_s);
/* It can be used again. */
void lines_done(struct lines *lines);
