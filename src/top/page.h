/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is on the screen, without the screen: pages lie on each other, each with a question of its
 * own, and the one on top has its numbers as grids, whose rows are lines to scroll.
 */

#include "view/grid.h"
#include "view/heat.h"
#include "view/view.h"

enum page_kind { PAGE_OVERVIEW, /* a row for each unit */
		 /* each metric with its busiest series: of one row of an overview, or of all */
		 PAGE_DETAIL,
		 PAGE_METRICS,	/* a row for each metric */
		 PAGE_METRIC,	/* all series of a metric */
		 PAGE_HELP };

struct page {
	enum page_kind kind;
	struct page *below;	  /* what is seen again after it. Owned */
	struct question question; /* of its view */
	struct question rows;	  /* PAGE_OVERVIEW: what a row is of */
	struct setting_list where; /* the conditions, as text */
	char *name;		  /* of the row that it shows, or NULL. Owned */
	struct view *view;	  /* NULL: no collection yet */
	struct heat *heat;
	char sort[64];		  /* the heading of a column, or "": as the grids are made */
	char filter[64];	  /* rows have this text, in any case */
	bool is_reversed;
	size_t limit;		  /* rows of a grid; 0: all */
	size_t cursor, first;	  /* lines: the chosen one, the first on the screen */
};

/* One line of the page on the screen. row: of LINE_HEADINGS: GRID_HEADINGS. */
struct line {
	enum { LINE_TITLE, LINE_HEADINGS, LINE_ROW } kind;
	const struct grid *grid;
	size_t row;
};

struct content {
	struct grid *grids;
	size_t n_grids; /* with a single one, title and headings stand apart */
	size_t n_made;	/* grids that have memory */
	struct line *lines;
	size_t n_lines, n_rows; /* n_rows: without the limit */
};

/*
 * A page above below (NULL: none). by: none: of all attributes, or of an overview by unit. where:
 * copied. NULL: no memory.
 */
struct page *page_new(enum page_kind kind, struct page *below, const struct setting_list *by,
		      const struct setting_list *where);
/* Returns the page below. */
struct page *page_free(struct page *page);
/* Forgets the numbers of it and of all below: another agent counts. */
void page_restart(struct page *page);
/* One collection more, for it alone. -ENOMEM. */
int page_add(struct page *page, const struct batch *batch);
/*
 * Its grids and lines. begin_ns: when counting began, for numbers since then; 0: those of the last
 * interval.
 */
void page_fill(const struct page *page, uint64_t begin_ns, struct content *content);
void content_done(struct content *content);

/*
 * A page above it, of the same series. line: only those of this row of an overview. NULL: no
 * memory.
 */
struct page *page_open(struct page *page, const struct line *line, enum page_kind kind,
		       const char *by);
/*
 * What Enter shows: of a unit its detail, of a metric its series. NULL: there is nothing more to
 * see.
 */
struct page *page_enter(struct page *page, const struct line *line);
