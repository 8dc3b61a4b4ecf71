/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was counted as one page of HTML that needs nothing else: no network, no other file, and
 * JavaScript only to sort and filter. Each number stands as text, and in full in the attribute
 * data-n of its cell.
 */

#include "view/grid.h"
#include "view/heat.h"

#define REPORT_OWN "self" /* the scope of the agent's own metrics: what counting costs and loses */

/* What it points to is borrowed. */
struct report {
	struct grid facts; /* about the run: names and values; the first value is in the heading */
	const struct batch *batch;  /* of the whole run: its deltas are the totals */
	/* one for each metric of the batch; NULL: it is not a histogram */
	struct heat *const *heats;
	struct grid missing;	    /* what was not counted, and why */
};

/* -ENOMEM: out is not complete. */
int report_write(const struct report *report, struct buf *out);
