/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One line, written directly into its datagram or piece of a stream:
 *
 *     at = line_begin(writer, &line);  …the value at *at…;  line_end(writer, &line, at, "|c");
 *
 * StatsD:   PATH SUFFIX .BOUND ENDING [TAGS] : VALUE TYPE [TAGS]
 * Graphite: PATH SUFFIX .BOUND ENDING [TAGS] VALUE TIME
 */

#include "export/lines/dialect.h"
#include "export/lines/pack.h"

struct line_name {
	const char *text; /* the path, then the tags with the separator before them */
	uint16_t path_size, tags_size;
};

struct line {
	const struct line_name *name;
	const char *suffix, *ending; /* of the path; "" for none */
	const char *bound;	     /* of a bucket: one more tag, or a level between suffix and ending; NULL: none */
};

struct line_writer {
	const struct dialect *dialect;
	struct pack *pack;
	char time[24]; /* what ends Graphite's lines: " 1700000000" */
	size_t time_size;
	/* Since the caller last set them to 0: */
	int failure; /* -errno */
	unsigned int n_lines;
};

/*
 * The place for the value, with room for 64 bytes and the type; NULL: no memory, which is a
 * failure.
 */
char *line_begin(struct line_writer *writer, const struct line *line);
/* at: after the value. type: for StatsD, "|c" or the like, at most 64 bytes. */
void line_end(struct line_writer *writer, const struct line *line, char *at, const char *type);
