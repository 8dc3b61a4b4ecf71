/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Several bodies as one that says the same in fewer points: one for each series. Nothing that a
 * receiver adds up is lost, only when it happened. Pure.
 *
 * Deltas are added, and begin where the first of them did. Of totals with the same start, and of
 * gauges, the newest stays. A point of 0 at a series' start and a last point without a value stay
 * as well. Histograms whose buckets differ (another configuration) stay as they are.
 */

#include "export/otlp/body.h"
#include "export/queue.h"

/*
 * items: the oldest first; their bodies may be compressed. Puts the points into the writer and ends
 * it. -EBADMSG: one of them is not a body; -ENOMEM. Then nothing has been put.
 */
int otlp_merge(struct queue_item *const *items, size_t n, struct otlp_writer *writer);
/*
 * What the deltas of a request count (numbers, and values in histograms), as far as there is memory
 * to read it.
 */
uint64_t otlp_sum_values(const struct queue_item *item);
