/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Windows that wait for long become fewer: neighbours are merged, so that what a receiver adds up
 * is the same and only the resolution is less. So an outage of any length costs as much memory as
 * there are series.
 *
 *     refused, of deltas   merged with the newest window, and sent with it
 *     totals               one window stays for each queue.slot_ns; the oldest is sent first
 *     older than age_ns    the two oldest windows become one, again and again
 *     over a bound         the two oldest windows become one, again and again; if that is not
 *                          enough, the oldest requests are dropped
 *     at the end           all windows become one
 *
 * What is being sent stays as it is, and so does what the receiver may have already: it would count
 * twice.
 */

#include "export/exporter.h"

/*
 * After all requests of a batch have been put into the queue, and before queue_aim(), for an
 * exporter with merge(). Points that are not there any more, because others say the same, are not
 * counted as pushed any more.
 */
void backlog_tidy(struct exporter *exporter, bool is_last);
/*
 * Several items replace one that is not being sent, as merge() makes them of it alone. -errno: the
 * item stays.
 */
int backlog_cut(struct exporter *exporter, struct queue_item *item);
