/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/pack.h"

#include <errno.h>
#include <string.h>

char *pack_line_begin(struct pack *pack, size_t most)
{
	bool is_separated = !pack->is_stream && pack->buf.size;
	uint8_t *at;

	/* The first piece is as large as it will ever be; the separator or the end of the line is in the 1. */
	at = buf_reserve(&pack->buf, pack->buf.size ? most + 1 : pack->limit_bytes + most + 1);
	if (!at) {
		pack->buf.error = 0; /* what is there stays */
		return NULL;
	}
	if (is_separated)
		*at++ = '\n';
	pack->line_at = pack->buf.size + is_separated;
	return (char *)at;
}

/* Gives away what lies before size, of which it is all. */
static void put(struct pack *pack, size_t size)
{
	int err = pack->put(pack->user, pack->buf.data, size, pack->n_points);

	if (err && !pack->error)
		pack->error = err;
	pack->buf = BUF_INIT;
	pack->n_points = 0;
}

int pack_line_end(struct pack *pack, char *end)
{
	uint8_t *line = pack->buf.data + pack->line_at;
	size_t size, before = pack->buf.size;
	struct buf next = BUF_INIT;

	if (pack->is_stream)
		*end++ = '\n';
	size = (size_t)((uint8_t *)end - line);
	if (size > pack->limit_bytes)
		return -EMSGSIZE;
	if (pack->line_at + size <= pack->limit_bytes) {
		pack->buf.size = pack->line_at + size;
		return 0;
	}
	/* It begins the next piece. */
	if (!buf_reserve(&next, pack->limit_bytes + size))
		return -ENOMEM;
	buf_append(&next, line, size);
	put(pack, before);
	pack->buf = next;
	return 0;
}

int pack_flush(struct pack *pack)
{
	int err;

	if (pack->buf.size)
		put(pack, pack->buf.size);
	err = pack->error;
	pack->error = 0;
	return err;
}
