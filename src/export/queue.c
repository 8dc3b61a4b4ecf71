/* SPDX-License-Identifier: Apache-2.0 */
#include "export/queue.h"

#include <errno.h>

void queue_init(struct queue *queue, size_t limit_items, size_t limit_bytes)
{
	*queue = (struct queue){ .limit_items = limit_items, .limit_bytes = limit_bytes };
}

static void item_free(struct queue_item *item)
{
	free(item->data);
	free(item);
}

/* Takes out the item behind previous, or the head where previous is NULL. */
static struct queue_item *take(struct queue *queue, struct queue_item *previous)
{
	struct queue_item *item = previous ? previous->next : queue->head;

	if (previous)
		previous->next = item->next;
	else
		queue->head = item->next;
	if (queue->tail == item)
		queue->tail = previous;
	queue->n_items--;
	queue->size_bytes -= item->size;
	queue->n_points -= item->n_points;
	return item;
}

static bool is_over(const struct queue *queue)
{
	return queue->size_bytes > queue->limit_bytes || queue->n_items > queue->limit_items;
}

int queue_put(struct queue *queue, uint8_t *data, size_t size, size_t n_points, size_t *ret_dropped_points)
{
	struct queue_item *item = calloc(1, sizeof(*item)), *first;
	size_t dropped = 0;

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
	queue->n_items++;
	queue->size_bytes += size;
	queue->n_points += n_points;

	while (is_over(queue)) {
		first = queue->is_busy ? queue->head : NULL;
		if (first && !first->next)
			break;
		first = take(queue, first);
		dropped += first->n_points;
		item_free(first);
	}
	*ret_dropped_points = dropped;
	return 0;
}

struct queue_item *queue_begin(struct queue *queue)
{
	if (queue->is_busy || !queue->head)
		return NULL;
	queue->is_busy = true;
	return queue->head;
}

void queue_end(struct queue *queue, bool is_done)
{
	queue->is_busy = false;
	if (is_done)
		item_free(take(queue, NULL));
}

void queue_done(struct queue *queue)
{
	while (queue->head)
		item_free(take(queue, NULL));
	queue->is_busy = false;
}
