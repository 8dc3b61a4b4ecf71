/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A table of cells, made from numbers, that a terminal, a text and a page show in the same way. A
 * cell is text to read, a number to sort by, and how much it deserves attention.
 *
 * Made row by row:  grid_begin(), grid_add_column() for each column, then for each row
 * grid_add_row() and for each column of it text appended to grid->text and grid_end_cell(). Errors
 * stick in grid->text.
 */

#include "metric/metric.h"
#include "util/buf.h"

enum level { LEVEL_PLAIN,
	     LEVEL_NONE, /* nothing happened, or it has none: to be shown faintly */
	     LEVEL_HIGH, /* stands out */
	     LEVEL_ALARM };

struct grid_cell {
	/* its place in grid->text, where it ends with a NUL; clean UTF-8 in one line */
	size_t text;
	double number;
	enum level level;
};

struct grid_column {
	const char *heading; /* borrowed */
	const char *about;   /* a sentence for a help or a tooltip, or NULL. Borrowed */
	bool is_number;	     /* stands right, and greater ones come first */
	bool is_telling;     /* a cell is not of LEVEL_NONE */
	/* of the widest text, in columns of a terminal (grid_width()); 0: not to be printed */
	unsigned int width;
};

#define GRID_COLUMNS_MAX (ATTRIBUTES_MAX + 16)

struct grid {
	struct buf title; /* what it shows; may be empty */
	struct buf text;
	struct grid_column columns[GRID_COLUMNS_MAX];
	/* sorted: by grid_sort(), by which column; else GRID_COLUMNS_MAX */
	unsigned int n_columns, sorted;
	struct grid_cell *cells; /* of row i: cells[i * n_columns] on */
	const void **rows;	 /* what each row is of, as the maker says */
	size_t n_rows;
	size_t n_left;		 /* rows that grid_limit() has taken out */
	size_t n_cells, n_ended, text_start; /* while it is made */
	/* what bars extend from and to; a heading, so such a grid may not move */
	char axis[64];
};

void grid_begin(struct grid *grid); /* of zeros, or one that has been used */
void grid_add_column(struct grid *grid, const char *heading, const char *about, bool is_number);
void grid_add_row(struct grid *grid, const void *of);
/*
 * Ends the text of the next cell of the last row. What a terminal might show elsewhere or not at
 * all (characters that are invisible, join others or turn their direction) becomes '?', a newline a
 * blank.
 */
void grid_end_cell(struct grid *grid, double number, enum level level);
/* Another text in a cell that has been ended, before grid_sort(). */
void grid_replace(struct grid *grid, size_t row, unsigned int column, const char *text);
void grid_done(struct grid *grid);
void grid_clean(char *text); /* as grid_end_cell() does */
/* The text of one of its cells. */
static inline const char *grid_text(const struct grid *grid, const struct grid_cell *cell)
{
	return grid->text.error ? "" : (const char *)grid->text.data + cell->text;
}

/* The first column with that heading, in any case, or n_columns. */
unsigned int grid_find_column(const struct grid *grid, const char *heading);
/* By a column; equal ones keep their order. Numbers: the greatest first; texts: as strcmp(3). */
void grid_sort(struct grid *grid, unsigned int column, bool is_reversed);
/* Only the first n rows stay; 0: all. */
void grid_limit(struct grid *grid, size_t n);

/*
 * The title, the headings, the rows and how many were left out, as lines of plain text. width: of
 * the screen, which cuts texts and then leaves out columns on the right; 0: as wide as it is.
 * has_colour: SGR sequences for levels.
 */
void grid_print(const struct grid *grid, unsigned int width, bool has_colour, struct buf *out);

/* SGR sequences of these lines, and what reads them. */
#define SGR_END	    "\033[0m"
#define SGR_TITLE   "\033[1m"
#define SGR_FAINT   "\033[2m"
#define SGR_HEADING "\033[4m"
#define SGR_HIGH    "\033[33m"
#define SGR_ALARM   "\033[1;31m"
#define SGR_CHOSEN  "\033[1;36m" /* the column that it is sorted by */

/*
 * How it fits a screen: as many columns as possible, that by which it is sorted among them. Those
 * that tell nothing leave before a text is cut.
 */
struct grid_layout {
	unsigned int widths[GRID_COLUMNS_MAX]; /* 0: left out */
	unsigned int indent, gap, taken, n_out; /* n_out: columns that found no room */
};

void grid_lay_out(const struct grid *grid, unsigned int width, unsigned int indent,
		  struct grid_layout *ret_layout);
/* A row, or the headings (before row 0), without a newline. */
#define GRID_HEADINGS SIZE_MAX
void grid_print_row(const struct grid *grid, const struct grid_layout *layout, size_t row,
		    bool has_colour, struct buf *out);

/*
 * Columns of a terminal that a text takes: 0 for combining characters, 2 for wide ones. Needs
 * LC_CTYPE in UTF-8.
 */
unsigned int grid_width(const char *text);
/*
 * For a terminal whose locale is not in UTF-8: characters that it lacks become others of the same
 * width.
 */
void grid_to_locale(char *text);
/* How many bytes of text width holds, in whole characters. */
size_t grid_fit(const char *text, unsigned int width);
/*
 * As much of text as width holds: without ".service", or both ends of the rest around an ellipsis,
 * in few columns only its beginning.
 */
void grid_cut(struct buf *out, const char *text, unsigned int width);

/*
 * A metric as a grid: its attributes (owner, executable and pid first; when the process began comes
 * last), then of a
 *     sum        total, rate
 *     gauge      value
 *     histogram  count, rate, sum, mean, p50, p90, p99, max, and its buckets as bars on an axis
 *                that all rows share
 * Rows are struct series *, those that grew most first (histograms: whose sum did), and before them
 * the overflow series. elapsed_ns: how long it took what rates are made of.
 */
enum grid_span { GRID_BOTH,	/* rates are of the last interval, all else since counting began */
		 GRID_INTERVAL, /* all is of the last interval */
		 GRID_WHOLE };	/* all is since counting began */
void grid_of_metric(struct grid *grid, const struct metric *metric, uint64_t elapsed_ns,
		    enum grid_span span);
/*
 * The headings of the numbers that metrics of these kinds have, a set of enum metric_kind; how
 * many.
 */
#define GRID_NUMBERS_MAX 10
size_t grid_list_numbers(unsigned int kinds, const char **ret_headings);
/* What is counted in unit, per second; of a time, in % of a CPU. */
void grid_append_rate(struct buf *out, double value, const char *unit);
/*
 * A cell with an attribute of series as people read it, or none if it has not; of an overflow
 * series, with its name.
 */
void grid_end_attribute(struct grid *grid, const struct series *series,
			const struct attribute *found, const char *none);
/*
 * The heading of an attribute: the end of its name that says what it is, as "unit", "syscall.name",
 * "direction".
 */
const char *grid_heading(const char *attribute);
