/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The agent from inside: shared by agent.c, instance.c, once.c and report.c; nobody else includes
 * it.
 */

#include <systemd/sd-event.h>

#include "agent/agent.h"
#include "util/duration.h"

struct self;

struct agent {
	struct agent_options options;
	sd_event *event;
	sd_event_source *timer;
	struct exporter_context context;
	struct exporter **exporters;
	size_t n_exporters;
	struct self *self;
	struct batch batch; /* its metrics are those of all collectors and of the agent itself */
	uint64_t boottime_ns;	/* CLOCK_BOOTTIME, of the last collection or the start */
	uint64_t next_ns;	/* likewise, of the next collection */
	uint64_t collection_ns; /* how long the last one took */
	size_t n_series;
	unsigned int n_collections;
	int instance_fd; /* of agent_claim_instance() */
	bool is_read_failing;
	bool is_overflow_known;
	bool *is_full_known; /* of each collector: a full table has been logged */
	uint64_t n_misses; /* events that programs missed, as of the last warning */
};

/* A collection, and a push to every exporter. */
void agent_collect_and_push(struct agent *agent);
/* Runs the loop until everything is sent, the time is up, or *stop is set again. */
void agent_flush(struct agent *agent, bool *stop);
/* SIGINT and SIGTERM to on_term, SIGHUP to on_hup, through the loop; user is theirs. */
int agent_catch_signals(struct agent *agent, sd_event_signal_handler_t on_term, sd_event_signal_handler_t on_hup,
			 void *user);
/* Handlers that set the bool that user points to. */
int agent_on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *user);
int agent_on_deadline(sd_event_source *source, uint64_t usec, void *user);

/*
 * Logs a warning if another agent with this identity runs. Returns the descriptor that holds the
 * claim, or -1.
 */
int agent_claim_instance(const struct agent *agent);
/* Logs that reading a collector failed (err: -errno), once until a reading of all succeeds. */
void agent_report_reading(const struct agent *agent, const char *collector, int err);
/* Logs what is new: missed events, full tables, a full series limit. */
void agent_report(struct agent *agent);
