/* SPDX-License-Identifier: Apache-2.0 */
#include "export/exporter.h"

#include <errno.h>
#include <string.h>

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
	return exporter->ops->push(exporter, batch);
}

void exporter_drop_queued(struct exporter *exporter, size_t n_points, bool *is_told)
{
	exporter->stats.points_dropped_queue += n_points;
	if (!n_points || *is_told)
		return;
	*is_told = true;
	log_event(LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED, NULL,
		  "exporter %s: its queue is full, the oldest points are dropped; queue_size gives it more room",
		  exporter->name);
}

bool exporter_is_idle(const struct exporter *exporter)
{
	return !exporter->ops->is_idle || exporter->ops->is_idle(exporter);
}

struct exporter *exporter_free(struct exporter *exporter)
{
	if (!exporter)
		return NULL;
	exporter->ops->close(exporter);
	free(exporter);
	return NULL;
}
