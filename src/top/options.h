/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a top is told when it is made. */

#include <stdbool.h>
#include <stdint.h>

struct setting_list;

struct top_options {
	const struct setting_list *by, *where; /* of the first page; by: none: by unit */
	const char *sort;		       /* its column, or NULL */
	uint64_t limit;			       /* rows of it; 0: all */
	uint64_t interval_ns, duration_ns;     /* duration 0: until a key or a signal */
	uint64_t count;			       /* of collections; 0: any */
	bool is_per_process, is_heatmap;
	bool can_count; /* by itself; else only the service may */
	/*
	 * Tables even where there is a screen, for batches of agent_once(); then the others tell
	 * how:
	 */
	bool is_plain;
	int fd;		    /* where they are written */
	unsigned int width; /* 0: any */
	bool has_colour;
};

/* What top_run() and top_watch() return, besides -errno. */
#define TOP_PROCESSES  1
#define TOP_UNWRITABLE 2
#define TOP_ALONE      3
