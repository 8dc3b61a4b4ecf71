/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which unit is busy, and with what: a grid with a row for each unit (or process, or whatever is
 * asked for) and a column for each of the quantities that matter most. What a column is made of is
 * a table.
 *
 * Two questions belong to it: the one of the rows, by unit, and the one of the view, which also
 * tells apart what the columns need, as failed calls. The second is the same as the first, and
 * overview_extend() of it.
 */

#include "view/grid.h"
#include "view/question.h"

/* One for each column after those of the attributes. */
struct overview_column {
	const char *heading, *about;
	const char *metric;
	/* of the series that count; value NULL: any; attribute NULL: all */
	const char *attribute, *value;
	enum {
		OVERVIEW_RATE,
		OVERVIEW_BYTES,	      /* per second */
		OVERVIEW_SHARE,	      /* of a CPU, in % */
		OVERVIEW_P99,
		OVERVIEW_LEVEL,	      /* at this time */
		OVERVIEW_LEVEL_BYTES,
		OVERVIEW_STALL,	      /* of the time, in %; the largest of the series that count */
	} kind;
	double high, alarm; /* from which on it stands out, as shown: /s, %, s; 0: never */
};

extern const struct overview_column overview_columns[];
extern const size_t overview_n_columns;

/*
 * Adds the metrics of the columns to those asked for, and the attributes to those that are told
 * apart. -ENOMEM.
 */
int overview_extend(struct question *question);
/* Is it one of those attributes? */
bool overview_needs(const char *word);
/* Does it tell processes apart in what the columns show? */
bool overview_has_processes(const struct batch *batch);
/*
 * batch: an answer to the question of the view. rows: with at least one attribute in .by; each is a
 * column. A quantity whose metric the batch lacks has no column, and neither has a level without
 * series. Rows are struct series *: any of the row's. Sorted by the first quantity. begin_ns: when
 * counting began, for numbers since then; 0: those of the last interval.
 */
void overview_fill(struct grid *grid, const struct question *rows, const struct batch *batch,
		   uint64_t begin_ns);
