/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The requests of a queue, into its spool and out of it. */

#include "export/queue.h"
#include "export/spool/spool.h"

/*
 * Opens it, and puts what waits there into the queue by its time, without the data. Of all points
 * that it has found (POINTS_PUSHED), some have met a fate since the state was saved, or cannot be
 * read. -errno: not now, and nothing was done.
 */
int spool_open(struct spool *spool, struct queue *queue, uint64_t ret_points[N_POINTS]);
/*
 * Writes what is in the queue and not in the spool. -errno: the rest of it stays in memory.
 * -ESTALE: its files have been deleted.
 */
int spool_commit(struct spool *spool, struct queue *queue);
