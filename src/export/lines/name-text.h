/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Texts as parts of names: rules 1 and 2 of name.h. */

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

#define TEXT_HEX	  "0123456789abcdef"
#define TEXT_DIGITS_BYTES 9 /* "_" and eight digits */
#define TEXT_OVERFLOW	  "otel_metric_overflow"

struct text_rule {
	const char *keeps; /* besides letters and digits */
	size_t limit_bytes;
};

/* Can it stay as it is? */
bool text_is_plain(const struct text_rule *rule, const char *text);
/* text as it is if possible; if not, marked with its own hash. */
void text_append(struct buf *out, const struct text_rule *rule, const char *text);
/* With "_" for each character that is not kept, then digits of hash. */
void text_append_marked(struct buf *out, const struct text_rule *rule, const char *text, uint64_t hash);
/* Without digits, at most limit bytes. */
void text_append_replaced(struct buf *out, const struct text_rule *rule, const char *text, size_t limit);
void text_append_digits(struct buf *out, uint64_t hash);
