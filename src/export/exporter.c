/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of exporters, and the accounts that all of them keep in the same way. What an exporter
 * holds is never computed from its counts: it is asked of the queue or buffer itself, so that a point
 * that was forgotten or counted twice shows as a difference.
 */
#include "export/exporter.h"

#include <errno.h>
#include <string.h>

#include "export/queue.h"
#include "util/log.h"

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

int exporter_open(const char *name, const struct exporter_ops *ops, const void *options,
		  const struct exporter_context *context, struct exporter **ret_exporter)
{
	struct exporter *exporter = calloc(1, sizeof(*exporter));
	int err;

	if (!exporter)
		return -ENOMEM;
	exporter->name = name;
	exporter->ops = ops;
	exporter->context = context;
	err = ops->open(exporter, options);
	if (err) {
		free(exporter);
		return err;
	}
	*ret_exporter = exporter;
	return 0;
}

int exporter_push(struct exporter *exporter, const struct batch *batch)
{
	if (!exporter_waiting(exporter).n_bytes)
		exporter->has_told_full = false;
	return exporter->ops->push(exporter, batch);
}

void exporter_account(struct exporter *exporter, enum points fate, uint64_t n)
{
	exporter->stats.points[fate] += n;
}

int exporter_enqueue(struct exporter *exporter, struct queue *queue, uint8_t *data, size_t size,
		     size_t n_points)
{
	size_t n_dropped = 0;
	int err = queue_put(queue, data, size, n_points, &n_dropped);

	if (err) {
		exporter_account(exporter, POINTS_NOT_SENT, n_points);
		return err;
	}
	if (!n_dropped)
		return 0;
	exporter_account(exporter, POINTS_QUEUE_FULL, n_dropped);
	if (!exporter->has_told_full)
		log_event(LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED, NULL,
			  "exporter %s: its queue is full, the oldest points are dropped; queue_size gives it more room",
			  exporter->name);
	exporter->has_told_full = true;
	return 1;
}

struct exporter_waiting exporter_waiting(const struct exporter *exporter)
{
	return exporter->ops->waiting(exporter);
}

bool exporter_is_idle(const struct exporter *exporter)
{
	return !exporter_waiting(exporter).is_sending;
}

struct exporter *exporter_free(struct exporter *exporter)
{
	if (!exporter)
		return NULL;
	exporter->ops->close(exporter);
	free(exporter);
	return NULL;
}
