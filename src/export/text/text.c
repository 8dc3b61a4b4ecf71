/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/text.h"

#include <stdbool.h>

/* Characters, counted by their first bytes. */
static bool is_first_byte(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

unsigned int text_width(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += is_first_byte(*text);
	return n;
}

void text_append_cut(struct buf *out, const char *text, unsigned int width)
{
	unsigned int n = 0, kept = text_width(text) > width ? width - 1 : width;
	const char *end = text;

	if (!width)
		return;
	for (; *end; end++) {
		n += is_first_byte(*end);
		if (n > kept)
			break;
	}
	buf_append(out, text, (size_t)(end - text));
	if (*end)
		buf_append_text(out, "\xe2\x80\xa6");
}

void text_append_blanks(struct buf *out, unsigned int n)
{
	while (n--)
		buf_append_byte(out, ' ');
}
