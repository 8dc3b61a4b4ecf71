/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NUMBER "+-.0123456789eE"

bool words_is_type(const char *content_type, const char *type)
{
	size_t size = strlen(type);

	return !strncasecmp(content_type, type, size) && strchr("; \t", content_type[size]);
}

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
static void read_string(const char **at, char text[WORDS_BYTES])
{
	size_t n = 0;

	while (**at && **at != '"') {
		char c = *(*at)++;

		if (c == '\\')
			c = read_escape(at);
		if (n < WORDS_BYTES - 1)
			text[n++] = c;
	}
	*at += **at == '"';
	text[n] = '\0';
}

bool words_find(const char *json, const char *key, char ret_text[WORDS_BYTES])
{
	bool is_key = false, is_value = false;
	char text[WORDS_BYTES];

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
			snprintf(ret_text, WORDS_BYTES, "%.*s", (int)strspn(json - 1, NUMBER), json - 1);
			return true;
		} else if (!isspace((unsigned char)c)) {
			is_value = is_key && c == ':';
			is_key = false;
		}
	}
	return false;
}

void words_read(const char *content_type, const char *body, char ret_text[WORDS_BYTES])
{
	const char *title;

	ret_text[0] = '\0';
	if (words_is_type(content_type, "application/json")) {
		(void)(words_find(body, "message", ret_text) || words_find(body, "error", ret_text));
	} else if (words_is_type(content_type, "text/html")) {
		title = strcasestr(body, "<title");
		title = title ? strchr(title, '>') : NULL;
		if (title)
			snprintf(ret_text, WORDS_BYTES, "%.*s", (int)strcspn(title + 1, "<"), title + 1);
	} else if (!content_type[0] || words_is_type(content_type, "text/plain")) {
		body += strspn(body, " \t\r\n");
		snprintf(ret_text, WORDS_BYTES, "%.*s", (int)strcspn(body, "\r\n"), body);
	}
}
