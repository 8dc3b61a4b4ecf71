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
	TAILQ_INIT(&queue->items);
}

/* Takes the item out and frees it; how many points it had. */
static size_t end_item(struct queue *queue, struct queue_item *item, enum points fate)
{
	size_t n_points = item->n_points;

	if (queue->waiting == item)
		queue->waiting = TAILQ_NEXT(item, link);
	TAILQ_REMOVE(&queue->items, item, link);
	queue->n_items--;
	queue->size_bytes -= item->size;
	queue->n_points -= n_points;
	if (item->mark)
		*item->mark = (uint8_t)fate;
	free(item->data);
	free(item);
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
	TAILQ_INSERT_TAIL(&queue->items, item, link);
	if (!queue->waiting)
		queue->waiting = item;
	queue->n_items++;
	queue->size_bytes += size;
	queue->n_points += n_points;
	*ret_dropped_points = 0;
	while (queue->size_bytes > queue->limit_bytes || queue->n_items > queue->limit_items) {
		item = TAILQ_FIRST(&queue->items);
		if (queue->is_begun && item == queue->waiting)
			item = TAILQ_NEXT(item, link);
		if (!item)
			break;
		*ret_dropped_points += end_item(queue, item, POINTS_QUEUE_FULL);
	}
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
		end_item(queue, TAILQ_FIRST(&queue->items), fate);
}

void queue_step(struct queue *queue)
{
	queue->waiting = TAILQ_NEXT(queue->waiting, link);
	queue->is_begun = false;
}

void queue_rewind(struct queue *queue)
{
	queue->waiting = TAILQ_FIRST(&queue->items);
	queue->is_begun = false;
}

size_t queue_confirm(struct queue *queue)
{
	size_t n_points = 0;

	while (TAILQ_FIRST(&queue->items) != queue->waiting)
		n_points += end_item(queue, TAILQ_FIRST(&queue->items), POINTS_DELIVERED);
	return n_points;
}

void queue_done(struct queue *queue)
{
	struct queue_item *item;

	while ((item = TAILQ_FIRST(&queue->items))) {
		item->mark = NULL;
		end_item(queue, item, POINTS_PUSHED);
	}
}
