/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Events that the kernel did not deliver to a program, next to those that it did, since the last
 * collection. How many it did is known only if the collector says which of its sums counts them, or
 * else while the kernel counts runs.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

struct loss {
	uint64_t missed;
	uint64_t events;
	bool is_known; /* events is */
};

/* missed / (events + missed); 0 if nothing was missed. */
static inline double loss_share(const struct loss *loss)
{
	return loss->missed ? (double)loss->missed / ((double)loss->events + (double)loss->missed) :
	       0;
}

/* "1.28 %", or "442 events" if the share is not known. */
void loss_append(const struct loss *loss, struct buf *out);
