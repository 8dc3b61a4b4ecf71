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

#include "util/cleanup.h"

struct queue_item {
	struct queue_item *next;
	uint8_t *data; /* owned */
	size_t size;
	size_t n_points;
	uint8_t *mark;		/* NULL, or set to 1 when the item leaves the queue; the caller's */
	unsigned int n_sent;	/* times; this and the next belong to the sender */
	uint64_t first_sent_ns; /* by the clock of the sender */
};

struct queue {
	struct queue_item *head, *tail;
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
/* is_done: the request is freed; if not, it stays for another attempt. */
void queue_end(struct queue *queue, bool is_done);
/* The waiting request was sent as a whole. */
void queue_step(struct queue *queue);
/* All requests are to be sent again, from the oldest on. */
void queue_rewind(struct queue *queue);
/* Frees the requests that were sent; the number of their points. */
size_t queue_confirm(struct queue *queue);
/* Nothing has become of what is left: marks stay. */
void queue_done(struct queue *queue);
