/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Packs lines into datagrams, or into pieces of a stream: as many whole lines as fit into
 * limit_bytes. Each line is built in place.
 *
 *     at = pack_line_begin(pack, most);  …write up to most bytes…;  pack_line_end(pack, end);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/lines/dialect.h"
#include "util/buf.h"

struct pack {
	const struct dialect *dialect; /* of Graphite: a newline ends every line; else it only stands between two */
	size_t limit_bytes;
	int (*put)(void *user, uint8_t *data, size_t size, size_t n_points); /* takes data over, also on failure */
	void *user;

	size_t n_points; /* that end in buf; the caller adds each after its last line */
	char time[24];	 /* what ends Graphite's lines: " 1700000000" */
	size_t time_size;
	/* Since the caller last set them to 0: */
	int failure; /* -errno, of a line */
	unsigned int n_lines;

	struct buf buf; /* for buf_done() at the end; this and the rest are pack.c's */
	size_t line_at;
	int error;	 /* 0 or -errno, of put(); it sticks until the next flush */
};

/* Room for a line of at most most bytes; NULL: no memory. */
char *pack_line_begin(struct pack *pack, size_t most);
/* end: after its last byte. -EMSGSIZE: it is longer than limit_bytes. On this and -ENOMEM it is left out. */
int pack_line_end(struct pack *pack, char *end);
/* Puts the rest. Returns the first error since the last flush, or 0. */
int pack_flush(struct pack *pack);

/*
 * One line, written directly into its datagram or piece of a stream:
 *
 *     at = line_begin(pack, &line);  …the value at *at…;  line_end(pack, &line, at, "|c");
 *
 * StatsD:   PATH SUFFIX .BOUND ENDING [TAGS] : VALUE TYPE [TAGS]
 * Graphite: PATH SUFFIX .BOUND ENDING [TAGS] VALUE TIME
 */
struct line_name {
	const char *text; /* the path, then the tags with the separator before them */
	uint16_t path_size, tags_size;
};

struct line {
	const struct line_name *name;
	const char *suffix, *ending; /* of the path; "" for none */
	const char *bound;	     /* of a bucket: one more tag, or a level between suffix and ending; NULL: none */
};

/*
 * The place for the value, with room for 64 bytes and the type; NULL: no memory, which is a
 * failure.
 */
char *line_begin(struct pack *pack, const struct line *line);
/* at: after the value. type: for StatsD, "|c" or the like, at most 64 bytes. */
void line_end(struct pack *pack, const struct line *line, char *at, const char *type);
