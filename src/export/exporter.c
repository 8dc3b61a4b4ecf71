/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of exporters, and the accounts that all of them keep in the same way. What an exporter
 * holds is never computed from its counts: it is asked of the queue or buffer itself, so that a point
 * that was forgotten or counted twice shows as a difference.
 */
#include "export/exporter.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "export/transport/timer.h"
#include "util/utf8.h"

/* Of each exporter. */
#define SAVED_BYTES_MAX ((size_t)4 << 20)
#define MESSAGE_BYTES 8192 /* a path of PATH_MAX and what is wrong with it */

extern const struct exporter_ops otlp_exporter, statsd_exporter, graphite_exporter, console_exporter, json_exporter,
	bpftrace_json_exporter;

const struct exporter_ops *const exporter_table[] = {
	&otlp_exporter,
	&statsd_exporter,
	&graphite_exporter,
	&console_exporter,
	&json_exporter,
	&bpftrace_json_exporter,
	NULL,
};

const char *const points_error_type[N_POINTS] = {
	[POINTS_REJECTED] = "rejected",
	[POINTS_QUEUE_FULL] = "queue_full",
	[POINTS_TOO_LARGE] = "too_large",
	[POINTS_NOT_SENT] = "not_sent",
	[POINTS_CONNECTION_REFUSED] = "connection_refused",
	[POINTS_UNSUPPORTED] = "unsupported",
};

const struct exporter_ops *exporter_find(const char *type)
{
	for (size_t i = 0; exporter_table[i]; i++)
		if (!strcmp(exporter_table[i]->type, type))
			return exporter_table[i];
	return NULL;
}

static int open_now(struct exporter *exporter)
{
	size_t size = exporter->ops->state_bytes;
	int err;

	exporter->state = size ? calloc(1, size) : NULL;
	err = size && !exporter->state ? -ENOMEM : exporter->ops->open(exporter, exporter->options);
	exporter->is_closed = err != 0;
	if (!err)
		return 0;
	if (!exporter->stats.is_failing)
		exporter_fail(exporter, LOG_LEVEL_ERROR, NULL, "cannot be set up: %s", strerror(-err));
	if (size)
		free(exporter->state);
	return err;
}

int exporter_open(const char *name, const struct exporter_ops *ops, const void *options,
		  const struct exporter_context *context, struct exporter **ret_exporter)
{
	struct exporter *exporter = calloc(1, sizeof(*exporter));
	int err;

	if (!exporter)
		return -ENOMEM;
	*exporter = (struct exporter){ .name = name, .ops = ops, .options = options, .context = context };
	err = open_now(exporter);
	if (err == -ENOMEM || (err && !context->opens_later)) {
		exporter_free(exporter);
		return err;
	}
	*ret_exporter = exporter;
	return 0;
}

/* Another attempt to open it, without which the batch is lost. */
static int open_again(struct exporter *exporter, const struct batch *batch)
{
	int err = open_now(exporter);
	struct metric *metric;

	if (!err) {
		exporter_works(exporter, "is open now");
		return 0;
	}
	batch_for_each_metric(metric, batch) {
		exporter_account(exporter, POINTS_PUSHED, metric->n_series);
		exporter_account(exporter, POINTS_NOT_SENT, metric->n_series);
	}
	return err;
}

int exporter_encode(struct exporter *exporter, const struct batch *batch)
{
	int err = exporter->is_closed ? open_again(exporter, batch) : 0;

	if (err)
		return err;
	if (!exporter_waiting(exporter).n_bytes)
		exporter->has_told_full = false;
	return exporter->ops->push(exporter, batch);
}

void exporter_send(struct exporter *exporter, const struct batch *batch)
{
	if (exporter->ops->send && !exporter->is_closed)
		exporter->ops->send(exporter, batch);
}

void exporter_fail(struct exporter *exporter, enum log_level level, const char *id, const char *format, ...)
{
	struct exporter_stats *stats = &exporter->stats;
	char message[MESSAGE_BYTES], problem[sizeof(stats->problem)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	snprintf(problem, sizeof(problem), "%.*s", (int)sizeof(problem) - 1, message);
	utf8_clean(problem);
	if (stats->is_failing && !strcmp(problem, stats->problem))
		return;
	if (!stats->is_failing)
		stats->failing_ns = timer_boottime_ns(exporter->context->event);
	stats->is_failing = true;
	stats->n_changes++;
	memcpy(stats->problem, problem, sizeof(problem));
	if (!exporter->context->is_trial)
		exporter_log(exporter, level, id, "%s", message);
}

bool exporter_recovers(struct exporter *exporter)
{
	struct exporter_stats *stats = &exporter->stats;

	if (!stats->is_failing)
		return false;
	stats->n_changes++;
	stats->is_failing = false;
	stats->failing_ns = 0;
	stats->problem[0] = '\0';
	return true;
}

void exporter_asks(struct exporter *exporter, bool is_asking)
{
	exporter->stats.asked_ns = is_asking ? timer_boottime_ns(exporter->context->event) : 0;
}

void exporter_account(struct exporter *exporter, enum points fate, uint64_t n)
{
	struct exporter_stats *stats = &exporter->stats;

	stats->points[fate] += n;
	if (fate != POINTS_DELIVERED || !n)
		return;
	stats->delivered_ns = timer_boottime_ns(exporter->context->event);
	stats->n_changes++;
}

int exporter_enqueue(void *user, uint8_t *data, size_t size, size_t n_points)
{
	struct exporter *exporter = user;
	uint8_t *less = realloc(data, size ?: 1);
	size_t n_dropped = 0;
	int err = queue_put(&exporter->queue, less ?: data, size, n_points, &n_dropped);

	exporter->n_losses += err || n_dropped;
	if (err)
		exporter_account(exporter, POINTS_NOT_SENT, n_points);
	if (!n_dropped)
		return err;
	exporter_account(exporter, POINTS_QUEUE_FULL, n_dropped);
	if (!exporter->has_told_full)
		exporter_log(exporter, LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED,
			     "its queue is full, the oldest points are dropped; queue_size gives it more room");
	exporter->has_told_full = true;
	return 0;
}

struct exporter_waiting exporter_waiting(const struct exporter *exporter)
{
	const struct queue *queue = &exporter->queue;

	if (exporter->ops->waiting && !exporter->is_closed)
		return exporter->ops->waiting(exporter);
	return (struct exporter_waiting){ queue->n_points + exporter->n_doubtful, queue->size_bytes,
					  queue->n_items != 0 };
}

void exporter_save(struct exporter *exporter, struct store *out)
{
	size_t left = exporter->queue.size_bytes, n_left_out = 0;
	struct queue_item *item = TAILQ_FIRST(&exporter->queue.items);

	for (; left > SAVED_BYTES_MAX; item = TAILQ_NEXT(item, link)) {
		left -= item->size;
		n_left_out += item->n_points;
		item->mark = NULL;
	}
	store_number(out, exporter->stats.delivered_ns);
	store_number(out, exporter->stats.failing_ns);
	store_text(out, exporter->stats.problem);
	store_number(out, exporter->position);
	store_number(out, exporter->n_doubtful);
	store_number(out, n_left_out);
	for (; item; item = TAILQ_NEXT(item, link)) {
		item->mark = store_reserve(out, 1);
		store_bytes(out, "", 1);
		store_number(out, item->n_points);
		store_number(out, item->size);
		store_bytes(out, item->data, item->size);
	}
}

static void restore_item(struct exporter *exporter, struct stored *in, bool is_same)
{
	uint8_t *mark = (uint8_t *)stored_bytes(in, 1), *copy;
	uint64_t n_points = stored_number(in), size = stored_number(in);
	const void *data = stored_bytes(in, size);
	struct queue_item *last;

	if (!data || !size)
		return;
	exporter_account(exporter, POINTS_PUSHED, n_points);
	copy = is_same && !*mark ? malloc(size) : NULL;
	if (!copy) {
		exporter_account(exporter, *mark && *mark < N_POINTS ? *mark : POINTS_NOT_SENT, n_points);
		return;
	}
	(void)exporter_enqueue(exporter, memcpy(copy, data, size), size, n_points);
	last = TAILQ_LAST(&exporter->queue.items, queue_items);
	if (last && !last->mark)
		last->mark = mark;
}

void exporter_restore(struct exporter *exporter, struct stored *in, bool is_same)
{
	struct exporter_stats *stats = &exporter->stats;
	uint64_t delivered_ns = stored_number(in), failing_ns = stored_number(in), n_left_out;
	const char *problem = stored_text(in);

	is_same &= !exporter->is_closed;
	if (is_same) {
		stats->is_failing = failing_ns != 0;
		stats->delivered_ns = delivered_ns;
		stats->failing_ns = failing_ns;
		snprintf(stats->problem, sizeof(stats->problem), "%s", problem);
	}
	exporter->position = stored_number(in);
	exporter->n_doubtful = stored_number(in);
	n_left_out = stored_number(in);
	exporter_account(exporter, POINTS_PUSHED, n_left_out + exporter->n_doubtful);
	exporter_account(exporter, POINTS_NOT_SENT, n_left_out);
	while (in->at < in->end && !in->is_bad)
		restore_item(exporter, in, is_same);
}

bool exporter_is_idle(const struct exporter *exporter)
{
	return !exporter_waiting(exporter).is_sending;
}

struct exporter *exporter_free(struct exporter *exporter)
{
	if (!exporter)
		return NULL;
	if (!exporter->is_closed) {
		exporter->ops->close(exporter);
		if (exporter->ops->state_bytes)
			free(exporter->state);
	}
	queue_done(&exporter->queue);
	free(exporter);
	return NULL;
}
