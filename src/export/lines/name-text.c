/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/name-text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "util/hash.h"

static bool is_kept(const struct text_rule *rule, char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	       strchr(rule->keeps, byte);
}

static bool ends_in_digits(const char *text, size_t size)
{
	return size >= TEXT_DIGITS_BYTES && text[size - TEXT_DIGITS_BYTES] == '_' &&
	       strspn(text + size - TEXT_DIGITS_BYTES + 1, TEXT_HEX) == TEXT_DIGITS_BYTES - 1;
}

bool text_is_plain(const struct text_rule *rule, const char *text)
{
	size_t size = 0;

	while (text[size] && is_kept(rule, text[size]))
		size++;
	return size && !text[size] && size <= rule->limit_bytes && !ends_in_digits(text, size) && strcmp(text, "_") &&
	       strcmp(text, TEXT_OVERFLOW);
}

void text_append_digits(struct buf *out, uint64_t hash)
{
	buf_printf(out, "_%08" PRIx32, (uint32_t)hash);
}

void text_append_replaced(struct buf *out, const struct text_rule *rule, const char *text, size_t limit)
{
	size_t at = out->size;

	for (const char *byte = text; *byte && out->size - at < limit; byte++) {
		if (is_kept(rule, *byte))
			buf_append_byte(out, (uint8_t)*byte);
		else if (((unsigned char)*byte & 0xc0) != 0x80) /* the first byte of a character of UTF-8 */
			buf_append_byte(out, '_');
	}
	if (out->size == at)
		buf_append_byte(out, '_');
}

void text_append_marked(struct buf *out, const struct text_rule *rule, const char *text, uint64_t hash)
{
	text_append_replaced(out, rule, text, rule->limit_bytes - TEXT_DIGITS_BYTES);
	text_append_digits(out, hash);
}

void text_append(struct buf *out, const struct text_rule *rule, const char *text)
{
	if (text_is_plain(rule, text))
		buf_append_text(out, text);
	else
		text_append_marked(out, rule, text, hash_stable(HASH_STABLE_START, text, strlen(text)));
}
