/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The agent: the one place that knows collectors and exporters, owns the event loop and reads the
 * clocks.
 *
 * agent_new() checks nothing: configuration and collectors have been read and opened before. It
 * attaches, opens the exporters and is then either run (the service) or used once.
 */

#include "agent/options.h"

struct agent;

/*
 * -EPERM, -EOPNOTSUPP and others of collector_set_start(); -ECANCELED: an exporter could not be
 * opened. The reason is logged.
 */
int agent_new(const struct agent_options *options, struct agent **ret_agent);
void agent_free(struct agent *agent);

/*
 * A signal that comes while all is read and attached waits for agent_run() or agent_once(), which
 * do the same.
 */
void agent_block_signals(void);
/*
 * For a command: SIGPIPE ends us only after it and its cgroup, when agent_once() lets the signal
 * go.
 */
void agent_hold_pipe(bool is_held);
/*
 * Runs as a service until SIGTERM or SIGINT: a collection each interval, a last one at the end. 0
 * or -errno. 1: it is to be run again with a new configuration (RELOAD_EXEC).
 */
int agent_run(struct agent *agent);
/*
 * Counts for duration_ns (0: until a signal, or the command's end), or while command runs (NULL:
 * none), and collects and pushes at the end, and at each interval before, if there is one. A
 * command that is still running is then ended, and so it is if the output of an interval is not
 * read. -EIO: the output could not be written. 126 or 127, as a shell has it: the command could not
 * be run, so nothing was pushed. Each error has been logged. *ret_status is the command's exit
 * status, or 128 + signal if a signal ended it.
 */
int agent_once(struct agent *agent, uint64_t duration_ns, char *const *command, int *ret_status);
/* Ends agent_run(), as SIGTERM does. */
void agent_stop(struct agent *agent);
/* The loop that agent_run() and agent_once() turn, for more sources. */
struct sd_event *agent_event(const struct agent *agent);
/* The last collection; valid until the next. */
const struct batch *agent_batch(const struct agent *agent);
/*
 * Sets that of agent_run(), from the last collection on: the next may be due at once. 0: none until
 * it is set again.
 */
void agent_set_interval(struct agent *agent, uint64_t interval_ns);

/* Unix time of boot, ns. */
uint64_t agent_boot_ns(void);

DEFINE_CLEANUP(struct agent *, agent_free);
