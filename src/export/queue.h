/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests on their way, oldest first, bounded in bytes and in number. Over either bound the oldest one
 * goes, but never the one that is being sent: the newest numbers are the most useful, and what is lost
 * is counted in points.
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
	unsigned int n_sent;	/* times; this and the next are the sender's */
	uint64_t first_sent_ns; /* by the clock of the sender */
};

struct queue {
	struct queue_item *head, *tail;
	bool is_busy; /* the head is being sent */
	/*
	 * For a sender that keeps what it sent until that is confirmed: the first that was not sent, NULL: none. It
	 * goes on by queue_step() and back by queue_rewind(); what is before it ends by queue_confirm().
	 */
	struct queue_item *waiting;
	bool is_begun; /* a part of the waiting one was sent: it is not dropped either */
	size_t n_items, size_bytes;
	size_t n_points; /* in all items */
	size_t limit_items, limit_bytes;
};

void queue_init(struct queue *queue, size_t limit_items, size_t limit_bytes);
/*
 * Takes data over, also on failure. *ret_dropped_points counts those of requests that had to go for it
 * (its own, where it alone is over the limit). -ENOMEM.
 */
int queue_put(struct queue *queue, uint8_t *data, size_t size, size_t n_points,
	      size_t *ret_dropped_points);
/* Marks the oldest request as being sent and gives it, still owned by the queue; NULL: empty or busy. */
struct queue_item *queue_begin(struct queue *queue);
/* Ends that: the request is done with and freed, or stays where it is for another attempt. */
void queue_end(struct queue *queue, bool is_done);
/* The waiting one was sent as a whole. */
void queue_step(struct queue *queue);
/* All is to be sent again, from the oldest on. */
void queue_rewind(struct queue *queue);
/* What was sent is done with and freed; the number of its points. */
size_t queue_confirm(struct queue *queue);
void queue_done(struct queue *queue);
