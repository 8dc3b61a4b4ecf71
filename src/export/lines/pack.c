/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/pack.h"

#include <errno.h>
#include <string.h>

#include "export/lines/name.h"

#define PART_BYTES 64 /* at most, for a tag with a bound, a suffix with a level, a value and a type each */

char *pack_line_begin(struct pack *pack, size_t most)
{
	bool is_separated = !pack->dialect->is_graphite && pack->buf.size;
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

	if (pack->dialect->is_graphite)
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

/* Lines */

static char *put_tags(const struct pack *pack, char *at, const struct line *line)
{
	const struct dialect *dialect = pack->dialect;
	const struct line_name *name = line->name;

	memcpy(at, name->text + name->path_size, name->tags_size);
	at += name->tags_size;
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

char *line_begin(struct pack *pack, const struct line *line)
{
	const struct line_name *name = line->name;
	char *at = pack_line_begin(pack, (size_t)name->path_size + name->tags_size + 6 * PART_BYTES);

	if (!at) {
		pack->failure = -ENOMEM;
		return NULL;
	}
	memcpy(at, name->text, name->path_size);
	at = stpcpy(at + name->path_size, line->suffix);
	if (line->bound && !pack->dialect->tag_first) {
		*at++ = '.';
		at = stpcpy(at, line->bound);
	}
	at = stpcpy(at, line->ending);
	if (!pack->dialect->is_tags_last)
		at = put_tags(pack, at, line);
	*at++ = pack->dialect->is_graphite ? ' ' : ':';
	return at;
}

void line_end(struct pack *pack, const struct line *line, char *at, const char *type)
{
	int err;

	if (pack->dialect->is_graphite) {
		memcpy(at, pack->time, pack->time_size);
		at += pack->time_size;
	} else {
		at = stpcpy(at, type);
		if (pack->dialect->is_tags_last)
			at = put_tags(pack, at, line);
	}
	err = pack_line_end(pack, at);
	if (err)
		pack->failure = err;
	else
		pack->n_lines++;
}
