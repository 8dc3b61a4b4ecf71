/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/json-text.h"

#include <string.h>

void json_append_text(struct buf *out, const char *text)
{
	buf_append_byte(out, '"');
	while (*text) {
		size_t plain = 0;

		while ((unsigned char)text[plain] >= 0x20 && text[plain] != '"' && text[plain] != '\\')
			plain++;
		buf_append(out, text, plain);
		text += plain;
		if (!*text)
			break;
		if ((unsigned char)*text < 0x20)
			buf_printf(out, "\\u%04x", (unsigned char)*text);
		else
			buf_printf(out, "\\%c", *text);
		text++;
	}
	buf_append_byte(out, '"');
}
