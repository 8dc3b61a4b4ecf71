/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Events as lines for people: the time, then a column for each attribute. A column grows when a
 * value does not fit. If events of several names are shown, they have few attributes in common:
 * then each line has the name, the unit and "attribute=value".
 */

#include "metric/event.h"
#include "util/buf.h"

#define EVENT_COLUMNS_MAX 256

struct event_lines {
	struct event_column {
		const char *attribute; /* borrowed */
		unsigned int width;
	} columns[EVENT_COLUMNS_MAX];
	size_t n_columns;
	unsigned int width; /* of the terminal, where lines are cut; 0: none is */
	bool has_colour;
	bool has_several; /* names */
	bool has_all_owners; /* each name of an owner has its own column */
	bool is_alone;	     /* all have one owner, which is not shown */
	bool has_headings;
};

/* An attribute that events may have. One that has a column already, or has no room, gets none. */
void event_lines_add_column(struct event_lines *lines, const char *attribute);
/* Appends its line, the first time after one of headings. */
void event_lines_append(struct event_lines *lines, const struct event *event, struct buf *out);
/* The same as one line of JSON, or of CSV after one of the columns' names. */
void event_append_json(const struct event *event, struct buf *out);
void event_lines_append_csv(struct event_lines *lines, const struct event *event, struct buf *out);
