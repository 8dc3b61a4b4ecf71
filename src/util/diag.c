/* SPDX-License-Identifier: Apache-2.0 */
#include "util/diag.h"

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

void diag_done(struct diag *diag)
{
	buf_done(&diag->text);
	diag->n_errors = 0;
}
