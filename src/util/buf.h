/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A growing run of bytes. Errors stick: after a failed allocation, or at the limit, every append
 * does nothing and buf_error() says why. So a writer appends freely and checks once.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct buf {
	uint8_t *data;
	size_t size;
	size_t capacity;
	size_t limit_bytes; /* 0: none; over it: -EFBIG */
	int error;	    /* 0 or -errno */
};

#define BUF_INIT ((struct buf){ 0 })

void buf_append(struct buf *buf, const void *data, size_t size);
void buf_append_text(struct buf *buf, const char *text);
void buf_append_byte(struct buf *buf, uint8_t byte);
/* text as a JSON string, quotes included (RFC 8259, 7). text is UTF-8. */
void buf_append_json(struct buf *buf, const char *text);
/* text as it stands in HTML or XML, also within quotes. */
void buf_append_html(struct buf *buf, const char *text);
/*
 * text as a field of CSV (RFC 4180). A spreadsheet takes a text that begins with = + - or @ for a
 * formula, even inside quotes, and names come from strangers. So such a text begins with an
 * apostrophe, and one that begins with an apostrophe gets another: what drops one apostrophe from
 * the beginning of each text has the texts as they were.
 */
void buf_append_csv(struct buf *buf, const char *text);
/*
 * "{" and members, each of a name and a text, with a comma after it; a text that is NULL makes
 * none.
 */
#define buf_begin_object(json, ...) buf_append_pairs(json, __VA_ARGS__, (const char *)NULL)
void buf_append_pairs(struct buf *json, ...) __attribute__((sentinel));
/* end, in place of the comma after the last member or item. */
void buf_end_list(struct buf *json, const char *end);
void buf_printf(struct buf *buf, const char *format, ...) _printf_(2, 3);
void buf_vprintf(struct buf *buf, const char *format, va_list arguments) _printf_(2, 0);
/* Room for size more bytes at data + size, or NULL; the caller adds to .size what it wrote. */
uint8_t *buf_reserve(struct buf *buf, size_t size);
/* The content as a C string (followed by a NUL that size does not count); "" after an error. */
const char *buf_text(struct buf *buf);
int buf_error(const struct buf *buf);
/* Empties, clears the error, and keeps the memory, unless much less of much was used. */
void buf_reset(struct buf *buf);
void buf_done(struct buf *buf);	 /* frees; safe twice */

/* For messages: "%u mistake%s", n, plural(n). */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}
