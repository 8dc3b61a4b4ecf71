/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is busy, live: a screen with keys or, without a terminal to draw on, a plain table for each
 * collection. The caller makes the agent, with top_view() as its view.
 */

#include "agent/agent.h"
#include "top/options.h"
#include "view/question.h"

struct top;

/* It borrows what options point to. NULL: no memory. */
struct top *top_new(const struct top_options *options);
/*
 * What it shows first, before top_run(): of the question only the metrics. Mistakes go to diag.
 * -ENOMEM.
 */
int top_ask(struct top *top, const struct question *question, struct diag *diag);
/* Leaves the terminal as it was, and then prints the messages that came in the meantime. */
void top_free(struct top *top);

/* struct agent_options.view */
const struct batch *top_view(void *top, const struct batch *batch);
/*
 * agent_run() with keys. -errno. TOP_PROCESSES: it is to be run again with an agent that counts
 * each process by itself. TOP_UNWRITABLE: standard output takes no more; errno says why.
 */
int top_run(struct top *top, struct agent *agent);
/*
 * Runs with the collections of the service, to which fd is connected (socket_connect(),
 * SOCKET_COLLECTIONS) and which is closed here. When the service ends, it waits for the next one.
 * TOP_ALONE: it is to be run with an agent, because a key asks for what the service does not do, or
 * because nothing of it can be shown. Without top_options.can_count: -EPROTO, what it sends cannot
 * be read; -EBUSY, too many others watch. A plain table ends with the service: -ECONNRESET.
 */
int top_watch(struct top *top, int fd);
/* After top_watch(): what is doubtful about the question, or "". */
const char *top_note(const struct top *top);
/* Why a table could not be written: errno, or 0. */
int top_error(const struct top *top);

DEFINE_CLEANUP(struct top *, top_free);
