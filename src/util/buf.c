/* SPDX-License-Identifier: Apache-2.0 */
#include "util/buf.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define KEPT_BYTES (256u << 10) /* by buf_reset(), in any case */

uint8_t *buf_reserve(struct buf *buf, size_t size)
{
	size_t capacity = buf->capacity ?: 256, needed = buf->size + size + 1;
	uint8_t *data;

	if (buf->error)
		return NULL;
	/* The sum may have wrapped around. */
	if (needed <= size || (buf->limit_bytes && needed - 1 > buf->limit_bytes)) {
		buf->error = -EFBIG;
		return NULL;
	}
	if (needed <= buf->capacity)
		return buf->data + buf->size;

	while (capacity < needed)
		capacity += capacity / 2 + 256;
	data = realloc(buf->data, capacity);
	if (!data) {
		buf->error = -ENOMEM;
		return NULL;
	}
	buf->data = data;
	buf->capacity = capacity;
	return data + buf->size;
}

void buf_append(struct buf *buf, const void *data, size_t size)
{
	uint8_t *end = buf_reserve(buf, size);

	if (!end || !size)
		return;
	memcpy(end, data, size);
	buf->size += size;
}

void buf_append_text(struct buf *buf, const char *text)
{
	buf_append(buf, text, strlen(text));
}

void buf_append_byte(struct buf *buf, uint8_t byte)
{
	buf_append(buf, &byte, 1);
}

/* text up to the first of the special characters, which is at *text then. False: there is none. */
static bool append_plain(struct buf *buf, const char **text, const char *special)
{
	size_t plain = strcspn(*text, special);

	buf_append(buf, *text, plain);
	*text += plain;
	return **text;
}

void buf_append_json(struct buf *out, const char *text)
{
	static const char special[] = "\"\\\x01\x02\x03\x04\x05\x06\a\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16"
				      "\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f";

	buf_append_byte(out, '"');
	for (; append_plain(out, &text, special); text++)
		buf_printf(out, (unsigned char)*text < 0x20 ? "\\u%04x" : "\\%c", *text);
	buf_append_byte(out, '"');
}

void buf_append_html(struct buf *out, const char *text)
{
	for (; append_plain(out, &text, "&<>\"'"); text++)
		buf_printf(out, "&#%d;", *text);
}

void buf_append_csv(struct buf *buf, const char *text)
{
	bool is_quoted = strpbrk(text, ",\"\r\n");

	buf_append_text(buf, is_quoted ? "\"" : "");
	buf_append_text(buf, *text && strchr("=+-@'", *text) ? "'" : "");
	for (; *text; text++) {
		buf_append_text(buf, *text == '"' ? "\"" : "");
		buf_append_byte(buf, (uint8_t)*text);
	}
	buf_append_text(buf, is_quoted ? "\"" : "");
}

void buf_append_pairs(struct buf *json, ...)
{
	const char *name, *text;
	va_list pairs;

	buf_append_byte(json, '{');
	va_start(pairs, json);
	while ((name = va_arg(pairs, const char *))) {
		text = va_arg(pairs, const char *);
		if (!text)
			continue;
		buf_printf(json, "\"%s\":", name);
		buf_append_json(json, text);
		buf_append_byte(json, ',');
	}
	va_end(pairs);
}

void buf_end_list(struct buf *json, const char *end)
{
	if (json->size && json->data[json->size - 1] == ',')
		json->size--;
	buf_append_text(json, end);
}

void buf_vprintf(struct buf *buf, const char *format, va_list arguments)
{
	va_list copy;
	uint8_t *end;
	int length;

	va_copy(copy, arguments);
	length = vsnprintf(NULL, 0, format, copy);
	va_end(copy);
	if (length < 0) {
		buf->error = -EINVAL;
		return;
	}
	end = buf_reserve(buf, (size_t)length);
	if (!end)
		return;
	/* buf_reserve() always keeps room for the NUL. */
	vsnprintf((char *)end, (size_t)length + 1, format, arguments);
	buf->size += (size_t)length;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	buf_vprintf(buf, format, arguments);
	va_end(arguments);
}

const char *buf_text(struct buf *buf)
{
	uint8_t *end = buf_reserve(buf, 0);

	if (!end)
		return "";
	*end = '\0';
	return (const char *)buf->data;
}

int buf_error(const struct buf *buf)
{
	return buf->error;
}

void buf_done(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){ .limit_bytes = buf->limit_bytes };
}

void buf_reset(struct buf *buf)
{
	/* What one large use needed, the next ones do not. */
	if (buf->capacity > KEPT_BYTES && buf->size < buf->capacity / 8)
		buf_done(buf);
	buf->size = 0;
	buf->error = 0;
}
