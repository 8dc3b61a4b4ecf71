/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is shown, and its picture: what is said about the whole at the top, the page, and the keys at the bottom. */

#include "top/page.h"
#include "top/top.h"

struct top {
	struct top_options options;
	struct agent *agent;	   /* NULL: none yet, or the next one is being made */
	const struct batch *batch; /* its last collection, or NULL */
	uint64_t agent_ns;	   /* its time on CPUs at that time */
	double agent_share;	   /* of a CPU since the collection before, in % */
	struct page *page;
	struct content content;
	size_t n_shown;		   /* lines of the page on the screen */
	unsigned int paused_s;
	bool is_screen, is_paused, is_typing, wants_processes;
	bool is_filled;		   /* the content is that of the page */
	int error;		   /* why standard output takes no more */
	uint64_t n_printed, n_taken; /* n_taken: collections */
};

/* " UTC, …": after the time of the last collection, how long it was (length), and whose CPUs. */
void draw_heading(const struct top *top, const char *length, struct buf *out);
/* Moves what the page shows, so that its chosen line is seen. */
void draw(struct top *top);
