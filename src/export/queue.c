/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list, with two ways to use it. OTLP and datagrams send one item at a time and know what became of
 * it: queue_begin() and queue_end(); the head is always the one that waits. Lines over TCP have no
 * answers. There the list has two parts: requests that were sent and are unconfirmed, and from
 * `waiting` on those that were not sent.
 */
#include "export/queue.h"

#include <errno.h>

void queue_init(struct queue *queue, size_t limit_items, size_t limit_bytes)
{
	*queue = (struct queue){ .limit_items = limit_items, .limit_bytes = limit_bytes };
}

static void item_free(struct queue_item *item, enum points fate)
{
	if (item->mark)
		*item->mark = (uint8_t)fate;
	free(item->data);
	free(item);
}

/* Takes out the item after previous, or the head if previous is NULL. */
static struct queue_item *take(struct queue *queue, struct queue_item *previous)
{
	struct queue_item *item = previous ? previous->next : queue->head;

	if (previous)
		previous->next = item->next;
	else
		queue->head = item->next;
	if (queue->tail == item)
		queue->tail = previous;
	if (queue->waiting == item)
		queue->waiting = item->next;
	queue->n_items--;
	queue->size_bytes -= item->size;
	queue->n_points -= item->n_points;
	return item;
}

static bool is_over(const struct queue *queue)
{
	return queue->size_bytes > queue->limit_bytes || queue->n_items > queue->limit_items;
}

static bool is_held(const struct queue *queue, const struct queue_item *item)
{
	return queue->is_begun && item == queue->waiting;
}

/* Drops the oldest requests that may be dropped until both bounds are kept; how many points went. */
static size_t drop(struct queue *queue)
{
	struct queue_item *previous, *item;
	size_t n_points = 0;

	while (is_over(queue)) {
		previous = is_held(queue, queue->head) ? queue->head : NULL;
		if (previous && !previous->next)
			break;
		item = take(queue, previous);
		n_points += item->n_points;
		item_free(item, POINTS_QUEUE_FULL);
	}
	return n_points;
}

int queue_put(struct queue *queue, uint8_t *data, size_t size, size_t n_points, size_t *ret_dropped_points)
{
	struct queue_item *item = calloc(1, sizeof(*item));

	if (!item) {
		free(data);
		return -ENOMEM;
	}
	*item = (struct queue_item){ .data = data, .size = size, .n_points = n_points };
	if (queue->tail)
		queue->tail->next = item;
	else
		queue->head = item;
	queue->tail = item;
	if (!queue->waiting)
		queue->waiting = item;
	queue->n_items++;
	queue->size_bytes += size;
	queue->n_points += n_points;

	*ret_dropped_points = drop(queue);
	return 0;
}

struct queue_item *queue_begin(struct queue *queue)
{
	if (queue->is_begun || !queue->waiting)
		return NULL;
	queue->is_begun = true;
	return queue->waiting;
}

void queue_end(struct queue *queue, enum points fate)
{
	queue->is_begun = false;
	if (fate != POINTS_PUSHED)
		item_free(take(queue, NULL), fate);
}

void queue_step(struct queue *queue)
{
	queue->waiting = queue->waiting->next;
	queue->is_begun = false;
}

void queue_rewind(struct queue *queue)
{
	queue->waiting = queue->head;
	queue->is_begun = false;
}

size_t queue_confirm(struct queue *queue)
{
	size_t n_points = 0;

	while (queue->head != queue->waiting) {
		struct queue_item *item = take(queue, NULL);

		n_points += item->n_points;
		item_free(item, POINTS_DELIVERED);
	}
	return n_points;
}

void queue_done(struct queue *queue)
{
	while (queue->head) {
		queue->head->mark = NULL;
		item_free(take(queue, NULL), POINTS_PUSHED);
	}
	queue->is_begun = false;
}
