/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the body of an answer says. It comes from outside, so it need not be what its content type promises:
 * whatever makes no sense is skipped, and texts may still hold bytes that cannot be printed.
 */

#include <stdbool.h>

#define WORDS_BYTES 1024

bool words_is_type(const char *content_type, const char *type);
/*
 * The string, with its escapes resolved, or the number that belongs to the first such key, at any depth; cut.
 * Characters above ASCII that are written as escapes become '?'. false: there is none.
 */
bool words_find(const char *json, const char *key, char ret_text[WORDS_BYTES]);
/* The message, or else the error, of JSON, the title of HTML, the first line of plain text or of no type; "": none. */
void words_read(const char *content_type, const char *body, char ret_text[WORDS_BYTES]);
