/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/attribute.h"

#include <errno.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Bytes of the well-formed, printable UTF-8 character at text (RFC 3629, table 3-7 of Unicode), or 0. */
static size_t character_bytes(const uint8_t *text, size_t size)
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

	if (text[0] >= 0x20 && text[0] < 0x7f)
		return 1;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (text[0] < forms[i].first_low || text[0] > forms[i].first_high)
			continue;
		if (size < forms[i].bytes || text[1] < forms[i].second_low || text[1] > forms[i].second_high)
			return 0;
		for (size_t j = 2; j < forms[i].bytes; j++)
			if ((text[j] & 0xc0) != 0x80)
				return 0;
		/* U+0080 to U+009F are control characters too. */
		return text[0] == 0xc2 && text[1] < 0xa0 ? 0 : forms[i].bytes;
	}
	return 0;
}

void attributes_init(struct attributes *attributes)
{
	attributes->n = 0;
	attributes->used = 0;
}

static struct attribute *add(struct attributes *attributes, const char *name, enum attribute_type type)
{
	struct attribute *item;

	if (attributes->n == ATTRIBUTES_MAX)
		return NULL;
	item = &attributes->items[attributes->n++];
	*item = (struct attribute){ .name = name, .type = type };
	return item;
}

int attributes_add_text(struct attributes *attributes, const char *name, const void *text, size_t size)
{
	char *start = attributes->storage + attributes->used, *end = start;
	size_t room = sizeof(attributes->storage) - attributes->used;
	const uint8_t *from = text;
	struct attribute *item;

	if (room < 2)
		return -ENOSPC;
	if (room > ATTRIBUTE_TEXT_BYTES + 1)
		room = ATTRIBUTE_TEXT_BYTES + 1;
	while (size) {
		size_t bytes = character_bytes(from, size), kept = bytes ? bytes : sizeof(replacement) - 1;

		if ((size_t)(end - start) + kept + 1 > room)
			break;
		memcpy(end, bytes ? (const char *)from : replacement, kept);
		end += kept;
		from += bytes ? bytes : 1;
		size -= bytes ? bytes : 1;
	}
	item = add(attributes, name, ATTRIBUTE_TEXT);
	if (!item)
		return -ENOSPC;
	*end++ = '\0';
	item->text = start;
	attributes->used += (size_t)(end - start);
	return 0;
}

int attributes_add_number(struct attributes *attributes, const char *name, int64_t number)
{
	struct attribute *item = add(attributes, name, ATTRIBUTE_NUMBER);

	if (!item)
		return -ENOSPC;
	item->number = number;
	return 0;
}

int attributes_add_flag(struct attributes *attributes, const char *name, bool flag)
{
	struct attribute *item = add(attributes, name, ATTRIBUTE_FLAG);

	if (!item)
		return -ENOSPC;
	item->number = flag;
	return 0;
}

void attributes_sort(struct attributes *attributes)
{
	for (unsigned int i = 1; i < attributes->n; i++) {
		struct attribute moved = attributes->items[i];
		unsigned int at = i;

		while (at && strcmp(attributes->items[at - 1].name, moved.name) > 0) {
			attributes->items[at] = attributes->items[at - 1];
			at--;
		}
		attributes->items[at] = moved;
	}
}
