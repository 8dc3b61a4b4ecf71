/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A batch as bytes, and a copy of it in another process, which follows it from collection to
 * collection. The reader takes any bytes, and at most BATCH_COPY_BYTES of memory for series: beyond
 * that, numbers go to overflow series.
 *
 * The bytes may follow others in the same store: the reader is given all of them, and where it
 * begins.
 */

#include "metric/metric.h"
#include "util/store.h"

#define BATCH_COPY_BYTES ((uint64_t)128 << 20)

/* Appends all present series, with their totals and deltas. */
void batch_write(const struct batch *batch, struct store *out);

struct batch_copy;

/* NULL: no memory. */
struct batch_copy *batch_copy_new(void);
struct batch_copy *batch_copy_free(struct batch_copy *copy);
/*
 * The next collection, at in->at; all: the whole store. 0; -EINVAL: it is none; -ESTALE: its
 * metrics are not those of the first one; -ENOMEM. After an error the copy is of no use any more.
 */
int batch_copy_read(struct batch_copy *copy, const struct stored *all, struct stored *in);
/* Its metrics are always the same; all else is valid until the next is read. */
const struct batch *batch_copy_batch(const struct batch_copy *copy);
