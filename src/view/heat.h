/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A heat map of a histogram: time from left to right, one column for each collection; values from
 * below to above, one row for each bucket; as colour how many values. The axis of values is that of
 * the buckets, so mostly logarithmic.
 */

#include "metric/metric.h"
#include "util/buf.h"

struct heat;

/*
 * For a histogram, whose texts and bounds are borrowed. Keeps the last n_columns collections. NULL:
 * no memory.
 */
struct heat *heat_new(const struct metric *metric, size_t n_columns);
struct heat *heat_free(struct heat *heat);
/*
 * One column more: the deltas of all present series of metric together, one of the same layout.
 * What was collected in less than half of the time of the column before joins that column, as the
 * rest at the end of a run does.
 */
void heat_add(struct heat *heat, const struct metric *metric, uint64_t time_ns);
/* Has no value been counted? */
bool heat_is_empty(const struct heat *heat);

/*
 * Colours and characters rise with the logarithm of a cell's count, so that a few outliers are
 * visible next to many.
 */
#define HEAT_LEVELS 9

/*
 * The map as cells. Neighbouring collections and buckets are put together until they fit. Row 0 is
 * the lowest; if there are zeros, it is theirs alone, and lasts up to the next bucket that holds
 * something.
 */
struct heat_cells {
	size_t n_rows, n_columns;
	uint64_t *counts;   /* row * n_columns + column; owned */
	/* Unix time: column i lasts from times_ns[i] to times_ns[i + 1]; in counts */
	uint64_t *times_ns;
	uint64_t most;	    /* the greatest count */
	/* buckets: where rows 0 and 1 begin, and how many each from 1 on holds */
	uint32_t first, second, step;
	/* so often each column fits, once there are all that heat_new() was told of */
	size_t stretch;
};

/* Without values, it has no rows. -ENOMEM. heat_cells_done() frees after that, too. */
int heat_cells_init(struct heat_cells *cells, const struct heat *heat, size_t columns_max,
		    size_t rows_max);
void heat_cells_done(struct heat_cells *cells);
/* 0: nothing; else 1 to HEAT_LEVELS. */
unsigned int heat_level(const struct heat_cells *cells, uint64_t count);
/* The value at which a row begins, as text; row n_rows: at which the last one ends. */
void heat_append_limit(struct buf *out, const struct heat *heat, const struct heat_cells *cells,
		       size_t row);
/* A time of day, in UTC: "14:05:09", with n_digits more for parts of a second (0 to 9). */
void heat_append_time(struct buf *out, uint64_t time_ns, int n_digits);
/* The name of the metric, and whether several of its series are in the map. */
void heat_append_name(struct buf *out, const struct heat *heat);

/*
 * For a terminal of that size; has_colour: SGR sequences of 256 colours, else characters of rising
 * density.
 */
void heat_print(const struct heat *heat, unsigned int width, unsigned int height, bool has_colour,
		struct buf *out);
/*
 * A whole <svg> element, also for a file of its own, with the same and a tooltip for each cell. Its
 * colours are attributes, which a page replaces by the classes: heat-back, heat-text, and heat-1 to
 * heat-9 of cells.
 */
void heat_svg(const struct heat *heat, struct buf *out);
