/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The answer to a question: a batch whose series are those asked for, added up over what they are
 * not told apart by. Exporters, grids and heat maps take it like any other batch.
 *
 * A sum or a histogram begins with the totals of the series in the first batch, and goes on with
 * their growth, so a view that is made later shows the same totals; only what ended before it is
 * missing. A gauge is the sum of gauges.
 */

#include "view/question.h"

struct view;

/* The memory for the series of a view. More are counted together, in an overflow series. */
#define VIEW_BYTES ((uint64_t)512 << 20)

/*
 * question is borrowed. keeps_all: series stay after their last growth, to be shown at the end;
 * else they go, as those of any batch. -ENOMEM.
 */
int view_new(const struct question *question, bool keeps_all, struct view **ret_view);
struct view *view_free(struct view *view);
/*
 * One collection more. 0, or -ENOMEM: something is missing.
 * *batch is read only here; its metrics must live as long as the view.
 */
int view_add(struct view *view, const struct batch *batch);
/*
 * The answer after view_add(), valid until the next: time_ns is that of the last collection,
 * previous_ns that of the one before it, so the deltas are those of the last interval.
 */
const struct batch *view_batch(const struct view *view);
/*
 * Like view_batch(), but totals are those of the last interval, in which each series grew; a gauge
 * is as it is.
 */
const struct batch *view_interval(struct view *view);
/*
 * Like view_batch(), from the first collection on: deltas equal totals. For views that show a whole
 * run.
 */
const struct batch *view_whole(struct view *view);

DEFINE_CLEANUP(struct view *, view_free);
