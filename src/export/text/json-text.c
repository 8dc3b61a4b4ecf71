/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/json-text.h"

#include <inttypes.h>
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

void json_append_value(struct buf *out, const struct attribute *attribute)
{
	switch (attribute->type) {
	case ATTRIBUTE_TEXT:
		json_append_text(out, attribute->text);
		break;
	case ATTRIBUTE_NUMBER:
		buf_printf(out, "%" PRId64, attribute->number);
		break;
	case ATTRIBUTE_FLAG:
		buf_append_text(out, attribute->number ? "true" : "false");
		break;
	}
}
