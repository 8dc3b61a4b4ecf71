/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A metric's series as a table for people. The attributes that say whose a series is share one
 * column, since each series has one of them; columns give way where a line would be too wide. The
 * series of what is over the limit has no cells: it says so across all columns.
 */

#include "export/text/columns.h"
#include "util/buf.h"

struct table {
	struct columns columns;
	int owner; /* index of the column that owners share; -1: there is one kind of them at most */
	unsigned int widths[ATTRIBUTES_MAX];
};

void table_find(struct table *table, const struct metric *metric);
/* " by NAME, NAME"; "owner" for the column that is shared. */
void table_append_names(const struct table *table, struct buf *out);
/* Sets the widths for n series; limit: of all columns together, 0 for none. -ENOMEM. */
int table_fit(struct table *table, struct series *const *series, size_t n, unsigned int limit);
/* The cells of one series, each after two blanks and as wide as its column. -ENOMEM. */
int table_append_cells(const struct table *table, const struct series *series, struct buf *out);

/* One column for each character of UTF-8. */
unsigned int text_width(const char *text);
/* As many characters of text as width holds; the last one is an ellipsis where some had to go. */
void text_append_cut(struct buf *out, const char *text, unsigned int width);
