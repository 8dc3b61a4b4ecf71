/* SPDX-License-Identifier: Apache-2.0 */
#include "export/backlog.h"

#include <errno.h>
#include <stdlib.h>

/* Points that are read before a push, or at the end: it may not take long. */
#define POINTS_AT_ONCE 500000

static bool can_merge(const struct queue *queue, const struct queue_item *item)
{
	return !item->is_doubtful && !item->is_damaged && !item->aside_ns &&
	       !(queue->is_begun && item == queue->waiting) &&
	       !(item->place && (queue_is_short(queue) || queue->spool->error));
}

/* Does the window of this one take the item up? */
static bool is_taken_up(const struct queue *queue, const struct queue_item *item,
			const struct queue_item *by)
{
	bool is_newest = by == TAILQ_LAST(&queue->items, queue_items);

	return (item->is_held && is_newest) || item->time_ns == by->time_ns ||
	       (queue->slot_ns && item->time_ns / queue->slot_ns == by->time_ns / queue->slot_ns);
}

/*
 * Chooses items; how many, or 0 if they are of one window. by: those that its window takes up;
 * NULL: n_windows, the oldest.
 */
static size_t choose_items(struct queue *queue, const struct queue_item *by,
			   unsigned int n_windows)
{
	unsigned int n_seen = 0;
	uint64_t last_ns = 0;
	struct queue_item *item;
	size_t n = 0;

	TAILQ_FOREACH(item, &queue->items, link) {
		bool is_new = can_merge(queue, item) && (!n_seen || item->time_ns != last_ns);

		item->is_chosen = can_merge(queue, item) &&
				  (by ? is_taken_up(queue, item, by) :
				   n_seen + is_new <= n_windows);
		if (!item->is_chosen)
			continue;
		n_seen += is_new;
		last_ns = item->time_ns;
		n++;
	}
	return n_seen > 1 ? n : 0;
}

/* Those after last move up before at, in order. */
static void move_up(struct queue *queue, struct queue_item *last, struct queue_item *at)
{
	struct queue_item *next;

	for (struct queue_item *item = TAILQ_NEXT(last, link); item && at != item; item = next) {
		next = TAILQ_NEXT(item, link);
		TAILQ_REMOVE(&queue->items, item, link);
		TAILQ_INSERT_BEFORE(at, item, link);
	}
}

/* What it says, others say. */
static void take_out(struct exporter *exporter, struct queue_item *item)
{
	exporter_account(exporter, POINTS_PUSHED, -(uint64_t)item->n_points);
	queue_remove(&exporter->queue, item);
}

/*
 * The n chosen items become one window, with the time of the newest of them. -errno: they stay.
 * *ret_n_points: that were read.
 */
static int merge_chosen(struct exporter *exporter, size_t n, size_t *ret_n_points)
{
	struct queue *queue = &exporter->queue;
	struct queue_item **items = calloc(n, sizeof(*items)), *item,
		*last = TAILQ_LAST(&queue->items, queue_items);
	uint64_t time_ns = queue->time_ns;
	size_t i = 0;
	int err;

	if (!items)
		return -ENOMEM;
	TAILQ_FOREACH(item, &queue->items, link)
		if (item->is_chosen) {
			items[i++] = item;
			*ret_n_points += item->n_points;
			queue->time_ns = item->time_ns;
		}
	for (i = 0, err = 0; i < n && !err; i++)
		err = queue_load(queue, items[i]);
	err = err ?: exporter->ops->merge(exporter, items, n);
	if (!err)
		move_up(queue, last, TAILQ_NEXT(items[n - 1], link));
	else
		while ((item = TAILQ_LAST(&queue->items, queue_items)) != last)
			take_out(exporter, item);
	for (i = 0; i < n; i++)
		if (err)
			queue_unload(queue, items[i]);
		else
			take_out(exporter, items[i]);
	queue->time_ns = time_ns;
	free(items);
	return err;
}

/* Is the newest of the chosen windows older than it may get as one of its own? */
static bool is_aged(const struct queue *queue)
{
	const struct queue_item *last = TAILQ_LAST(&queue->items, queue_items), *item = last;

	while (!item->is_chosen)
		item = TAILQ_PREV(item, queue_items, link);
	return queue->age_ns && last->time_ns > item->time_ns + queue->age_ns;
}

void backlog_tidy(struct exporter *exporter, bool is_last)
{
	struct queue *queue = &exporter->queue;
	size_t n, n_points = 0;

	/* The oldest could not be merged while it was being sent. */
	for (int is_oldest = 0; is_oldest < 2; is_oldest++) {
		n = choose_items(queue, is_oldest ? TAILQ_FIRST(&queue->items) :
				 TAILQ_LAST(&queue->items, queue_items), 0);
		if (n)
			(void)merge_chosen(exporter, n, &n_points);
	}
	n_points = 0;
	while ((n = choose_items(queue, NULL, 2)) &&
	       (queue_is_over(queue) ||
		(n_points < POINTS_AT_ONCE && (is_last || is_aged(queue)))))
		if (merge_chosen(exporter, n, &n_points))
			break;
}

int backlog_cut(struct exporter *exporter, struct queue_item *item)
{
	struct queue_item *each;
	size_t n_points = 0;

	TAILQ_FOREACH(each, &exporter->queue.items, link)
		each->is_chosen = each == item;
	return merge_chosen(exporter, 1, &n_points);
}
