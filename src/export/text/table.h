/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The series of a metric as a table: its columns are the attributes, its rows the present series.
 */

#include "metric/metric.h"
#include "util/buf.h"

struct columns {
	const char *names[ATTRIBUTES_MAX]; /* sorted; of any present series; borrowed from them */
	unsigned int n;
};

/* How many series are present. */
size_t columns_count(const struct metric *metric);
void columns_find(struct columns *columns, const struct metric *metric);
/* The attribute of series in each column, NULL where it has none. */
void columns_match(const struct columns *columns, const struct series *series,
		   const struct attribute *ret_cells[ATTRIBUTES_MAX]);
/* Order of two series, for qsort(): left and right are struct series *const *. */
typedef int columns_order_fn(const void *left, const void *right);
/* The present series of metric in that order, for free(), and their number. NULL and 0: no memory, an error of out. */
struct series **columns_sort(const struct metric *metric, columns_order_fn *order, struct buf *out, size_t *ret_n);

/*
 * For people: the attributes of a metric's series. The attributes that say whose a series is share the
 * last place, since each series has one of them at most. The series of what is over the limit shows
 * no attributes and says what it is.
 */
struct table {
	struct columns columns;
	const char *owner; /* what the place of owners is called: as their one kind, or "owner"; NULL: none */
	unsigned int places[ATTRIBUTES_MAX], owners[ATTRIBUTES_MAX], n_places, n_owners; /* columns */
	unsigned int widths[ATTRIBUTES_MAX + 1]; /* of the places */
	unsigned int width;			 /* of a row, with the blanks before each place */
};

void table_find(struct table *table, const struct metric *metric);
/* " by NAME, NAME, OWNER" */
void table_append_names(const struct table *table, struct buf *out);
/* Makes the places wide enough for the values of a series, which scratch is used for. */
void table_widen(struct table *table, const struct series *series, struct buf *scratch);
/*
 * The values of one series, each after two blanks, in columns; "-" where it has none. All series must have
 * been given to table_widen(); then all rows have the width of the table.
 */
void table_append_values(const struct table *table, const struct series *series, struct buf *out);

/* One column for each character of UTF-8. */
unsigned int text_width(const char *text);
/* As many characters of text as width holds; the last one is an ellipsis where some had to go. */
void text_append_cut(struct buf *out, const char *text, unsigned int width);
