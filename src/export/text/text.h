/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Text of a known width: one column a character of UTF-8. */

#include "util/buf.h"

unsigned int text_width(const char *text);
/* As many characters of text as width holds, the last one an ellipsis where some had to go. */
void text_append_cut(struct buf *out, const char *text, unsigned int width);
void text_append_blanks(struct buf *out, unsigned int n);
