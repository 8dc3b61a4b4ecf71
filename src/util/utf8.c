/* SPDX-License-Identifier: Apache-2.0 */
#include "util/utf8.h"

#include <stdint.h>
#include <string.h>

#include "util/cleanup.h"

size_t utf8_bytes(const char *text, size_t size)
{
	static const struct {
		uint8_t first_low, first_high, second_low, second_high, bytes;
	} forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const uint8_t *byte = (const uint8_t *)text;

	if (!size)
		return 0;
	if (byte[0] < 0x80)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (byte[0] < forms[i].first_low || byte[0] > forms[i].first_high)
			continue;
		if (size < forms[i].bytes || byte[1] < forms[i].second_low ||
		    byte[1] > forms[i].second_high)
			return 0;
		for (size_t j = 2; j < forms[i].bytes; j++)
			if ((byte[j] & 0xc0) != 0x80)
				return 0;
		return forms[i].bytes;
	}
	return 0;
}

bool utf8_is_control(const char *text)
{
	const uint8_t *byte = (const uint8_t *)text;

	return byte[0] < 0x20 || byte[0] == 0x7f || (byte[0] == 0xc2 && byte[1] < 0xa0);
}

void utf8_clean(char *text)
{
	size_t size = strlen(text);

	while (size) {
		size_t bytes = utf8_bytes(text, size);

		if (!bytes || utf8_is_control(text)) {
			memset(text, *text == '\t' ? ' ' : '?', bytes ? bytes : 1);
			bytes = bytes ? bytes : 1;
		}
		text += bytes;
		size -= bytes;
	}
}
