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

#include "util/buf.h"

struct pack {
	size_t limit_bytes;
	bool is_stream; /* a newline ends every line; in a datagram it only stands between two */
	int (*put)(void *user, uint8_t *data, size_t size, size_t n_points); /* takes data over, also on failure */
	void *user;

	size_t n_points; /* that end in buf; the caller adds each after its last line */

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
