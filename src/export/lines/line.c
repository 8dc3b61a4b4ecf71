/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/line.h"

#include <errno.h>
#include <string.h>

#include "export/lines/name.h"

#define PART_BYTES 64 /* at most, for a tag with a bound, a suffix with a level, a value and a type each */

static char *put_tags(const struct line_writer *writer, char *at, const struct line *line)
{
	const struct dialect *dialect = writer->dialect;
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

char *line_begin(struct line_writer *writer, const struct line *line)
{
	const struct line_name *name = line->name;
	char *at = pack_line_begin(writer->pack, (size_t)name->path_size + name->tags_size + 6 * PART_BYTES);

	if (!at) {
		writer->failure = -ENOMEM;
		return NULL;
	}
	memcpy(at, name->text, name->path_size);
	at = stpcpy(at + name->path_size, line->suffix);
	if (line->bound && !writer->dialect->tag_first) {
		*at++ = '.';
		at = stpcpy(at, line->bound);
	}
	at = stpcpy(at, line->ending);
	if (!writer->dialect->is_tags_last)
		at = put_tags(writer, at, line);
	*at++ = writer->dialect->is_graphite ? ' ' : ':';
	return at;
}

void line_end(struct line_writer *writer, const struct line *line, char *at, const char *type)
{
	int err;

	if (writer->dialect->is_graphite) {
		memcpy(at, writer->time, writer->time_size);
		at += writer->time_size;
	} else {
		at = stpcpy(at, type);
		if (writer->dialect->is_tags_last)
			at = put_tags(writer, at, line);
	}
	err = pack_line_end(writer->pack, at);
	if (err)
		writer->failure = err;
	else
		writer->n_lines++;
}
