/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests are sent one at a time. Each is tried until the receiver takes or refuses it.
 *
 * The receiver may have accepted a request that it did not answer. Totals do not mind. Deltas are
 * sent again byte for byte, as the protocol asks, and may count twice, or are given up and may be
 * missing (when_in_doubt). Both are counted and logged; nothing else counts twice or gets lost.
 */
#include <errno.h>
#include <string.h>

#include "export/otlp/aside.h"
#include "export/otlp/cut.h"
#include "export/otlp/merge.h"

/* Of a backlog, on average: each pause; and all of them, for a day that is sent in a minute. */
#define BACKLOG_PAUSE_NS (50 * NS_PER_MS)
#define BACKLOG_PAUSES_NS (40 * NS_PER_S)
#define LAST_WAIT_NS	 (500 * NS_PER_MS)

/* Are totals on their way that are to be merged with the newest? */
static bool is_older_begun(const struct queue *queue)
{
	const struct queue_item *last = TAILQ_LAST(&queue->items, queue_items),
		*begun = queue->is_begun ? queue->waiting : NULL;

	return queue->slot_ns && begun && begun->time_ns != last->time_ns &&
	       begun->time_ns / queue->slot_ns == last->time_ns / queue->slot_ns;
}

/* At the end there may be no time for both: the newest totals also say what older ones do. */
static void give_older_up(struct otlp *otlp)
{
	http_client_give_up(otlp->client);
	exporter_asks(otlp->exporter, false);
	queue_end(&otlp->exporter->queue, POINTS_PUSHED);
}

void otlp_send_last(struct otlp *otlp)
{
	timer_disarm(&otlp->retry);
	otlp->is_waiting = false;
	if (is_older_begun(&otlp->exporter->queue))
		(void)timer_arm(&otlp->retry, LAST_WAIT_NS);
}

void otlp_wake(void *user)
{
	struct otlp *otlp = user;

	otlp->is_waiting = false;
	if (otlp->is_last && is_older_begun(&otlp->exporter->queue))
		give_older_up(otlp);
	/*
	 * Newer totals may have come. Deltas are merged only between batches, when what waits is
	 * saved.
	 */
	if (!otlp->report.is_delta)
		exporter_tidy(otlp->exporter, otlp->is_last);
	otlp_send_next(otlp);
}

static void wait_and_retry(struct otlp *otlp, uint64_t delay_ns)
{
	/* Without memory for the timer, the next push tries again. */
	otlp->is_waiting = timer_arm(&otlp->retry, delay_ns) >= 0;
}

/* The receiver may have taken these deltas: what would count twice, or not at all. */
static void count_doubt(struct otlp *otlp, struct queue_item *item)
{
	struct exporter_stats *stats = &otlp->exporter->stats;

	item->is_doubtful = true;
	stats->doubtful_points += item->n_points;
	stats->doubtful_values += otlp_sum_values(item);
}

static void drop_request(struct otlp *otlp, enum points fate, const struct queue_item *item)
{
	exporter_drop(otlp->exporter, fate, item->n_points, fate == POINTS_IN_DOUBT ?
		      "points may be lost: the receiver may have them, and they are not sent again (when_in_doubt)" :
		      "points are lost: they were not delivered within retry_give_up");
}

/* What becomes of a request that was not taken. POINTS_PUSHED: it stays. */
static enum points fate_of(struct otlp *otlp, struct queue_item *item,
			   const struct otlp_answer *answer)
{
	uint64_t limit_ns = otlp->options->retry_give_up_ns;
	uint64_t waited_ns = timer_now_ns(otlp->retry.event) - item->first_sent_ns;
	bool is_expired = limit_ns && waited_ns >= limit_ns;
	bool is_over = answer->verdict == OTLP_REFUSED || is_expired;
	bool is_delta = otlp->report.is_delta;

	if (is_delta && answer->is_in_doubt && !item->is_doubtful)
		count_doubt(otlp, item);
	/* A refusal may be because the receiver has it. */
	if (item->is_doubtful && (is_over || otlp->options->when_in_doubt == OTLP_SKIP))
		return POINTS_IN_DOUBT;
	if (!is_over)
		return POINTS_PUSHED;
	if (!is_delta || otlp->report.is_of_events)
		return answer->verdict == OTLP_AGAIN ? POINTS_NOT_SENT : POINTS_REJECTED;
	queue_hold(&otlp->exporter->queue);
	return POINTS_PUSHED;
}

/* Counts the points of the request that was sent if their fate is known. */
static enum points account_answer(struct otlp *otlp, const struct otlp_answer *answer)
{
	struct exporter *exporter = otlp->exporter;
	struct queue_item *item = exporter->queue.waiting;
	enum points fate;

	if (answer->verdict != OTLP_ACCEPTED) {
		fate = fate_of(otlp, item, answer);
		if (fate == POINTS_REJECTED) /* which the report has said */
			exporter_account(exporter, fate, item->n_points);
		else if (fate != POINTS_PUSHED)
			drop_request(otlp, fate, item);
		return fate;
	}
	if (answer->n_rejected < item->n_points)
		otlp_cut_accepted(otlp, item);
	exporter_delivers(exporter);
	exporter_account(exporter, POINTS_DELIVERED, item->n_points - answer->n_rejected);
	exporter_account(exporter, POINTS_REJECTED, answer->n_rejected);
	return answer->n_rejected < item->n_points ? POINTS_DELIVERED : POINTS_REJECTED;
}

/*
 * A window is not sent right after an older one. After an outage, a receiver may answer all
 * machines at the same moment, and all have a newer window by then: they spread it over the
 * interval, and many windows over more than that, but not much more, since new ones come.
 */
static uint64_t backlog_pause_ns(const struct otlp *otlp)
{
	const struct queue *queue = &otlp->exporter->queue;
	uint64_t interval_ns = otlp->exporter->context->interval_ns;
	uint64_t sum_ns = 2 * BACKLOG_PAUSE_NS * queue->n_most;
	struct backoff pause = { .max_ns = interval_ns };

	if (sum_ns > 2 * BACKLOG_PAUSES_NS)
		sum_ns = 2 * BACKLOG_PAUSES_NS;
	if (sum_ns < 2 * interval_ns)
		sum_ns = 2 * interval_ns;
	pause.initial_ns = sum_ns / queue->n_most;
	return backoff_draw(&pause, 0);
}

static void end_request(struct otlp *otlp, const struct http_answer *http,
			const struct otlp_answer *answer, uint64_t delay_ns)
{
	struct queue_item *item = otlp->exporter->queue.waiting;

	if (answer->verdict != OTLP_AGAIN || http->failure != HTTP_OK ||
	    !otlp_aside_was_put(item))
		otlp_report_answer(&otlp->report, http, answer, delay_ns);
	if (answer->verdict == OTLP_AGAIN && http->failure == HTTP_OK)
		otlp->is_to_ask = otlp_aside_put(otlp, item);
	queue_end(&otlp->exporter->queue, account_answer(otlp, answer));
	/* An event that waits is not in the ring any more, so a later process needs the copy. */
	if (answer->verdict == OTLP_AGAIN && otlp->report.is_of_events)
		exporter_save_now(otlp->exporter);
}

/*
 * A kept connection ended as the request began: it goes again at once, and nothing has happened.
 * Deltas only if they have certainly not been counted.
 */
static bool goes_again(const struct otlp *otlp, const struct http_answer *http)
{
	return http->is_stale && (!otlp->report.is_delta || http->failure == HTTP_UNREACHED);
}

/* Is what comes next from another time? Of events, much may come at once without an outage. */
static bool is_backlog(const struct otlp *otlp, uint64_t window_ns)
{
	const struct queue_item *next = otlp->exporter->queue.waiting;

	return next && next->time_ns != window_ns && !otlp->is_last &&
	       (otlp->is_behind || !otlp->report.is_of_events);
}

static void on_answer(void *user, const struct http_answer *http)
{
	struct otlp *otlp = user;
	struct queue *queue = &otlp->exporter->queue;
	uint64_t delay_ns = 0, window_ns = queue->waiting->time_ns;
	struct otlp_answer answer;

	exporter_asks(otlp->exporter, false);
	if (goes_again(otlp, http)) {
		queue_end(queue, POINTS_PUSHED);
		otlp_send_next(otlp);
		return;
	}
	timer_disarm(&otlp->retry);
	otlp_answer_read(http, queue->waiting->n_points, &answer);
	/* How long this one is not wanted says nothing of the others. */
	if (otlp_aside_was_put(queue->waiting))
		answer.retry_after_ns = 0;
	if (answer.verdict == OTLP_AGAIN) {
		delay_ns = backoff_draw(&otlp->backoff, answer.retry_after_ns);
		http_client_move_on(otlp->client);
		otlp->is_behind = true;
	}
	if (!otlp_cut_refused(otlp, http, &answer))
		end_request(otlp, http, &answer, delay_ns);
	if (!otlp->report.is_delta)
		otlp_cut_waiting(otlp);
	queue_aim(queue);
	if (otlp->is_last)
		otlp_aside_release(otlp);
	if (answer.verdict == OTLP_AGAIN) {
		wait_and_retry(otlp, delay_ns);
		return;
	}
	otlp->backoff.limit_ns = 0;
	otlp->is_behind &= queue->waiting != NULL;
	if (is_backlog(otlp, window_ns))
		wait_and_retry(otlp, backlog_pause_ns(otlp));
	otlp_send_next(otlp);
}

/* The spool cannot be read, now or for good. */
static void give_up_or_wait(struct otlp *otlp, struct queue_item *item, int err)
{
	enum points fate = item->is_damaged ? POINTS_NOT_SENT : POINTS_PUSHED;

	if (item->is_damaged) {
		exporter_drop(otlp->exporter, fate, item->n_points, err == -EBADMSG ?
			      "points are lost: the spool cannot be read; \"damaged\" in its directory has what is left" :
			      "points are lost: a file of the spool is gone, or is not that of this user any more");
	} else {
		/* so that what is wrong with the receiver is said again */
		otlp->report.outcome = 0;
		exporter_fail(otlp->exporter, LOG_LEVEL_WARNING, LOG_ID_SPOOL,
			      "the spool cannot be read now: %s; what waits stays there", strerror(-err));
		wait_and_retry(otlp, backoff_draw(&otlp->backoff, 0));
	}
	queue_end(&otlp->exporter->queue, fate);
}

/*
 * NULL: there is none, or it is to wait. What a former process was sending when it was killed is in
 * doubt.
 */
static struct queue_item *next_item(struct otlp *otlp)
{
	struct queue *queue = &otlp->exporter->queue;
	struct queue_item *item = NULL;
	int err;

	while (!otlp->is_waiting && (item = queue_begin(queue))) {
		err = queue_load(queue, item);
		if (err) {
			give_up_or_wait(otlp, item, err);
			continue;
		}
		if (!item->is_doubtful || item->n_sent)
			break;
		count_doubt(otlp, item);
		if (otlp->options->when_in_doubt == OTLP_REPEAT)
			break;
		drop_request(otlp, POINTS_IN_DOUBT, item);
		queue_end(queue, POINTS_IN_DOUBT);
	}
	return otlp->is_waiting ? NULL : item;
}

void otlp_send_next(struct otlp *otlp)
{
	struct exporter_stats *stats = &otlp->exporter->stats;
	bool is_to_ask = otlp->is_to_ask && !otlp->is_waiting;
	struct queue_item *item;

	if (is_to_ask)
		otlp->is_to_ask = false;
	if (otlp->is_asking || (is_to_ask && !otlp_aside_ask(otlp)))
		return;
	item = next_item(otlp);
	if (!item)
		return;
	if (otlp_post(otlp, item->data, item->size, on_answer)) {
		queue_end(&otlp->exporter->queue, POINTS_PUSHED);
		wait_and_retry(otlp, backoff_draw(&otlp->backoff, 0));
		return;
	}
	if (!item->n_sent)
		item->first_sent_ns = timer_now_ns(otlp->retry.event);
	stats->requests++;
	stats->retries += item->n_sent++ != 0;
	stats->bytes_sent += item->size;
}
