/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/pack.h"

#include <errno.h>
#include <string.h>

#include "export/lines/name.h"

/* at most, for a tag with a bound, a suffix with a level, a value and a type each */
#define PART_BYTES 64

/* Gives away what is in the buffer, of which it is all. */
static void put_piece(struct pack *pack)
{
	int err = pack->put(pack->user, pack->buf.data, pack->buf.size, pack->n_points);

	pack->error = pack->error ?: err;
	pack->n_pieces++;
	pack->n_bytes += pack->buf.size;
	pack->buf = BUF_INIT;
	pack->n_points = 0;
}

/* The line, which follows what is in the buffer, joins that, or begins the next piece. */
static int add_line(struct pack *pack, const uint8_t *line, size_t size)
{
	size_t end = (size_t)(line - pack->buf.data) + size;
	struct buf next = BUF_INIT;

	if (size > pack->limit_bytes)
		return -EMSGSIZE;
	if (end <= pack->limit_bytes) {
		pack->buf.size = end;
		return 0;
	}
	if (!buf_reserve(&next, pack->limit_bytes + size))
		return -ENOMEM;
	buf_append(&next, line, size);
	put_piece(pack);
	pack->buf = next;
	return 0;
}

static char *put_tags(const struct pack *pack, char *at, const struct line *line)
{
	const struct dialect *dialect = pack->dialect;
	const struct line_name *name = line->name;

	at = mempcpy(at, name->text + name->path_size, name->tags_size);
	if (!line->bound || !dialect->tag_first)
		return at;
	if (name->tags_size)
		*at++ = dialect->tag_next;
	else
		at = stpcpy(at, dialect->tag_first);
	at = stpcpy(at, NAME_TAG_UPPER);
	*at++ = dialect->tag_equals;
	return stpcpy(at, line->bound);
}

/* Behind what is in the buffer, as far as that belongs to it. */
static char *put_line(const struct pack *pack, char *at, const struct line *line, const char *value,
		      const char *type)
{
	const struct dialect *dialect = pack->dialect;

	at = stpcpy(mempcpy(at, line->name->text, line->name->path_size), line->suffix);
	if (line->bound && !dialect->tag_first)
		at = stpcpy(stpcpy(at, "."), line->bound);
	at = stpcpy(at, line->ending);
	if (!dialect->is_tags_last)
		at = put_tags(pack, at, line);
	*at++ = dialect->is_graphite ? ' ' : ':';
	at = stpcpy(stpcpy(at, value), dialect->is_graphite ? pack->time : type);
	return dialect->is_tags_last ? put_tags(pack, at, line) : at;
}

void pack_line(struct pack *pack, const struct line *line, const char *value, const char *type)
{
	size_t most = (size_t)line->name->path_size + line->name->tags_size + 6 * PART_BYTES;
	bool is_separated = !pack->dialect->is_graphite && pack->buf.size;
	/* The first piece is as large as it will ever be. */
	uint8_t *at = buf_reserve(&pack->buf, pack->buf.size ? most : pack->limit_bytes + most);
	int err = -ENOMEM;

	if (at && is_separated)
		*at++ = '\n';
	if (at) {
		char *end = put_line(pack, (char *)at, line, value, type);

		err = add_line(pack, at, (size_t)((uint8_t *)end - at));
	}
	pack->buf.error = 0; /* what is there stays */
	if (err)
		pack->failure = err;
	else
		pack->n_lines++;
	if (err == -ENOMEM && !pack->error)
		pack->error = err;
}

int pack_flush(struct pack *pack)
{
	int err;

	if (pack->buf.size)
		put_piece(pack);
	err = pack->error;
	pack->error = 0;
	return err;
}
