/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A receiver that answers 400 or 413 may refuse the size of a request, or one point of it. So the
 * request is sent in two parts, and each part that is refused in two parts again. What was too
 * large gets small enough like this, and the size is kept for later requests. One bad point is
 * found, and all others are delivered. The parts of deltas are saved before the first of them is
 * sent, or a process that is killed would leave the whole request, and repeat a part of it.
 *
 * That must not become a storm where everything is refused, or all points of a kind. So it pauses
 * when two points in turn have been refused, each alone, or when one request was refused as often
 * as it takes to find three bad points. Each pause is longer, until some requests in turn are
 * accepted as they are. A point of deltas that is given up is lost: so that happens only after it
 * was refused three times, and another part of its request was accepted.
 */
#include "export/otlp/cut.h"

#include <inttypes.h>
#include <stdio.h>

#include "export/backlog.h"
#include "util/duration.h"

/* A receiver that takes fewer in one request is not known; 413 may also be a mistake. */
#define LIMIT_LEAST 64
/* How often a point of deltas is refused alone until it is given up. */
#define REFUSED_MAX 3
/* Of whole requests, after which a pause is over. */
#define ACCEPTED_MAX 10

/* Of struct queue_item. PART_LAST: the second part, and the first was accepted. */
enum { PART_NONE, PART_FIRST, PART_SECOND, PART_LAST };

static size_t halve_points(size_t n)
{
	return (n + 1) / 2;
}

/* How often a request is refused until one point of it is found. */
static unsigned int count_refusals(size_t n_points)
{
	unsigned int n = 1;

	for (; n_points > 1; n_points = halve_points(n_points))
		n++;
	return n;
}

static void pause_cutting(struct otlp *otlp)
{
	uint64_t pause_ns = otlp->cut_pause_ns ? 2 * otlp->cut_pause_ns : 60 * NS_PER_S;

	otlp->cut_pause_ns = pause_ns < NS_PER_HOUR ? pause_ns : NS_PER_HOUR;
	otlp->cut_again_ns = timer_boottime_ns(otlp->retry.event) + otlp->cut_pause_ns;
}

/* Counts a refusal. May the request be cut, or a point that was refused alone be given up? */
static bool may_cut(struct otlp *otlp, const struct queue_item *item)
{
	if (timer_boottime_ns(otlp->retry.event) < otlp->cut_again_ns)
		return false;
	if (item->part == PART_NONE) {
		otlp->max_refused_in_turn = count_refusals(item->n_points) + 1;
		otlp->n_refused_in_turn = otlp->n_accepted_in_turn = 0;
		otlp->n_refusals = 3 * otlp->max_refused_in_turn;
		otlp->is_size_refused = otlp->has_accepted_part = false;
	}
	otlp->n_refusals -= otlp->n_refusals > 0;
	if (++otlp->n_refused_in_turn < otlp->max_refused_in_turn && otlp->n_refusals)
		return true;
	pause_cutting(otlp);
	return item->n_points == 1;
}

/* From now on, no request has more points. */
static void learn_limit(struct otlp *otlp, uint64_t n_points)
{
	if (n_points < LIMIT_LEAST)
		n_points = LIMIT_LEAST;
	if (otlp->limit_points && otlp->limit_points <= n_points)
		return;
	otlp->limit_points = n_points;
	otlp->learned_ns = timer_boottime_ns(otlp->retry.event);
}

uint64_t otlp_limit_points(struct otlp *otlp)
{
	uint64_t now_ns = timer_boottime_ns(otlp->retry.event);
	uint64_t set = otlp->options->encoding.limit_points;

	/* It may have been a mistake, or the receiver has changed. */
	if (otlp->learned_ns && now_ns - otlp->learned_ns >= NS_PER_HOUR &&
	    otlp->limit_points < UINT32_MAX) {
		otlp->limit_points *= 2;
		otlp->learned_ns = now_ns;
	}
	if (set && otlp->limit_points > set)
		otlp->limit_points = set;
	return otlp->limit_points;
}

/* So many points a part. -errno: it stays as it is. */
static int cut_item(struct otlp *otlp, struct queue_item *item, uint64_t n_points)
{
	int err;

	otlp->cut_points = n_points;
	err = backlog_cut(otlp->exporter, item);
	otlp->cut_points = 0;
	return err;
}

static int cut_in_two(struct otlp *otlp, struct queue_item *item)
{
	struct queue *queue = &otlp->exporter->queue;
	struct queue_item *before = TAILQ_PREV(item, queue_items, link),
		*after = TAILQ_NEXT(item, link), *first, *second;
	int err = cut_item(otlp, item, halve_points(item->n_points));

	if (err)
		return err;
	first = before ? TAILQ_NEXT(before, link) : TAILQ_FIRST(&queue->items);
	second = TAILQ_NEXT(first, link);
	first->part = PART_FIRST;
	if (second != after)
		second->part = PART_SECOND;
	if (otlp->report.is_delta)
		exporter_save_now(otlp->exporter);
	return 0;
}

static void tell_of_cut(struct otlp *otlp, const struct queue_item *item)
{
	uint64_t now_ns = timer_boottime_ns(otlp->retry.event);

	if (otlp->told_ns && now_ns - otlp->told_ns < NS_PER_HOUR)
		return;
	otlp->told_ns = now_ns;
	exporter_log(otlp->exporter, LOG_LEVEL_WARNING, NULL,
		     "the receiver refuses a request of %zu points (%s); it is sent in parts",
		     item->n_points, otlp->refusal);
}

static void drop_point(struct otlp *otlp, struct queue_item *item)
{
	char why[sizeof(otlp->refusal) + 100];

	snprintf(why, sizeof(why), "points are dropped, because the receiver refuses each of them alone: %s",
		 otlp->refusal);
	exporter_drop(otlp->exporter, POINTS_REJECTED, item->n_points, why);
}

/* The item that was begun is tried again, after the other parts of its request. */
static void put_last(struct queue *queue, struct queue_item *item)
{
	struct queue_item *last = item, *next = TAILQ_NEXT(item, link);

	for (; next && next->part != PART_NONE && next->time_ns == item->time_ns;
	     next = TAILQ_NEXT(next, link))
		last = next;
	queue_end(queue, POINTS_PUSHED);
	if (last == item)
		return;
	TAILQ_REMOVE(&queue->items, item, link);
	TAILQ_INSERT_AFTER(&queue->items, last, item, link);
}

/* False: it could not be cut. */
static bool send_in_parts(struct otlp *otlp, struct queue_item *item)
{
	tell_of_cut(otlp, item);
	queue_end(&otlp->exporter->queue, POINTS_PUSHED);
	if (!cut_in_two(otlp, item))
		return true;
	/* It would be sent again as it is, and be refused again. */
	(void)queue_begin(&otlp->exporter->queue);
	return false;
}

bool otlp_cut_refused(struct otlp *otlp, const struct http_answer *http,
		      const struct otlp_answer *answer)
{
	struct queue *queue = &otlp->exporter->queue;
	struct queue_item *item = queue->waiting;
	bool is_delta = otlp->report.is_delta, is_to_cut;

	if (answer->verdict != OTLP_REFUSED || (http->status != 400 && http->status != 413))
		return false;
	if (otlp->report.is_of_events)
		return false;
	/* It may be refused because the receiver has it. */
	if (item->is_doubtful)
		return false;
	snprintf(otlp->refusal, sizeof(otlp->refusal), "HTTP %d%s%s", http->status,
		 answer->message[0] ? ": " : "", answer->message);
	is_to_cut = may_cut(otlp, item);
	otlp->is_size_refused |= is_to_cut && http->status == 413;
	if (is_to_cut && item->n_points > 1)
		return send_in_parts(otlp, item);
	if (item->part == PART_NONE || item->n_points > 1 || !(is_to_cut || is_delta))
		return false;
	if (is_delta && ++item->n_refused < REFUSED_MAX) {
		put_last(queue, item);
		return true;
	}
	if (is_delta && !otlp->has_accepted_part)
		return false;
	drop_point(otlp, item);
	queue_end(queue, POINTS_REJECTED);
	return true;
}

void otlp_cut_waiting(struct otlp *otlp)
{
	struct queue *queue = &otlp->exporter->queue;
	struct queue_item *item = TAILQ_FIRST(&queue->items), *next;
	uint64_t limit = otlp->limit_points;

	for (; limit && item; item = next) {
		next = TAILQ_NEXT(item, link);
		if (item->n_points > limit && !item->is_doubtful &&
		    !(queue->is_begun && item == queue->waiting))
			(void)cut_item(otlp, item, limit);
	}
}

void otlp_cut_accepted(struct otlp *otlp, const struct queue_item *accepted)
{
	struct queue_item *item = TAILQ_NEXT(accepted, link);

	otlp->n_refused_in_turn = 0;
	otlp->has_accepted_part |= accepted->part != PART_NONE;
	if (accepted->part == PART_FIRST && item && item->part == PART_SECOND)
		item->part = PART_LAST;
	/* Both parts are good: if that was so before, it is the size. */
	if ((accepted->part == PART_LAST && otlp->n_good_twins++) ||
	    (accepted->part != PART_NONE && otlp->is_size_refused))
		learn_limit(otlp, accepted->n_points);
	if (accepted->part == PART_NONE)
		otlp->n_good_twins = 0;
	if (accepted->part == PART_NONE && ++otlp->n_accepted_in_turn >= ACCEPTED_MAX)
		otlp->cut_pause_ns = otlp->cut_again_ns = 0;
	if (otlp->limit_points < otlp->told_points || (!otlp->told_points && otlp->learned_ns)) {
		otlp->told_points = otlp->limit_points;
		exporter_log(otlp->exporter, LOG_LEVEL_WARNING, NULL,
			     "the receiver takes no larger requests: from now on, they have at most %" PRIu64
			     " points; set max_request_points, or max_request_size", otlp->limit_points);
	}
}
