/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collection reads all collectors, one after the other, and gives the batch of all series to each
 * exporter, which encodes it at once. In between the loop serves the exporters' sockets. This is
 * the only file that reads clocks: collections come at an interval of CLOCK_BOOTTIME, so that they
 * go on after a suspend; points carry CLOCK_REALTIME, kept in order by advance_time(). At the end
 * there is one more collection, and the loop turns until it is sent.
 */
#include "agent/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "agent/self.h"
#include "build-config.h"
#include "util/array.h"
#include "util/plural.h"

/* A first collection soon after the start, so that somebody who watches sees life. */
#define FIRST_COLLECTION_NS   NS_PER_S
/* How long the end waits if no receiver answered before. */
#define HOPELESS_NS NS_PER_S

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t agent_boot_ns(void)
{
	return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
}

static int open_exporters(struct agent *agent)
{
	const struct agent_options *options = &agent->options;

	agent->context = (struct exporter_context){
		.event = agent->event,
		.resource = options->config->resource.items,
		.n_resource = options->config->resource.n,
		.version = VERSION,
		.interval_ns = options->interval_ns,
		.is_once = options->is_once,
	};
	agent->exporters = calloc(options->n_exporters + 1, sizeof(*agent->exporters));
	if (!agent->exporters)
		return -ENOMEM;
	for (size_t i = 0; i < options->n_exporters; i++) {
		const struct config_exporter *exporter = &options->exporters[i];
		int err = exporter_open(exporter->name, exporter->ops, exporter->options, &agent->context,
					&agent->exporters[agent->n_exporters]);

		if (err == -ENOMEM)
			return err;
		if (err) /* it has said why */
			return -ECANCELED;
		agent->n_exporters++;
	}
	return 0;
}

static int add_metric(struct agent *agent, struct metric *metric)
{
	struct metric **metrics = array_add(&agent->batch.metrics, &agent->batch.n_metrics, sizeof(*metrics));

	if (!metrics)
		return -ENOMEM;
	*metrics = metric;
	return 0;
}

static int list_metrics(struct agent *agent)
{
	const struct collector_set *set = agent->options.set;
	struct metric *metrics;
	size_t n;
	int err = 0;

	agent->is_full_known = calloc(set->n + 1, sizeof(*agent->is_full_known));
	if (!agent->is_full_known)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_shown; i++)
		for (size_t j = 0; j < set->items[i]->n_metrics && !err; j++)
			err = add_metric(agent, set->items[i]->metrics[j]);
	if (err || !agent->options.has_self)
		return err;
	err = self_new(agent->options.set, agent->exporters, agent->n_exporters, &agent->self);
	if (err)
		return err;
	metrics = self_metrics(agent->self, &n);
	for (size_t i = 0; i < n && !err; i++)
		err = add_metric(agent, &metrics[i]);
	return err;
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
		err = open_exporters(agent);
	if (!err)
		err = collector_set_start(options->set);
	agent->batch.time_ns = clock_ns(CLOCK_REALTIME);
	agent->boottime_ns = clock_ns(CLOCK_BOOTTIME);
	if (!err)
		err = list_metrics(agent);
	if (err < 0)
		return err;
	*ret_agent = TAKE_PTR(agent);
	return 0;
}

struct agent *agent_free(struct agent *agent)
{
	if (!agent)
		return NULL;
	self_free(agent->self);
	for (size_t i = 0; i < agent->n_exporters; i++)
		exporter_free(agent->exporters[i]);
	free(agent->exporters);
	free(agent->is_full_known);
	closep(&agent->instance_fd);
	free(agent->batch.metrics);
	sd_event_source_unref(agent->timer);
	sd_event_unref(agent->event);
	free(agent);
	return NULL;
}

/*
 * Points that lie in the clock's future would hide all later ones: so all series start again.
 */
static void restart_series(struct agent *agent, uint64_t back_ns)
{
	struct collector_set *set = agent->options.set;

	log_warning("the clock was set back by %.1f s: all series start again at the new time", (double)back_ns / 1e9);
	labels_set_boot(set->labels, agent_boot_ns());
	for (size_t i = 0; i < set->n; i++)
		collector_restart(set->items[i]);
	if (agent->self)
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
	uint64_t elapsed_ns = boottime_ns - agent->boottime_ns, expected_ns = agent->batch.time_ns + elapsed_ns;
	uint64_t interval_ns = agent->options.interval_ns ? agent->options.interval_ns : NS_PER_S;

	agent->boottime_ns = boottime_ns;
	agent->batch.previous_ns = agent->batch.time_ns;
	if (now_ns + interval_ns + interval_ns / 2 < expected_ns) {
		restart_series(agent, expected_ns - now_ns);
		agent->batch.previous_ns = now_ns - elapsed_ns;
	}
	agent->batch.time_ns = now_ns > agent->batch.previous_ns ? now_ns : agent->batch.previous_ns + 1;
}

static const struct batch *collect(struct agent *agent)
{
	struct collector_set *set = agent->options.set;
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	bool is_failing = false;

	advance_time(agent);
	labels_begin(set->labels);
	for (size_t i = 0; i < set->n; i++) {
		int err = collector_read(set->items[i], agent->batch.previous_ns);

		agent_report_reading(agent, set->items[i]->name, err);
		is_failing |= err != 0;
	}
	agent->is_read_failing = is_failing;
	agent_report(agent);
	agent->collection_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
	if (agent->self)
		self_collect(agent->self, agent->collection_ns, agent->batch.previous_ns);
	agent->n_series = 0;
	for (size_t i = 0; i < agent->batch.n_metrics; i++)
		agent->n_series += agent->batch.metrics[i]->n_series;
	return &agent->batch;
}

const struct batch *agent_batch(const struct agent *agent)
{
	return &agent->batch;
}

static void notify_status(struct agent *agent)
{
	const struct exporter *failing = NULL;

	for (size_t i = 0; i < agent->n_exporters; i++)
		if (agent->exporters[i]->stats.is_failing)
			failing = agent->exporters[i];
	sd_notifyf(false, "STATUS=%zu collector%s, %zu series, read in %.1f ms; %s%s", agent->options.set->n_shown,
		   plural(agent->options.set->n_shown), agent->n_series, (double)agent->collection_ns / 1e6,
		   failing ? "export is failing: " : "exporting",
		   failing ? failing->name : "");
}

void agent_collect_and_push(struct agent *agent)
{
	const struct batch *batch = collect(agent);

	for (size_t i = 0; i < agent->n_exporters; i++)
		(void)exporter_push(agent->exporters[i], batch); /* has logged and counted what it could not */
	notify_status(agent);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *user)
{
	struct agent *agent = user;
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);

	/*
	 * The start needs much memory, most of it once: free it when names are known and a
	 * connection is made.
	 */
	if (agent->n_collections++ == 1)
		malloc_trim(0);
	agent_collect_and_push(agent);
	/* From start to start; collections missed in a sleep or a stall are not made up for. */
	agent->next_ns += agent->options.interval_ns;
	if (agent->next_ns <= now_ns)
		agent->next_ns = now_ns + agent->options.interval_ns;
	sd_event_source_set_time(source, agent->next_ns / 1000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int agent_on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	*(bool *)user = true;
	return 0;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	log_info("SIGHUP changes nothing: restart the service to read the configuration again");
	return 0;
}

int agent_catch_signals(struct agent *agent, sd_event_signal_handler_t on_term, sd_event_signal_handler_t on_hup,
			 void *user)
{
	const sd_event_signal_handler_t handlers[] = { on_term, agent_on_stop, on_hup };
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	sigset_t set;
	int err = 0;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* Output for a person ends when nobody reads on, as a filter does; a service goes on. */
	signal(SIGPIPE, agent->options.is_filter ? SIG_DFL : SIG_IGN);
	/* A file at its limit is an error that is counted, not the end. */
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < ARRAY_SIZE(signals) && err >= 0; i++)
		err = sd_event_add_signal(agent->event, NULL, signals[i], handlers[i], user);
	return err < 0 ? err : 0;
}

int agent_on_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	*(bool *)user = true;
	return 0;
}

static bool is_idle(const struct agent *agent)
{
	for (size_t i = 0; i < agent->n_exporters; i++)
		if (!exporter_is_idle(agent->exporters[i]))
			return false;
	return true;
}

/* All exporters with unsent data are failing: waiting long would not help. */
static bool is_hopeless(const struct agent *agent)
{
	for (size_t i = 0; i < agent->n_exporters; i++)
		if (!exporter_is_idle(agent->exporters[i]) && !agent->exporters[i]->stats.is_failing)
			return false;
	return true;
}

static void report_points_left(const struct agent *agent)
{
	for (size_t i = 0; i < agent->n_exporters; i++) {
		uint64_t n = exporter_waiting(agent->exporters[i]).n_points;

		if (n && !exporter_is_idle(agent->exporters[i]))
			log_warning("exporter %s: stopped with %" PRIu64 " point%s unsent; %s lost",
				    agent->exporters[i]->name, n, plural(n), n == 1 ? "it is" : "they are");
	}
}

void agent_flush(struct agent *agent, bool *stop)
{
	uint64_t timeout_ns = agent->options.config->agent.shutdown_timeout_ns;
	uint64_t short_ns = timeout_ns < HOPELESS_NS ? timeout_ns : HOPELESS_NS;
	uint64_t begin_ns = clock_ns(CLOCK_BOOTTIME);

	*stop = false;
	while (!*stop && !is_idle(agent)) {
		uint64_t end_ns = begin_ns + (is_hopeless(agent) ? short_ns : timeout_ns);
		uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);

		if (now_ns >= end_ns || sd_event_run(agent->event, (end_ns - now_ns) / 1000 + 1) < 0)
			break;
	}
	report_points_left(agent);
}

static int start_service(struct agent *agent)
{
	uint64_t first_ns = agent->options.interval_ns < FIRST_COLLECTION_NS ? agent->options.interval_ns :
									       FIRST_COLLECTION_NS;
	int err;

	agent->next_ns = clock_ns(CLOCK_BOOTTIME) + first_ns;
	err = sd_event_add_time(agent->event, &agent->timer, CLOCK_BOOTTIME, agent->next_ns / 1000, 1000, on_timer,
				agent);
	if (err >= 0)
		err = sd_event_set_watchdog(agent->event, true);
	return err < 0 ? err : 0;
}

int agent_run(struct agent *agent)
{
	bool is_stopping = false;
	/* SIGHUP ends a run in a terminal: the terminal has gone. */
	int err = agent_catch_signals(agent, agent_on_stop, isatty(STDERR_FILENO) ? agent_on_stop : on_hangup,
				      &is_stopping);

	if (!err)
		err = start_service(agent);
	if (err)
		return err;
	if (agent->n_exporters && !agent->options.is_filter)
		agent->instance_fd = agent_claim_instance(agent);
	log_event(LOG_LEVEL_INFO, LOG_ID_STARTED, NULL, "started: %zu collector%s, a collection every %g s",
		  agent->options.set->n_shown, plural(agent->options.set->n_shown),
		  (double)agent->options.interval_ns / 1e9);
	sd_notifyf(false, "READY=1\nSTATUS=%zu collector%s attached", agent->options.set->n_shown,
		   plural(agent->options.set->n_shown));
	malloc_trim(0);
	while (!is_stopping && err >= 0)
		err = sd_event_run(agent->event, UINT64_MAX);
	sd_notify(false, "STOPPING=1\nSTATUS=sending the last collection");
	sd_event_source_set_enabled(agent->timer, SD_EVENT_OFF);
	agent->batch.is_last = true;
	agent_collect_and_push(agent);
	agent_flush(agent, &is_stopping);
	log_event(LOG_LEVEL_INFO, LOG_ID_STOPPED, NULL, "stopped");
	return err < 0 ? err : 0;
}
