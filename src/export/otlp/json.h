/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* As much of JSON as answers of receivers need. The text comes from outside: it may be anything. */

#include <stdbool.h>

#define JSON_WORD_BYTES 1024

/*
 * The string, with its escapes resolved, or the number that belongs to the first such key, at any
 * depth; cut. Characters above ASCII that are written as escapes become '?'. false: there is none.
 */
bool json_find(const char *json, const char *key, char ret_text[JSON_WORD_BYTES]);
/*
 * Is it an object whose members, if it has any, all have one of these names (ended by NULL) and are
 * objects or null? What is in those is not looked at.
 */
bool json_has_only(const char *json, const char *const *names);
