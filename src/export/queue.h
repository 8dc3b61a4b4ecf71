/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests that wait to be sent, oldest first, bounded in bytes and in number. When a bound is passed,
 * the oldest request is dropped, since the newest numbers are the most useful. The request that is
 * being sent is never dropped. The caller learns how many points were lost.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "util/cleanup.h"

/*
 * The fates of points. An exporter counts each point that it takes on from a batch as pushed, and
 * counts it again when its fate is known. Until then the point waits. So between any two calls
 *     pushed = delivered + rejected + all that were dropped + waiting
 */
enum points {
	POINTS_PUSHED,
	POINTS_DELIVERED,	   /* taken by the receiver */
	POINTS_REJECTED,	   /* refused by the receiver for good, also as a part of a request */
	POINTS_QUEUE_FULL,	   /* dropped: others needed the room */
	POINTS_TOO_LARGE,	   /* dropped: one point alone is larger than a request or datagram */
	POINTS_NOT_SENT,	   /* dropped: not encoded, not written, or tried for too long */
	POINTS_CONNECTION_REFUSED, /* dropped: the kernel reports that nothing receives datagrams there */
	POINTS_UNSUPPORTED,	   /* dropped: the format cannot express them */
	N_POINTS
};

struct queue_item {
	TAILQ_ENTRY(queue_item) link;
	uint8_t *data; /* owned */
	size_t size;
	size_t n_points;
	uint8_t *mark;		/* NULL, or set to what became of the item when it leaves the queue; the caller's */
	unsigned int n_sent;	/* times; this and the next belong to the sender */
	uint64_t first_sent_ns; /* by the clock of the sender */
};

struct queue {
	TAILQ_HEAD(queue_items, queue_item) items;
	/*
	 * For a sender that keeps requests until they are confirmed: the first request that was not
	 * sent; NULL: none. queue_step() moves it on and queue_rewind() back; queue_confirm() ends
	 * the requests before it.
	 */
	struct queue_item *waiting;
	bool is_begun; /* waiting is being sent, or a part of it was: it is not dropped */
	size_t n_items, size_bytes;
	size_t n_points; /* in all items */
	size_t limit_items, limit_bytes;
};

void queue_init(struct queue *queue, size_t limit_items, size_t limit_bytes);
/*
 * Takes data over, also on failure. *ret_dropped_points: how many points were in requests that had to
 * go, which may be this one. -ENOMEM.
 */
int queue_put(struct queue *queue, uint8_t *data, size_t size, size_t n_points,
	      size_t *ret_dropped_points);
/* Marks the oldest request as being sent; the queue still owns it. NULL: empty or busy. */
struct queue_item *queue_begin(struct queue *queue);
/* The request is freed, unless fate is POINTS_PUSHED: then it stays for another attempt. */
void queue_end(struct queue *queue, enum points fate);
/* The waiting request was sent as a whole. */
void queue_step(struct queue *queue);
/* All requests are to be sent again, from the oldest on. */
void queue_rewind(struct queue *queue);
/* Frees the requests that were sent; the number of their points. */
size_t queue_confirm(struct queue *queue);
/* Nothing has become of what is left: marks stay. */
void queue_done(struct queue *queue);
