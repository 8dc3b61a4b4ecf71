/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The number of bytes (1 to 4) of the well-formed UTF-8 character at text, which has size bytes, or
 * 0 if there is none. Well-formed as in Unicode, table 3-7, so not overlong, not a surrogate, and
 * not above U+10FFFF.
 */
size_t utf8_bytes(const char *text, size_t size);
/* Is it a control character (C0, DEL, C1)? text begins with a well-formed character. */
bool utf8_is_control(const char *text);
/* Like utf8_bytes(), but also 0 for a control character. */
size_t utf8_printable_bytes(const char *text, size_t size);
/* Does the text end before max bytes, and hold nothing but well-formed, printable characters? */
bool utf8_is_printable(const char *text, size_t max);
/*
 * Makes one harmless line of text: each control character and each bad byte becomes '?', tab a
 * space.
 */
void utf8_clean(char *text);
