/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The columns of a metric's table as a person sees them: the attributes that tell whose a series is, of
 * which each series has one, share a column, and columns give way where a line would be too wide. The series
 * of what is over the limit has no cells but says so across all columns.
 */

#include "export/columns.h"

struct layout {
	struct columns columns;
	int owner; /* index of the column that owners share; -1: there is one kind of them at most */
	unsigned int widths[ATTRIBUTES_MAX];
};

void layout_find(struct layout *layout, const struct metric *metric);
/* " by NAME, NAME"; "owner" for the column that is shared. */
void layout_append_names(const struct layout *layout, struct buf *out);
/* Sets the widths for n series; limit: of all columns together, 0 for none. -ENOMEM. */
int layout_fit(struct layout *layout, struct series *const *series, size_t n, unsigned int limit);
/* The cells of one series, each behind two blanks and as wide as its column. -ENOMEM. */
int layout_append_cells(const struct layout *layout, const struct series *series, struct buf *out);
