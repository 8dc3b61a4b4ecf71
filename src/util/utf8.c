/* SPDX-License-Identifier: Apache-2.0 */
#include "util/utf8.h"

#include <stdint.h>
#include <string.h>

size_t utf8_bytes(const char *text, size_t size)
{
	/* The least character of each length: a shorter form of it is the only one. */
	static const uint32_t least[] = { [2] = 0x80, [3] = 0x800, [4] = 0x10000 };
	const uint8_t *byte = (const uint8_t *)text;
	uint32_t character;
	size_t bytes;

	if (!size || byte[0] < 0x80)
		return size ? 1 : 0;
	bytes = 2 + (byte[0] >= 0xe0) + (byte[0] >= 0xf0);
	if (byte[0] < 0xc2 || byte[0] > 0xf4 || size < bytes)
		return 0;
	character = byte[0] & (0xff >> (bytes + 1));
	for (size_t i = 1; i < bytes; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (byte[i] & 0x3f);
	}
	if (character < least[bytes] || character > 0x10ffff ||
	    (character >= 0xd800 && character <= 0xdfff))
		return 0;
	return bytes;
}

bool utf8_is_control(const char *text)
{
	const uint8_t *byte = (const uint8_t *)text;

	return byte[0] < 0x20 || byte[0] == 0x7f || (byte[0] == 0xc2 && byte[1] < 0xa0);
}

size_t utf8_printable_bytes(const char *text, size_t size)
{
	size_t bytes = utf8_bytes(text, size);

	return bytes && !utf8_is_control(text) ? bytes : 0;
}

bool utf8_is_printable(const char *text, size_t max)
{
	size_t size = strnlen(text, max), bytes = size < max;

	while (size && (bytes = utf8_printable_bytes(text, size))) {
		text += bytes;
		size -= bytes;
	}
	return bytes;
}

void utf8_clean(char *text)
{
	for (size_t size = strlen(text), bytes; size; text += bytes, size -= bytes) {
		bytes = utf8_bytes(text, size) ?: 1;
		if (!utf8_printable_bytes(text, size))
			memset(text, *text == '\t' ? ' ' : '?', bytes);
	}
}
