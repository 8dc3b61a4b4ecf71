/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What collectors know of their objects: for each map that is exported its rows, and how far the
 * kernel had counted runs of programs. A later process counts on from there.
 */

#include "collector/collector.h"
#include "metric/state.h"

struct kept;

/* After a collection. */
void collectors_save(struct collector *const *items, size_t n, struct store *out);
/*
 * After the start, before the first reading. Objects that are not adopted go on with their past, if
 * that is in kept. Maps of another shape begin again. -ENOMEM, -EINVAL.
 */
int collectors_restore(struct collector *const *items, size_t n, struct kept *kept,
		       struct stored *in, const struct restored *restored);
