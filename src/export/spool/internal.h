/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of the spool. */

#include "export/spool/spool.h"

/* The segment of a place, or NULL. */
struct segment *spool_segment(struct spool *spool, uint64_t place);
/* A new one becomes the tail. -errno */
int spool_begin_segment(struct spool *spool, uint32_t number);

static inline struct segment *spool_tail(struct spool *spool)
{
	return &spool->segments[spool->n_segments - 1];
}
