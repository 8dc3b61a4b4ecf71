/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an agent is told when it is made. */

#include "agent/collector-set.h"

struct batch;
struct kept;
struct scope;

/* What a new configuration takes. */
enum agent_reload { RELOAD_NONE,    /* it has mistakes, which are logged */
		    RELOAD_EXEC,    /* the program again, with what is kept */
		    /* the service manager, which starts it with the rights to load something */
		    RELOAD_RESTART,
};

struct agent_options {
	const struct config *config;
	struct collector_set *set; /* opened, not started; borrowed */
	struct kept *kept; /* outlives the agent; NULL: nothing is kept */
	uint64_t interval_ns; /* with is_once, 0: one collection, at the end */
	uint64_t count; /* agent_run() ends with so many collections; 0: when it is told to */
	bool is_once;
	bool has_runs;	/* programs_enable_stats() counts runs of programs and their time */
	/* its own metrics too; with is_once only what programs missed, in any case */
	bool has_self;
	/* SIGHUP, or a socket: looks at the configuration again. NULL: SIGHUP ends the agent. */
	enum agent_reload (*reload)(void *user);
	void *user; /* of reload() */
	bool is_filter; /* prints for a person or a script, and ends when its reader is gone */
	/*
	 * Called with each batch; exporters get the one that it returns, if any. NULL: they get the
	 * batch itself.
	 */
	const struct batch *(*view)(void *view_user, const struct batch *batch);
	void *view_user;
	const struct event_sink *sink; /* gets what happens; borrowed; NULL: nothing does */
	/* of agent_once()'s command, removed after the last reading. NULL: none */
	struct scope *scope;
};
