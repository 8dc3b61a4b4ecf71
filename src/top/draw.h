/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is shown, and its picture: what is said about the whole at the top, the page, and the keys
 * at the bottom.
 */

#include "top/page.h"
#include "top/options.h"

struct top {
	struct top_options options;
	struct agent *agent;	   /* NULL: the service counts, or the next agent is being made */
	struct sd_event *event;	   /* while the service counts, or NULL */
	const char *state;	   /* what it waits for, or "" */
	char note[128];		   /* why a key did nothing, or "" */
	const char *problems;	   /* of the service, or NULL */
	const struct batch *batch; /* the last collection, or NULL */
	uint64_t begin_ns;	   /* when counting began, or 0 */
	uint64_t agent_ns;	   /* this process's time on CPUs at the last collection */
	double agent_share;	   /* of a CPU since the collection before, in % */
	struct page *page;
	struct content content;
	size_t n_shown;		   /* lines of the page on the screen */
	unsigned int paused_s;
	bool is_screen, is_paused, is_typing;
	bool is_whole;		   /* numbers are those since counting began */
	bool is_instead;	   /* all metrics, since nothing has units */
	int wish;		   /* TOP_PROCESSES or TOP_ALONE when it ends, or 0 */
	bool is_filled;		   /* the content is that of the page */
	int error;		   /* why standard output takes no more */
	uint64_t n_printed, n_taken; /* n_taken: collections */
};

/* " UTC, …": after the time of the last collection, how long it was (length), and whose CPUs. */
void draw_heading(const struct top *top, const char *length, struct buf *out);
/* Moves what the page shows, so that its chosen line is seen. */
void draw(struct top *top);

/* What draw() and keys need: the content of the page, with the cursor in it. */
void top_fill(struct top *top);
/* Draws, if there is a screen. */
void top_show(struct top *top);
/* Another agent counts, or the same one from the beginning. */
void top_restart(struct top *top);
/* Ends it, with an agent or with the service. */
void top_stop(struct top *top);
/*
 * What is done before and after the loop, with an agent or with the service. -errno, or what
 * top_run() returns.
 */
int top_begin(struct top *top, struct sd_event *event);
int top_end(struct top *top, int r);
