/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of deltas that the receiver wants later, again and again, may be the only one. So the
 * receiver is asked to take an empty one. If it does, and still not this one, others go first, and
 * this one is tried with a push, once a minute at most. Otherwise the order stays: not every
 * receiver accepts older deltas after newer ones. Totals do not need this: newer ones take their
 * place.
 */
#include "export/otlp/aside.h"

#include "util/duration.h"

#define DEFERRED_MAX 5 /* then the receiver is asked */
#define ASIDE_NS  (60 * NS_PER_S)

void otlp_aside_release(struct otlp *otlp)
{
	struct queue *queue = &otlp->exporter->queue;
	uint64_t now_ns = timer_now_ns(otlp->retry.event);
	bool is_all = otlp->is_last && !queue->waiting;
	struct queue_item *item;

	TAILQ_FOREACH(item, &queue->items, link)
		if (item->aside_ns && (is_all || now_ns >= item->aside_ns + ASIDE_NS))
			item->aside_ns = 0;
	queue_aim(queue);
}

bool otlp_aside_was_put(const struct queue_item *item)
{
	return item->n_deferred > DEFERRED_MAX;
}

bool otlp_aside_put(struct otlp *otlp, struct queue_item *item)
{
	struct exporter *exporter = otlp->exporter;

	/* At the end, it is simply tried again. */
	if (!otlp->report.is_delta || otlp->is_last || ++item->n_deferred < DEFERRED_MAX)
		return false;
	if (item->n_deferred == DEFERRED_MAX)
		return true;
	item->aside_ns = timer_now_ns(otlp->retry.event);
	if (item->n_deferred == DEFERRED_MAX + 1)
		exporter_log(exporter, LOG_LEVEL_WARNING, LOG_ID_EXPORT_FAILING,
			     "the receiver accepts an empty request, but not one of %zu %ss: %.*s; it is "
			     "tried once a minute, and others go first", item->n_points,
			     exporter_item(exporter), exporter_problem_bytes(exporter),
			     exporter->stats.problem);
	return false;
}

static void on_empty_answer(void *user, const struct http_answer *http)
{
	struct otlp *otlp = user;
	struct otlp_answer answer;
	struct queue_item *item;

	exporter_asks(otlp->exporter, false);
	otlp->is_asking = false;
	otlp_answer_read(http, 0, &answer);
	TAILQ_FOREACH(item, &otlp->exporter->queue.items, link)
		if (answer.verdict != OTLP_ACCEPTED && !otlp_aside_was_put(item))
			item->n_deferred = 0;
	/* Without memory for the timer, the next push goes on. */
	otlp->is_waiting = timer_arm(&otlp->retry, 0) >= 0;
}

int otlp_aside_ask(struct otlp *otlp)
{
	/* nothing, as gzip has it */
	static const uint8_t zipped[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, [19] = 0 };
	size_t size = otlp->options->is_uncompressed ? 0 : sizeof(zipped);
	int err = otlp_post(otlp, zipped, size, on_empty_answer);

	otlp->is_asking = !err;
	return err;
}
