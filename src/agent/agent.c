/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collection reads all collectors, one after the other, and gives the batch of all series to each
 * exporter, which encodes it at once. In between the loop serves the exporters' sockets. This is
 * the only file that reads clocks for them: collections come at an interval of CLOCK_BOOTTIME, so
 * that they go on after a suspend; points carry CLOCK_REALTIME, kept in order by advance_time(). At
 * the end there is one more collection, and the loop turns until it is sent.
 */
#include "agent/agent.h"
#include "agent/internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/scope.h"
#include "agent/state.h"
#include "agent/status/status.h"
#include "agent/status/viewers.h"
#include "build-config.h"
#include "collector/label/cgroup.h"
#include "util/array.h"
#include "util/kept.h"

/* How long the end waits if no receiver that is waited for has answered. */
#define HOPELESS_NS NS_PER_S
/* A signal so soon after another is the same one: timeout(1) also signals its whole group. */
#define SAME_SIGNAL_NS (500 * NS_PER_MS)
#define SWEEP_TURN_NS  (2 * NS_PER_MS)
#define SWEEP_ACCURACY (10 * NS_PER_MS / NS_PER_US)

uint64_t agent_boot_ns(void)
{
	return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
}

static void set_clocks(struct labels *labels)
{
	uint64_t now_ns = clock_ns(CLOCK_REALTIME);

	labels->boottime_zero_ns = now_ns - clock_ns(CLOCK_BOOTTIME);
	labels->monotonic_zero_ns = now_ns - clock_ns(CLOCK_MONOTONIC);
}

/* All collectors count from one moment on, not each from its own attaching. */
static void read_baselines(struct agent *agent)
{
	const struct collector_set *set = agent->options.set;
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	bool has_past = false;

	set_clocks(set->labels);
	for (size_t i = 0; i < set->n; i++) {
		agent_report_reading(agent, set->items[i]->name, collector_read(set->items[i]));
		has_past |= set->items[i]->object->has_past;
	}
	if (has_past)
		log_info("the new programs took over within %.1f ms; a part of what happened then is not counted",
			 (double)(clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1e6);
}

static int list_metrics(struct agent *agent)
{
	const struct collector_set *set = agent->options.set;
	struct batch *batch = &agent->batch;
	struct metric **next, *own;
	size_t n_own;

	agent->self = self_new();
	if (!agent->self)
		return -ENOMEM;
	own = self_metrics(agent->self, &agent->options, &n_own);
	batch->n_metrics = n_own;
	for (size_t i = 0; i < set->n_shown; i++)
		batch->n_metrics += set->items[i]->n_metrics;
	batch->metrics = next = calloc(batch->n_metrics + 1, sizeof(*next));
	if (!next)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_shown; i++)
		for (size_t j = 0; j < set->items[i]->n_metrics; j++)
			*next++ = set->items[i]->metrics[j];
	for (size_t i = 0; i < n_own; i++)
		next[i] = &own[i];
	return 0;
}

/* Many cgroups come and go: their names are read before the next collection. */
static int on_names(sd_event_source *source, int fd, uint32_t events, void *user)
{
	cgroups_catch_up(user);
	return 0;
}

static int on_records(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct collector *collector = user;

	set_clocks(collector->labels);
	collector_wake(collector);
	return 0;
}

static int listen_to_records(struct agent *agent, struct collector *collector)
{
	int err = 0, fd;

	for (size_t i = 0; err >= 0 && (fd = collector_wake_fd(collector, i)) >= 0; i++) {
		sd_event_source *source;

		err = sd_event_add_io(agent->event, &source, fd, EPOLLIN, on_records, collector);
		if (err >= 0)
			err = array_append(&agent->listeners, &agent->n_listeners, &source);
	}
	return err;
}

/* What programs report is counted as it comes, or before the next collection. */
static int listen_to_programs(struct agent *agent)
{
	const struct collector_set *set = agent->options.set;
	struct cgroups *cgroups = set->labels->cgroups;
	int err = 0, fd = cgroups_wake_fd(cgroups);

	if (fd >= 0)
		err = sd_event_add_io(agent->event, NULL, fd, EPOLLIN, on_names, cgroups);
	for (size_t i = 0; i < set->n && err >= 0; i++)
		err = listen_to_records(agent, set->items[i]);
	return err;
}

void agent_listen(struct agent *agent, bool is_listening)
{
	for (size_t i = 0; i < agent->n_listeners; i++)
		sd_event_source_set_enabled(agent->listeners[i],
					    is_listening ? SD_EVENT_ON : SD_EVENT_OFF);
}

/* Where events go. Those that a process before has left in the rings go there, too. */
static void set_sinks(struct agent *agent)
{
	const struct collector_set *set = agent->options.set;
	const struct event_sink *own = agent_takes_events(agent) ? &agent->sink : NULL;

	for (size_t i = 0; i < set->n_shown; i++)
		set->items[i]->sink = agent->options.sink ?: own;
}

/*
 * Keys whose owners are gone are removed after a collection, in short turns that leave the loop
 * free for exporters.
 */
static int on_sweep(sd_event_source *source, uint64_t usec, void *user)
{
	const struct agent *agent = user;
	const struct collector_set *set = agent->options.set;
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME), soonest_ns = UINT64_MAX;
	int64_t left_ns = SWEEP_TURN_NS;

	for (size_t i = 0; i < set->n; i++) {
		uint64_t wait_ns = collector_sweep(set->items[i], now_ns,
						   agent->boottime_ns, &left_ns);

		soonest_ns = wait_ns < soonest_ns ? wait_ns : soonest_ns;
	}
	if (soonest_ns == UINT64_MAX)
		return 0;
	sd_event_source_set_time(source, (now_ns + soonest_ns) / NS_PER_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int add_sweep(struct agent *agent)
{
	int err = sd_event_add_time(agent->event, &agent->sweep, CLOCK_BOOTTIME, 0, SWEEP_ACCURACY,
				    on_sweep, agent);

	if (err >= 0)
		err = sd_event_source_set_priority(agent->sweep, SD_EVENT_PRIORITY_IDLE);
	return err < 0 ? err : sd_event_source_set_enabled(agent->sweep, SD_EVENT_OFF);
}

/* Counts from here on, or from where the process before was. */
static void begin_counting(struct agent *agent)
{
	state_restore(agent->state, agent);
	if (agent->batch.time_ns)
		agent_report_restored(agent);
	read_baselines(agent);
	if (!agent->batch.time_ns) {
		agent->batch.time_ns = clock_ns(CLOCK_REALTIME);
		agent->boottime_ns = clock_ns(CLOCK_BOOTTIME);
	}
	for (size_t i = 0; i < agent->n_exporters; i++)
		exporter_spool(agent->exporters[i]);
	state_save(agent->state, agent);
	if (!agent->options.kept)
		return;
	kept_drop(agent->options.kept, NULL);
	kept_probe(agent->options.kept);
}

int agent_new(const struct agent_options *options, struct agent **ret_agent)
{
	_cleanup_(agent_freep) struct agent *agent = calloc(1, sizeof(*agent));
	int err;

	if (!agent)
		return -ENOMEM;
	agent->options = *options;
	agent->instance_fd = -1;
	err = sd_event_new(&agent->event);
	if (err >= 0)
		err = add_sweep(agent) ?: agent_open_exporters(agent);
	if (!err && !options->is_filter)
		agent->state = state_new(options->kept);
	options->set->is_brief = options->is_once;
	err = err ?: collector_set_start(options->set, options->kept);
	err = err ?: list_metrics(agent);
	if (!err) {
		set_sinks(agent);
		begin_counting(agent);
	}
	err = err ?: listen_to_programs(agent);
	if (err < 0)
		return err;
	*ret_agent = TAKE_PTR(agent);
	return 0;
}

void agent_free(struct agent *agent)
{
	if (!agent)
		return;
	self_free(agent->self);
	state_free(agent->state);
	status_free(agent->status);
	viewers_free(agent->viewers);
	for (size_t i = 0; i < agent->n_exporters; i++)
		exporter_free(agent->exporters[i]);
	free(agent->exporters);
	for (size_t i = 0; i < OVERFLOWS; i++)
		buf_done(&agent->notices[i].names);
	buf_done(&agent->records.names);
	buf_done(&agent->missing.names);
	buf_done(&agent->too_low);
	closep(&agent->instance_fd);
	free(agent->batch.metrics);
	sd_event_source_unref(agent->timer);
	sd_event_source_unref(agent->sweep);
	for (size_t i = 0; i < agent->n_listeners; i++)
		sd_event_source_unref(agent->listeners[i]);
	free(agent->listeners);
	sd_event_unref(agent->event);
	free(agent);
}

/*
 * Points that lie in the clock's future would hide all later ones: so all series start again.
 */
static void restart_series(struct agent *agent, uint64_t back_ns)
{
	struct collector_set *set = agent->options.set;

	log_warning("the clock was set back by %.1f s: all series start again at the new time", (double)back_ns / 1e9);
	set->labels->boot_ns = agent_boot_ns();
	state_forget_series(agent->state);
	for (size_t i = 0; i < set->n; i++)
		collector_restart(set->items[i]);
	self_restart(agent->self);
}

/*
 * The time of a collection, from the clock, and of the one before. A point must not end before it
 * begins: after a step back of about an interval one may last a nanosecond; after a larger step all
 * series start again.
 */
static void advance_time(struct agent *agent)
{
	uint64_t now_ns = clock_ns(CLOCK_REALTIME), boottime_ns = clock_ns(CLOCK_BOOTTIME);
	uint64_t elapsed_ns = boottime_ns - agent->boottime_ns,
		expected_ns = agent->batch.time_ns + elapsed_ns;
	uint64_t interval_ns = agent->options.interval_ns ? agent->options.interval_ns : NS_PER_S;

	agent->boottime_ns = boottime_ns;
	agent->batch.previous_ns = agent->batch.time_ns;
	if (now_ns + interval_ns + interval_ns / 2 < expected_ns) {
		restart_series(agent, expected_ns - now_ns);
		agent->batch.previous_ns = now_ns - elapsed_ns;
	}
	agent->batch.time_ns = now_ns > agent->batch.previous_ns ? now_ns :
			       agent->batch.previous_ns + 1;
}

/*
 * First reads all, then computes: series that have ended in one collector make room for new ones in
 * another.
 */
static void read_collectors(struct agent *agent)
{
	struct collector_set *set = agent->options.set;
	bool is_failing = false;

	for (size_t i = 0; i < set->n; i++)
		is_failing |= agent_report_reading(agent, set->items[i]->name,
						   collector_read(set->items[i]));
	for (size_t i = 0; i < set->n; i++) {
		int err = collector_compute(set->items[i], agent->batch.previous_ns);

		is_failing |= agent_report_reading(agent, set->items[i]->name, err);
	}
	agent->is_read_failing = is_failing;
}

void agent_stop(struct agent *agent)
{
	agent->is_stopping = true;
}

struct sd_event *agent_event(const struct agent *agent)
{
	return agent->event;
}

const struct batch *agent_batch(const struct agent *agent)
{
	return &agent->batch;
}

void agent_collect(struct agent *agent)
{
	const struct agent_options *options = &agent->options;
	const struct batch *batch = &agent->batch;
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);

	labels_begin(options->set->labels, agent->boottime_ns);
	set_clocks(options->set->labels);
	advance_time(agent);
	read_collectors(agent);
	if (batch->is_last)
		scope_remove(options->scope);
	agent_report(agent);
	agent->collected_ns = clock_ns(CLOCK_MONOTONIC);
	agent->collection_ns = agent->collected_ns - begin_ns;
	self_collect(agent->self, agent);
	if (options->view)
		batch = options->view(options->view_user, batch);
	for (size_t i = 0; i < agent->n_exporters && batch; i++)
		/* has logged and counted what it could not */
		(void)exporter_encode(agent->exporters[i], batch);
	state_save(agent->state, agent);
	for (size_t i = 0; i < agent->n_exporters && batch; i++)
		exporter_send(agent->exporters[i], batch);
	status_changed(agent->status);
	viewers_tell(agent->viewers);
	sd_event_source_set_time(agent->sweep, 0);
	sd_event_source_set_enabled(agent->sweep, SD_EVENT_ONESHOT);
}

/*
 * How long to wait for what is unsent. A reload does not wait long for a receiver that has never
 * answered either: the next process goes on with what is unsent.
 */
static uint64_t patience_ns(const struct agent *agent)
{
	uint64_t timeout_ns = agent->options.config->agent.shutdown_timeout_ns, wait_ns = 0;

	for (size_t i = 0; i < agent->n_exporters; i++) {
		const struct exporter_stats *stats = &agent->exporters[i]->stats;
		bool has_answered = stats->delivered_ns || stats->points[POINTS_REJECTED];

		if (exporter_is_idle(agent->exporters[i]))
			continue;
		if (!stats->is_failing && (has_answered || agent->reload != RELOAD_EXEC))
			return timeout_ns;
		wait_ns = timeout_ns < HOPELESS_NS ? timeout_ns : HOPELESS_NS;
	}
	return wait_ns;
}

void agent_finish(struct agent *agent, bool *stop)
{
	uint64_t begin_ns = clock_ns(CLOCK_BOOTTIME), passed_ns, wait_ns, same_ns;

	agent->batch.is_last = true;
	agent_collect(agent); /* a part of the time that the service manager grants */
	agent_listen(agent, false); /* what comes now waits for the next process */
	*stop = false;
	same_ns = clock_ns(CLOCK_BOOTTIME) - begin_ns + SAME_SIGNAL_NS;
	while ((wait_ns = patience_ns(agent)) > (passed_ns = clock_ns(CLOCK_BOOTTIME) - begin_ns)) {
		*stop &= agent->reload == RELOAD_EXEC || passed_ns >= same_ns;
		if (*stop ||
		    sd_event_run(agent->event, (wait_ns - passed_ns) / NS_PER_US + 1) < 0)
			break;
	}
	agent_report_unsent(agent);
}
