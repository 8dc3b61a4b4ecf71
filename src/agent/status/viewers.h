/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Those who watch (bpfpush top): each gets every collection over a socket, as long as it reads.
 * Nothing is done while there are none, and nothing waits for them: a viewer that has not read one
 * yet misses the next, and goes after many.
 *
 * A message has the header, then, as util/store.h writes them, how long the interval is in ns, the
 * number of the collection, the problems of the agent as text, and the batch of metric/copy.h.
 */

#include "util/cleanup.h"
#include "util/store.h"

#define VIEWERS_MAX   4
#define VIEWERS_MAGIC (UINT64_C(0x6270667076700000) + STORE_FORMAT)
#define VIEWERS_BYTES_MAX ((uint64_t)64 << 20) /* of a message */
/* collections that a viewer may miss one after the other, before it has to go */
#define VIEWERS_PATIENCE  30

struct viewers_header {
	uint64_t magic;
	uint64_t size; /* of the message, with the header */
};

struct agent;
struct viewers;

/* Listens. agent is borrowed. That there can be no socket is logged, and not an error. -ENOMEM. */
int viewers_new(struct agent *agent, struct viewers **ret_viewers);
void viewers_free(struct viewers *viewers);
/* A collection has been made. viewers may be NULL. */
void viewers_tell(struct viewers *viewers);

DEFINE_CLEANUP(struct viewers *, viewers_free);
