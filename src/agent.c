/* SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "build-config.h"
#include "self.h"
#include "util/memory.h"

#define NANOSECOND_PER_SECOND 1000000000ull
/* A first look soon after the start, so that a person at a terminal or an operator sees life. */
#define FIRST_COLLECTION_NS   NANOSECOND_PER_SECOND
/* How long the end waits for a receiver that did not answer before either. */
#define HOPELESS_NS NANOSECOND_PER_SECOND
/* How long a command of once has to end after it was told to. */
#define COMMAND_END_NS (2 * NANOSECOND_PER_SECOND)
/* What still runs when a command has been waited for: the last switch away from it. */
#define SETTLE_US	      20000

struct agent {
	struct agent_options options;
	sd_event *event;
	sd_event_source *timer;
	struct exporter_context context;
	struct exporter **exporters;
	size_t n_exporters;
	struct self *self;
	struct metric **metrics; /* of all collectors and the agent itself */
	struct batch batch;
	uint64_t next_ns;	/* CLOCK_BOOTTIME, of the next collection */
	uint64_t collection_ns; /* how long the last one took */
	size_t n_series;
	unsigned int n_collections;
	bool is_read_failing;
	bool *was_failing; /* of each exporter */
	bool is_overflow_known;
	bool *is_full_known; /* of each collector: that a table is full has been said */
	uint64_t n_misses; /* events that programs missed, as of the last warning */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NANOSECOND_PER_SECOND + (uint64_t)now.tv_nsec;
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
		.is_once = options->is_once,
	};
	agent->exporters = calloc(options->n_exporters + 1, sizeof(*agent->exporters));
	agent->was_failing = calloc(options->n_exporters + 1, sizeof(*agent->was_failing));
	if (!agent->exporters || !agent->was_failing)
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

static int list_metrics(struct agent *agent)
{
	size_t n = 0, n_own = 0;
	struct metric **own = NULL;

	if (agent->options.has_self) {
		int err = self_new(agent->options.set, agent->exporters, agent->n_exporters, agent->batch.time_ns,
				   &agent->self);

		if (err)
			return err;
		own = self_metrics(agent->self, &n_own);
	}
	for (size_t i = 0; i < agent->options.set->n_shown; i++) {
		size_t more;

		(void)collector_metrics(agent->options.set->items[i], &more);
		n += more;
	}
	agent->metrics = calloc(n + n_own + 1, sizeof(*agent->metrics));
	agent->is_full_known = calloc(agent->options.set->n + 1, sizeof(*agent->is_full_known));
	if (!agent->metrics || !agent->is_full_known)
		return -ENOMEM;
	for (size_t i = 0; i < agent->options.set->n_shown; i++) {
		size_t more;
		struct metric **metrics = collector_metrics(agent->options.set->items[i], &more);

		memcpy(agent->metrics + agent->batch.n_metrics, metrics, more * sizeof(*metrics));
		agent->batch.n_metrics += more;
	}
	if (own)
		memcpy(agent->metrics + agent->batch.n_metrics, own, n_own * sizeof(*own));
	agent->batch.n_metrics += n_own;
	agent->batch.metrics = agent->metrics;
	return 0;
}

int agent_new(const struct agent_options *options, struct agent **ret_agent)
{
	_cleanup_(agent_freep) struct agent *agent = calloc(1, sizeof(*agent));
	int err;

	if (!agent)
		return -ENOMEM;
	agent->options = *options;
	memory_begin_start();
	err = sd_event_new(&agent->event);
	if (err >= 0)
		err = open_exporters(agent);
	if (!err)
		err = collector_set_start(options->set);
	agent->batch.time_ns = clock_ns(CLOCK_REALTIME);
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
	free(agent->was_failing);
	free(agent->is_full_known);
	free(agent->metrics);
	sd_event_source_unref(agent->timer);
	sd_event_unref(agent->event);
	free(agent);
	return NULL;
}

/* What fails at each collection is said once, until a collection succeeds. */
static void report_reading(const struct agent *agent, const char *collector, int err)
{
	if (err && !agent->is_read_failing)
		log_error("collector %s: reading its maps failed: %s; what was not read comes with a later collection",
			  collector, strerror(-err));
}

/* Said once for all; the overflow series itself is exported. */
static void report_overflow(struct agent *agent)
{
	for (size_t i = 0; i < agent->batch.n_metrics && !agent->is_overflow_known; i++) {
		const struct metric *metric = agent->batch.metrics[i];

		if (metric->n_series < metric->limit)
			continue;
		agent->is_overflow_known = true;
		log_event(LOG_LEVEL_WARNING, LOG_ID_MAP_FULL, NULL,
			  "metric %s has more series than the limit of %zu; the rest is counted together under "
			  "otel.metric.overflow; series_limit in [agent] sets it",
			  metric->name, metric->limit);
	}
}

/* Said once for each collector; how full tables are is exported. */
static void report_full(struct agent *agent)
{
	for (size_t i = 0; i < agent->options.set->n; i++) {
		const struct collector *collector = agent->options.set->items[i];
		const char *table = agent->is_full_known[i] ? NULL : collector_full_table(collector);
		const struct log_field fields[] = { { "BPFPUSH_COLLECTOR", collector_name(collector) },
						    { "BPFPUSH_MAP", table },
						    { NULL, NULL } };

		if (!table)
			continue;
		agent->is_full_known[i] = true;
		log_event(LOG_LEVEL_WARNING, LOG_ID_MAP_FULL, fields,
			  "collector %s: table %s has no room for more keys, which are counted together under otel.metric.overflow; "
			  "set %s_slots in [collector %s] to a larger power of two",
			  collector_name(collector), table, table, collector_name(collector));
	}
}

/* Programs that the kernel skips miss events: said once, counted always. */
static void report_misses(struct agent *agent)
{
	uint64_t misses = 0;

	for (size_t i = 0; i < agent->options.set->n; i++) {
		const struct programs *programs = collector_programs(agent->options.set->items[i]);

		for (uint32_t j = 0; j < programs->n; j++)
			misses += programs->items[j].missed;
	}
	if (misses && !agent->n_misses)
		log_warning("the kernel skipped %" PRIu64 " events, whose program had been preempted on that CPU; "
			    "bpfpush.bpf.program.missed counts them",
			    misses);
	agent->n_misses = misses;
}

static const struct batch *collect(struct agent *agent)
{
	struct collector_set *set = agent->options.set;
	uint64_t now_ns = clock_ns(CLOCK_REALTIME), begin_ns = clock_ns(CLOCK_MONOTONIC);
	bool is_failing = false;

	/* A clock that was set back must not make a point that ends before it begins. */
	agent->batch.previous_ns = agent->batch.time_ns;
	agent->batch.time_ns = now_ns > agent->batch.previous_ns ? now_ns : agent->batch.previous_ns + 1;
	labels_begin(set->labels);
	for (size_t i = 0; i < set->n; i++) {
		int err = collector_read(set->items[i], agent->batch.previous_ns);

		report_reading(agent, collector_name(set->items[i]), err);
		is_failing |= err != 0;
	}
	agent->is_read_failing = is_failing;
	report_misses(agent);
	report_full(agent);
	report_overflow(agent);
	agent->collection_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
	if (agent->self)
		self_collect(agent->self, agent->collection_ns);
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
	sd_notifyf(false, "STATUS=%zu collectors, %zu series, read in %.1f ms; %s%s", agent->options.set->n_shown,
		   agent->n_series, (double)agent->collection_ns / 1e6, failing ? "export is failing: " : "exporting",
		   failing ? failing->name : "");
}

static void collect_and_push(struct agent *agent)
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

	/* The second time, what is done once has been done: names looked up, a connection made. */
	if (agent->n_collections++ == 1)
		memory_end_start();
	collect_and_push(agent);
	/* From start to start; after a sleep or a stall the missed ones are not made up for. */
	agent->next_ns += agent->options.interval_ns;
	if (agent->next_ns <= now_ns)
		agent->next_ns = now_ns + agent->options.interval_ns;
	sd_event_source_set_time(source, agent->next_ns / 1000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	*(bool *)user = true;
	return 0;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	log_info("the configuration is read at the start only; restart the service to read it again");
	return 0;
}

static int catch_signals(struct agent *agent, sd_event_signal_handler_t on_term, sd_event_signal_handler_t on_hup,
			 void *user)
{
	const sd_event_signal_handler_t handlers[] = { on_term, on_stop, on_hup };
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	sigset_t set;
	int err = 0;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* What prints for a person ends when nobody reads on, as any filter does; a service has to go on. */
	signal(SIGPIPE, agent->options.is_filter ? SIG_DFL : SIG_IGN);
	/* A file at its limit is an error that is counted, not the end. */
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < ARRAY_SIZE(signals) && err >= 0; i++)
		err = sd_event_add_signal(agent->event, NULL, signals[i], handlers[i], user);
	return err < 0 ? err : 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *user)
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

/* Those that have something to send fail, all of them: there is nothing to wait long for. */
static bool is_hopeless(const struct agent *agent)
{
	for (size_t i = 0; i < agent->n_exporters; i++)
		if (!exporter_is_idle(agent->exporters[i]) && !agent->exporters[i]->stats.is_failing)
			return false;
	return true;
}

static uint64_t points_left(const struct agent *agent)
{
	uint64_t n = 0;

	for (size_t i = 0; i < agent->n_exporters; i++)
		n += agent->exporters[i]->stats.points_inflight;
	return n;
}

/* Turns the loop until everything is sent, time is up, or *stop is set once more. */
static void flush(struct agent *agent, bool *stop)
{
	uint64_t timeout_ns = agent->options.config->agent.shutdown_timeout_ns;
	sd_event_source *deadline = NULL, *short_deadline = NULL;
	bool is_late = false, is_short = false;

	if (sd_event_add_time_relative(agent->event, &deadline, CLOCK_BOOTTIME, timeout_ns / 1000, 0, on_deadline,
				       &is_late) >= 0 &&
	    sd_event_add_time_relative(agent->event, &short_deadline, CLOCK_BOOTTIME, HOPELESS_NS / 1000, 0,
				       on_deadline, &is_short) >= 0) {
		*stop = false;
		while (!is_late && !*stop && !is_idle(agent) && !(is_short && is_hopeless(agent)) &&
		       sd_event_run(agent->event, UINT64_MAX) >= 0)
			;
	}
	if (!is_idle(agent))
		log_warning("%" PRIu64 " points could not be sent before the end", points_left(agent));
	sd_event_source_unref(deadline);
	sd_event_source_unref(short_deadline);
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
	/* A terminal that has gone has nobody to show anything to. */
	int err = catch_signals(agent, on_stop, isatty(STDERR_FILENO) ? on_stop : on_hangup, &is_stopping);

	if (!err)
		err = start_service(agent);
	if (err)
		return err;
	log_event(LOG_LEVEL_INFO, LOG_ID_STARTED, NULL, "started: %zu collectors, a collection every %g s",
		  agent->options.set->n_shown,
		  (double)agent->options.interval_ns / 1e9);
	sd_notifyf(false, "READY=1\nSTATUS=%zu collectors attached", agent->options.set->n);
	memory_end_start();
	while (!is_stopping && err >= 0)
		err = sd_event_run(agent->event, UINT64_MAX);
	sd_notify(false, "STOPPING=1\nSTATUS=sending what was counted last");
	sd_event_source_set_enabled(agent->timer, SD_EVENT_OFF);
	collect_and_push(agent);
	flush(agent, &is_stopping);
	log_event(LOG_LEVEL_INFO, LOG_ID_STOPPED, NULL, "stopped");
	return err < 0 ? err : 0;
}

struct command {
	bool stop; /* the first member: what on_stop() sets */
	bool has_ended;
	pid_t pid;
	int status; /* as waitpid() tells */
};

static int on_child(sd_event_source *source, const siginfo_t *info, void *user)
{
	struct command *command = user;

	command->has_ended = true;
	command->status = info->si_code == CLD_EXITED ? info->si_status : 128 + info->si_status;
	return 0;
}

static int spawn(struct agent *agent, char *const *arguments, struct command *command)
{
	sigset_t none;
	int err;

	command->pid = fork();
	if (command->pid < 0)
		return -errno;
	if (!command->pid) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		execvp(arguments[0], arguments);
		err = errno;
		log_error("%s cannot be run: %s", arguments[0], strerror(err));
		_exit(err == ENOENT ? 127 : 126);
	}
	err = sd_event_add_child(agent->event, NULL, command->pid, WEXITED, on_child, command);
	return err < 0 ? err : 0;
}

/* A terminal gives SIGINT and SIGHUP to the command too; SIGTERM is for us alone, so the command is told. */
static int on_terminate(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	struct command *command = user;

	command->stop = true;
	if (command->pid > 0 && !command->has_ended)
		kill(command->pid, SIGTERM);
	return 0;
}

/* Counting is over before the command is: it is told, woken if it was stopped, and at last killed. */
static void end_command(struct agent *agent, struct command *command)
{
	sd_event_source *deadline = NULL;
	bool is_late = false;

	kill(command->pid, SIGTERM);
	kill(command->pid, SIGCONT);
	if (sd_event_add_time_relative(agent->event, &deadline, CLOCK_BOOTTIME, COMMAND_END_NS / 1000, 0, on_deadline,
				       &is_late) >= 0)
		while (!command->has_ended && !is_late && sd_event_run(agent->event, UINT64_MAX) >= 0)
			;
	if (!command->has_ended)
		kill(command->pid, SIGKILL);
	sd_event_source_unref(deadline);
	/* It ended because we said so. */
	command->status = 0;
}

static bool is_output_lost(const struct agent *agent)
{
	for (size_t i = 0; i < agent->n_exporters; i++)
		if (agent->exporters[i]->stats.points_dropped_error)
			return true;
	return false;
}

int agent_once(struct agent *agent, uint64_t duration_ns, char *const *arguments, int *ret_status)
{
	struct command command = { 0 };
	int err = catch_signals(agent, on_terminate, on_stop, &command);

	if (!err && arguments)
		err = spawn(agent, arguments, &command);
	if (!err && duration_ns)
		err = sd_event_add_time_relative(agent->event, NULL, CLOCK_BOOTTIME, duration_ns / 1000, 1000,
						 on_deadline, &command.stop);
	while (err >= 0 && !command.has_ended && (!command.stop || (arguments && !duration_ns)))
		err = sd_event_run(agent->event, UINT64_MAX);
	if (err < 0)
		return err;
	if (command.has_ended)
		usleep(SETTLE_US);
	collect_and_push(agent);
	flush(agent, &command.stop);
	if (command.pid && !command.has_ended)
		end_command(agent, &command);
	*ret_status = command.status;
	return is_output_lost(agent) ? -EIO : 0;
}
