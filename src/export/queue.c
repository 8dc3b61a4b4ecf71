/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list, with two ways to use it. OTLP and datagrams send one item at a time and know what became
 * of it: queue_begin() and queue_end(); `waiting` is the one that is next. Lines over TCP have no
 * answers. There the list has two parts: requests that were sent and are unconfirmed, and from
 * `waiting` on those that were not sent.
 */
#include "export/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "export/spool/spool.h"

void queue_init(struct queue *queue, size_t limit_items, struct queue_budget *budget)
{
	*queue = (struct queue){ .limit_items = limit_items, .limit_bytes = SIZE_MAX,
				 .budget = budget };
	TAILQ_INIT(&queue->items);
	if (budget)
		SLIST_INSERT_HEAD(&budget->queues, queue, link);
}

void queue_begin_window(struct queue *queue, uint64_t time_ns)
{
	queue->is_fresh = !queue->n_items;
	queue->time_ns = time_ns;
}

static size_t memory_bytes(const struct queue *queue)
{
	return queue->size_bytes - queue->spooled_bytes;
}

bool queue_is_near(const struct queue *queue, uint64_t more_bytes)
{
	const struct queue *other;
	uint64_t used_bytes = 0, most_bytes = 0;

	if (!queue->budget)
		return false;
	SLIST_FOREACH(other, &queue->budget->queues, link) {
		used_bytes += memory_bytes(other);
		most_bytes = memory_bytes(other) > most_bytes ? memory_bytes(other) : most_bytes;
	}
	return used_bytes + more_bytes > queue->budget->limit_bytes &&
	       memory_bytes(queue) == most_bytes;
}

static void mark_item(struct queue *queue, struct queue_item *item, uint8_t mark)
{
	if (item->place)
		spool_mark(queue->spool, item->place, mark);
	else if (item->mark)
		*item->mark = mark;
}

static void release_data(struct queue_item *item)
{
	struct queue_item *before = item;

	while (before->sharer != item)
		before = before->sharer;
	before->sharer = item->sharer;
	if (before == item)
		free(item->data);
	item->sharer = item;
	item->data = NULL;
}

/* Takes the item out and frees it; how many points it had. */
static size_t end_item(struct queue *queue, struct queue_item *item, enum points fate)
{
	size_t n_points = item->n_points;

	if (queue->waiting == item)
		queue->waiting = TAILQ_NEXT(item, link);
	TAILQ_REMOVE(&queue->items, item, link);
	queue->n_items--;
	queue->n_most = queue->n_items ? queue->n_most : 0;
	queue->n_held -= item->is_held;
	queue->size_bytes -= item->size;
	queue->spooled_bytes -= item->place ? item->size : 0;
	queue->n_points -= n_points;
	mark_item(queue, item, (uint8_t)fate);
	if (item->place)
		spool_replace(queue->spool, item->place, item->size);
	release_data(item);
	free(item);
	return n_points;
}

int queue_put(struct queue *queue, uint8_t *data, size_t size, size_t n_points)
{
	struct queue_item *item = calloc(1, sizeof(*item));
	uint8_t *less = NULL;

	if (!item) {
		free(data);
		return -ENOMEM;
	}
	if (data)
		less = realloc(data, size ?: 1);
	data = less ?: data;
	*item = (struct queue_item){ .data = data, .sharer = item, .size = size,
				     .n_points = n_points, .time_ns = queue->time_ns };
	TAILQ_INSERT_TAIL(&queue->items, item, link);
	if (!queue->waiting)
		queue->waiting = item;
	queue->n_items++;
	queue->n_most = queue->n_items > queue->n_most ? queue->n_items : queue->n_most;
	queue->size_bytes += size;
	queue->n_points += n_points;
	return 0;
}

int queue_share(struct queue *queue, struct queue_item *of)
{
	int err = queue_put(queue, NULL, of->size, of->n_points);
	struct queue_item *item;

	if (err)
		return err;
	item = TAILQ_LAST(&queue->items, queue_items);
	item->data = of->data;
	item->sharer = of->sharer;
	of->sharer = item;
	return 0;
}

bool queue_is_over(const struct queue *queue)
{
	return queue->size_bytes > queue->limit_bytes || queue->n_items > queue->limit_items ||
	       queue_is_short(queue);
}

size_t queue_trim(struct queue *queue)
{
	struct queue_item *item;
	size_t n_dropped = 0;

	while (!queue->is_fresh && queue_is_over(queue)) {
		item = TAILQ_FIRST(&queue->items);
		while (item &&
		       ((queue->is_begun && item == queue->waiting) ||
			(item->place && queue_is_short(queue))))
			item = TAILQ_NEXT(item, link);
		if (!item)
			break;
		n_dropped += end_item(queue, item, POINTS_QUEUE_FULL);
	}
	return n_dropped;
}

void queue_remove(struct queue *queue, struct queue_item *item)
{
	if (item->place)
		queue_unspool(queue, item);
	item->mark = NULL;
	end_item(queue, item, POINTS_PUSHED);
}

bool queue_take_back(struct queue *queue, uint64_t time_ns, size_t n_items)
{
	struct queue_item *item, *next;
	size_t n = 0;

	TAILQ_FOREACH(item, &queue->items, link)
		n += item->time_ns == time_ns && !item->is_doubtful &&
		     !(queue->is_begun && item == queue->waiting);
	if (n != n_items)
		return false;
	for (item = TAILQ_FIRST(&queue->items); item; item = next) {
		next = TAILQ_NEXT(item, link);
		if (item->time_ns == time_ns)
			queue_remove(queue, item);
	}
	return true;
}

static bool may_be_next(const struct queue_item *item)
{
	return !item->is_held && !item->aside_ns;
}

void queue_aim(struct queue *queue)
{
	struct queue_item *item;

	if (queue->is_begun)
		return;
	TAILQ_FOREACH(item, &queue->items, link)
		if (may_be_next(item))
			break;
	queue->waiting = item;
}

struct queue_item *queue_begin(struct queue *queue)
{
	if (queue->is_begun)
		return NULL;
	while (queue->waiting && !may_be_next(queue->waiting))
		queue->waiting = TAILQ_NEXT(queue->waiting, link);
	queue->is_begun = queue->waiting;
	if (queue->waiting)
		mark_item(queue, queue->waiting, QUEUE_SENT);
	return queue->waiting;
}

void queue_end(struct queue *queue, enum points fate)
{
	struct queue_item *item = queue->waiting;

	queue->is_begun = false;
	if (fate == POINTS_PUSHED) {
		mark_item(queue, item, queue_mark(queue, item));
		queue_unload(queue, item);
	} else {
		end_item(queue, item, fate);
	}
}

void queue_hold(struct queue *queue)
{
	queue->is_begun = false;
	queue_unload(queue, queue->waiting);
	queue->n_held += !queue->waiting->is_held;
	queue->waiting->is_held = true;
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
		item->place = 0;
		end_item(queue, item, POINTS_PUSHED);
	}
	if (queue->budget)
		SLIST_REMOVE(&queue->budget->queues, queue, queue, link);
	queue->budget = NULL;
}

int queue_load(struct queue *queue, struct queue_item *item)
{
	int err = item->data ? 0 : spool_read(queue->spool, item->place, item->size, &item->data);

	item->is_damaged |= err == -EBADMSG || err == -ENOENT || err == -ENOTSUP;
	return err;
}

void queue_unload(struct queue *queue, struct queue_item *item)
{
	if (item->place && !(queue->is_begun && item == queue->waiting))
		release_data(item);
}

void queue_spool(struct queue *queue, struct queue_item *item)
{
	item->place = item->next_place;
	item->mark = NULL;
	queue->spooled_bytes += item->size;
	queue_unload(queue, item);
}

void queue_unspool(struct queue *queue, struct queue_item *item)
{
	spool_replace(queue->spool, item->place, item->size);
	item->place = 0;
	queue->spooled_bytes -= item->size;
}

int queue_put_spooled(struct queue *queue, const struct queue_item *from)
{
	struct queue_item *item, *before;
	int err = queue_put(queue, NULL, from->size, from->n_points);

	if (err)
		return err;
	item = TAILQ_LAST(&queue->items, queue_items);
	item->time_ns = from->time_ns;
	item->is_doubtful = from->is_doubtful && !queue->slot_ns; /* totals do not mind */
	item->place = from->place;
	queue->spooled_bytes += item->size;
	before = TAILQ_PREV(item, queue_items, link);
	while (before && before->time_ns > item->time_ns)
		before = TAILQ_PREV(before, queue_items, link);
	TAILQ_REMOVE(&queue->items, item, link);
	if (before)
		TAILQ_INSERT_AFTER(&queue->items, before, item, link);
	else
		TAILQ_INSERT_HEAD(&queue->items, item, link);
	return 0;
}
