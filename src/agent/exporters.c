/* SPDX-License-Identifier: Apache-2.0 */
/* The exporters of an agent: one for each signal that a section of the configuration wants. */
#include <errno.h>

#include "agent/agent.h"
#include "agent/internal.h"
#include "agent/state.h"
#include "build-config.h"
#include "util/array.h"

#define EVENTS_SHARE 4 /* for events, this part of queue_size comes in addition */

static void save_agent(void *user)
{
	struct agent *agent = user;

	state_save(agent->state, agent);
}

static bool take_event(void *user, const struct event *event)
{
	struct agent *agent = user;

	for (size_t i = 0; i < agent->n_exporters; i++)
		if (agent->exporters[i]->ops->takes & event_signal(event->kind))
			agent->exporters[i]->ops->take(agent->exporters[i], event);
	return true;
}

static void flush_events(void *user)
{
	struct agent *agent = user;

	for (size_t i = 0; i < agent->n_exporters; i++)
		if (agent->exporters[i]->ops->flush)
			agent->exporters[i]->ops->flush(agent->exporters[i]);
}

/* 0, also if it is closed for now; -ECANCELED: it has said why it cannot be opened. -ENOMEM. */
static int add_exporter(struct agent *agent, const char *name, const struct exporter_ops *ops,
			const void *options)
{
	int err = exporter_open(name, ops, options, &agent->context,
				&agent->exporters[agent->n_exporters]);

	if (err)
		return err == -ENOMEM ? err : -ECANCELED;
	agent->n_exporters++;
	return 0;
}

/* One for each signal. */
static int add_exporters(struct agent *agent, const struct config_exporter *exporter)
{
	enum signals made = collector_set_signals(agent->options.set);
	size_t n_before = agent->n_exporters;
	int err = 0;

	for_each_signal(signal) {
		const char *name;
		const struct exporter_ops *ops = config_exporter_ops(exporter, signal, &name);

		if (ops && !err && made & (ops->takes ?: SIGNAL_METRICS))
			err = add_exporter(agent, name, ops, exporter->options);
	}
	if (!err && agent->n_exporters == n_before)
		log_warning("exporter %s sends no metrics, and no collector that runs has what it sends",
			    exporter->name);
	return err;
}

bool agent_takes_events(const struct agent *agent)
{
	for (size_t i = 0; i < agent->n_exporters; i++)
		if (agent->exporters[i]->ops->take)
			return true;
	return false;
}

int agent_open_exporters(struct agent *agent)
{
	const struct agent_options *options = &agent->options;
	const struct config *config = options->config;
	size_t n_closed = 0;

	agent->queue_budget.limit_bytes = config->agent.queue_bytes;
	agent->events_budget.limit_bytes = config->agent.queue_bytes / EVENTS_SHARE;
	agent->sink = (struct event_sink){ take_event, flush_events, agent };
	agent->context = (struct exporter_context){
		.event = agent->event,
		.resource = config->resource.items,
		.n_resource = config->resource.n,
		.version = VERSION,
		.queue_budget = &agent->queue_budget,
		.events_budget = &agent->events_budget,
		.interval_ns = options->interval_ns,
		.save = save_agent,
		.save_user = agent,
		.is_once = options->is_once,
		.opens_later = !options->is_filter,
	};
	agent->exporters = calloc(SIGNALS * config->n_exporters + 1, sizeof(*agent->exporters));
	if (!agent->exporters)
		return -ENOMEM;
	agent->context.opened = agent->exporters;
	array_for_each (exporter, config->exporters, config->n_exporters) {
		int err = add_exporters(agent, exporter);

		if (err)
			return err;
	}
	for (size_t i = 0; i < agent->n_exporters; i++)
		n_closed += agent->exporters[i]->stats.is_failing;
	if (n_closed && n_closed == agent->n_exporters)
		log_warning("no exporter could be opened: counting goes on, and each collection tries to open them again");
	return 0;
}
