/* SPDX-License-Identifier: Apache-2.0 */
#include "util/diag.h"

#include <errno.h>
#include <string.h>

#include "util/parse.h"
#include "util/utf8.h"

/*
 * Where a message goes: before those about later lines of the same file, else after all about it,
 * else at the end.
 */
static size_t find_place(const char *text, const char *path, unsigned int line)
{
	size_t length = strlen(path), place = strlen(text);

	for (const char *at = text, *next; *at; at = next) {
		next = strchrnul(at, '\n') + 1;
		if (strncmp(at, path, length) || at[length] != ':')
			continue;
		if (at[length + 1] != ' ' && strtoul(at + length + 1, NULL, 10) > line)
			return (size_t)(at - text);
		place = (size_t)(next - text);
	}
	return place;
}

void diag_add(struct diag *diag, const char *path, unsigned int line, const char *format, ...)
{
	_cleanup_(freep) char *after = NULL;
	va_list arguments;
	size_t place;

	if (diag->n_errors++ == DIAG_SHOWN_MAX)
		buf_printf(&diag->text, "bpfpush: %d messages, the rest is not shown\n", DIAG_SHOWN_MAX);
	if (diag->n_errors > DIAG_SHOWN_MAX)
		return;
	place = find_place(buf_text(&diag->text), path, line);
	after = strdup(buf_text(&diag->text) + place);
	if (!after) {
		diag->text.error = -ENOMEM;
		return;
	}
	diag->text.size = place;
	if (line)
		buf_printf(&diag->text, "%s:%u: ", path, line);
	else
		buf_printf(&diag->text, "%s: ", path);
	va_start(arguments, format);
	buf_vprintf(&diag->text, format, arguments);
	va_end(arguments);
	if (*buf_text(&diag->text))
		utf8_clean((char *)diag->text.data + place);
	buf_append_byte(&diag->text, '\n');
	buf_append_text(&diag->text, after);
}

void diag_add_none_of(struct diag *diag, const char *path, unsigned int line, const char *what,
		      const char *word, const void *items, size_t n, size_t item_bytes)
{
	const char *nearest = word ? parse_nearest_of(word, items, n, item_bytes) : NULL;
	const char *are = n == 1 ? "is" : "are";
	_cleanup_(buf_done) struct buf list = BUF_INIT;

	if (nearest) {
		diag_add(diag, path, line, "unknown %s \"%s\": did you mean \"%s\"?", what, word, nearest);
		return;
	}
	for (size_t i = 0; i < n; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", array_name(items, i, item_bytes));
	if (word)
		diag_add(diag, path, line, "unknown %s \"%s\": there %s %s", what, word, are, n ? buf_text(&list) : "none");
	else
		diag_add(diag, path, line, "%s is missing: there are %s", what, buf_text(&list));
	if (buf_error(&list))
		diag->text.error = buf_error(&list);
}

void diag_done(struct diag *diag)
{
	buf_done(&diag->text);
	diag->n_errors = 0;
}
