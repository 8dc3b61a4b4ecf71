/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every line of a series begins with, made once and kept with the series; each name belongs to one series.
 * A histogram has many lines, whose names follow from its own: they are claimed with it, by rule and not one
 * by one.
 *
 * The name that is taken already gets eight digits of its series' identity, as a part of its path or, where the
 * dialect has them, as the tag "series". Which of two comes first has the name as it is.
 */

#include "export/lines/claims.h"
#include "export/lines/line-bounds.h"
#include "export/lines/name.h"

struct line_names {
	const struct naming *naming;
	const char *histogram_ending; /* behind the path of every line of a histogram; "" or ".total" */
	struct claims claims;
	uint64_t n_collisions; /* series whose name was taken */
};

/* What is the same in the names of all series of a metric. */
struct line_kind {
	const char *metric_suffix;	  /* behind the metric's name */
	const char *path_suffix;	  /* behind the path, unless it ends so already */
	const struct line_bounds *bounds; /* of a histogram that becomes counters, else NULL */
	uint32_t n_base;
};

struct line_name {
	uint64_t claim, identity;
	uint16_t path_size, tags_size;
	const char *text; /* the path, then the tags with their separator */

	/* The renderer's, at first 0. */
	int64_t last_gauge;
	unsigned int losses;
	bool is_sent;
	uint64_t time_s; /* of the lines sent last */
	uint32_t n_base;
	uint64_t base[]; /* totals before that time */
};

/* NULL: no memory. */
struct line_name *line_name_get(struct line_names *names, struct series *series, const struct line_kind *kind);
/* Forgets the claims of series that are no more, when there are many; batch has all series that are. */
void line_names_sweep(struct line_names *names, const struct batch *batch);
void line_names_done(struct line_names *names);
