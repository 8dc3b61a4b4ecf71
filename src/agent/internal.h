/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The agent from inside: shared by the files of this directory and of status/; no others
 * include it.
 */

#include <systemd/sd-event.h>
#include <time.h>

#include "agent/options.h"
#include "metric/event.h"
#include "util/duration.h"

struct self;
struct state;
struct status;
struct viewers;

/* What the log says about an overflow. */
struct notice {
	struct buf names; /* ", all (syscalls), files (fileio)" as said last; empty: it is over */
	const char *what; /* likewise, as is value: of the setting */
	uint64_t value;
	unsigned int n_quiet; /* collections in a row without overflow */
	/* during a report: something overflows now, and has not been named yet */
	bool is_on, is_new;
};

struct agent {
	struct agent_options options;
	sd_event *event;
	sd_event_source *timer;
	sd_event_source *sweep; /* enabled while there may be keys to remove */
	sd_event_source **listeners; /* to what programs report as it happens */
	size_t n_listeners;
	struct exporter_context context;
	struct queue_budget queue_budget, events_budget;
	struct exporter **exporters;
	size_t n_exporters;
	struct event_sink sink; /* for those of events */
	struct self *self;
	struct state *state; /* NULL: it ends with the process */
	struct status *status; /* NULL: it does not run as a service */
	struct viewers *viewers; /* likewise */
	struct batch batch; /* its metrics are those of all collectors and of the agent itself */
	uint64_t boottime_ns;	/* CLOCK_BOOTTIME, of the last collection or the start */
	uint64_t next_ns;	/* likewise, of the next collection */
	uint64_t collection_ns; /* how long the last one took */
	uint64_t collected_ns;	/* CLOCK_MONOTONIC, when it ended */
	uint64_t most_bytes; /* of series, since memory was returned */
	unsigned int n_collections;
	int instance_fd; /* a claim to its identity, or -1 */
	bool is_read_failing;
	/* SIGTERM or SIGINT has come, since the last collection began to be sent */
	bool is_stopping;
	enum agent_reload reload;
	bool is_tracing_off; /* programs at functions do not run */
	bool is_reload_refused; /* the configuration had mistakes when it was read last */
	struct notice notices[OVERFLOWS];
	struct notice records; /* that found no room */
	struct notice missing; /* that programs miss events */
	/* which numbers that made too low at the last collection, and by how much; or empty */
	struct buf too_low;
};

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* -ENOMEM. -ECANCELED: one cannot be opened, and has said why. */
int agent_open_exporters(struct agent *agent);
bool agent_takes_events(const struct agent *agent);
/* Takes what programs report as it comes, or leaves it to the next reading. */
void agent_listen(struct agent *agent, bool is_listening);
/* A collection, and a push to every exporter. */
void agent_collect(struct agent *agent);
/*
 * The last collection, and a push to every exporter; then runs the loop until everything is sent,
 * the time is up, or *stop is set again.
 */
void agent_finish(struct agent *agent, bool *stop);
/* SIGTERM, SIGINT and SIGHUP to on_signal, through the loop. */
int agent_catch_signals(struct agent *agent, sd_event_signal_handler_t on_signal, void *user);

/* Logs that reading a collector failed (err: -errno), once until a reading of all succeeds. */
bool agent_report_reading(const struct agent *agent, const char *collector, int err); /* err? */
/* Logs what is new: missed events, full tables, a spent budget. */
void agent_report(struct agent *agent);
/* Logs what goes on from the process before. */
void agent_report_restored(const struct agent *agent);
/* Logs what each exporter could not send before the end; after a reload it is sent. */
void agent_report_unsent(const struct agent *agent);

/*
 * The agent's numbers about itself, exported like all others: what its programs cost and miss, how
 * full its maps are, and the fate of its points. NULL: no memory.
 */
struct self *self_new(void);
void self_free(struct self *self);
/*
 * After a collection. Without has_self, of the programs only what those have missed that have
 * missed something.
 */
void self_collect(struct self *self, const struct agent *agent);
/*
 * Ends all series; the next collection begins new ones, which hold what has grown since the last.
 */
void self_restart(struct self *self);
/* Those that are exported: with is_once only what programs have missed. */
struct metric *self_metrics(struct self *self, const struct agent_options *options, size_t *ret_n);
