/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Packs lines into datagrams, or into pieces of a stream: as many whole lines as fit into
 * limit_bytes. Each line is built in place.
 *
 *     StatsD:   PATH SUFFIX .BOUND ENDING [TAGS] : VALUE TYPE [TAGS]
 *     Graphite: PATH SUFFIX .BOUND ENDING [TAGS] VALUE TIME
 */

#include <stddef.h>
#include <stdint.h>

#include "export/lines/dialect.h"
#include "util/buf.h"

struct pack {
	/* of Graphite: a newline ends every line; else it only stands between two */
	const struct dialect *dialect;
	size_t limit_bytes;
	/* takes data over, also on failure */
	int (*put)(void *user, uint8_t *data, size_t size, size_t n_points);
	void *user;

	size_t n_points; /* that end in buf, maybe none; the caller adds each after its last line */
	char time[24];	 /* what ends Graphite's lines: " 1700000000\n" */
	/* Since the caller last set them to 0: */
	/*
	 * -errno, of a line: -EMSGSIZE: it is longer than limit_bytes; it is left out, as on
	 * -ENOMEM
	 */
	int failure;
	unsigned int n_lines;
	size_t n_pieces, n_bytes; /* that were put */

	int error;	/* 0 or -errno, the first one of memory or of put(); until the next flush */
	struct buf buf; /* for buf_done() at the end */
};

struct line_name {
	const char *text; /* the path, then the tags with the separator before them */
	uint16_t path_size, tags_size;
};

struct line {
	const struct line_name *name;
	const char *suffix, *ending; /* of the path; "" for none */
	/* of a bucket: one more tag, or a level between suffix and ending; NULL: none */
	const char *bound;
};

/* value, and for StatsD type ("|c" or the like): of at most 64 bytes each. */
void pack_line(struct pack *pack, const struct line *line, const char *value, const char *type);
/* Puts the rest. Returns the first error since the last flush, or 0. */
int pack_flush(struct pack *pack);
