/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER "+-.0123456789eE"

/* at: after a backslash; moved to what comes after the escape. */
static char read_escape(const char **at)
{
	char c = **at, digits[5] = "";
	unsigned long code;

	*at += c != '\0';
	if (c != 'u')
		return strchr("bfnrt", c) ? ' ' : c;
	for (size_t i = 0; i < 4 && isxdigit((unsigned char)**at); i++)
		digits[i] = *(*at)++;
	code = strtoul(digits, NULL, 16);
	return code && code < 0x80 ? (char)code : '?';
}

/* at: after the first quote; moved to what comes after the last. */
static void read_string(const char **at, char text[JSON_WORD_BYTES])
{
	size_t n = 0;

	while (**at && **at != '"') {
		char c = *(*at)++;

		if (c == '\\')
			c = read_escape(at);
		if (n < JSON_WORD_BYTES - 1)
			text[n++] = c;
	}
	*at += **at == '"';
	text[n] = '\0';
}

bool json_find(const char *json, const char *key, char ret_text[JSON_WORD_BYTES])
{
	bool is_key = false, is_value = false;
	char text[JSON_WORD_BYTES];

	while (*json) {
		char c = *json++;

		if (c == '"') {
			read_string(&json, text);
			if (is_value) {
				memcpy(ret_text, text, sizeof(text));
				return true;
			}
			is_key = !strcmp(text, key);
		} else if (is_value && strchr(NUMBER, c)) {
			snprintf(ret_text, JSON_WORD_BYTES, "%.*s",
				 (int)strspn(json - 1, NUMBER), json - 1);
			return true;
		} else if (!isspace((unsigned char)c)) {
			is_value = is_key && c == ':';
			is_key = false;
		}
	}
	return false;
}

/* Is this what comes next, after blanks? Moves on if so. */
static bool take_char(const char **at, char c)
{
	*at += strspn(*at, " \t\r\n");
	if (**at != c)
		return false;
	++*at;
	return true;
}

/* An object, by its braces, or null. */
static bool take_object(const char **at)
{
	char text[JSON_WORD_BYTES];
	unsigned int depth = 1;

	if (!take_char(at, '{')) {
		if (strncmp(*at, "null", 4))
			return false;
		*at += 4;
		return true;
	}
	while (depth && **at) {
		char c = *(*at)++;

		if (c == '"')
			read_string(at, text);
		depth += c == '{';
		depth -= c == '}';
	}
	return !depth;
}

static bool take_member(const char **at, const char *const *names)
{
	char name[JSON_WORD_BYTES];

	if (!take_char(at, '"'))
		return false;
	read_string(at, name);
	while (*names && strcmp(*names, name))
		names++;
	return *names && take_char(at, ':') && take_object(at);
}

bool json_has_only(const char *json, const char *const *names)
{
	if (!take_char(&json, '{'))
		return false;
	if (!take_char(&json, '}')) {
		do {
			if (!take_member(&json, names))
				return false;
		} while (take_char(&json, ','));
		if (!take_char(&json, '}'))
			return false;
	}
	return take_char(&json, '\0');
}
