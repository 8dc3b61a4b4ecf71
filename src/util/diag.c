/* SPDX-License-Identifier: Apache-2.0 */
#include "util/diag.h"

#include "util/parse.h"

void diag_add(struct diag *diag, const char *path, unsigned int line, const char *format, ...)
{
	va_list arguments;

	diag->n_errors++;
	if (line)
		buf_printf(&diag->text, "%s:%u: ", path, line);
	else
		buf_printf(&diag->text, "%s: ", path);
	va_start(arguments, format);
	buf_vprintf(&diag->text, format, arguments);
	va_end(arguments);
	buf_append_byte(&diag->text, '\n');
}

void diag_add_unknown(struct diag *diag, const char *path, unsigned int line, const char *what, const char *word,
		      const char *const *names, size_t n_names)
{
	const char *nearest = parse_nearest(word, names, n_names);
	_cleanup_(buf_done) struct buf list = BUF_INIT;

	if (nearest) {
		diag_add(diag, path, line, "unknown %s \"%s\": did you mean \"%s\"?", what, word, nearest);
		return;
	}
	for (size_t i = 0; i < n_names; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	diag_add(diag, path, line, "unknown %s \"%s\": there %s %s", what, word, n_names == 1 ? "is" : "are",
		 n_names ? buf_text(&list) : "none");
	if (buf_error(&list))
		diag->text.error = buf_error(&list);
}

void diag_done(struct diag *diag)
{
	buf_done(&diag->text);
	diag->n_errors = 0;
}
