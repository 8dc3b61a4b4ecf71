/* SPDX-License-Identifier: Apache-2.0 */
#include "util/parse.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "util/array.h"
#include "util/cleanup.h"
#include "util/duration.h"

const struct parse_unit parse_duration_units[] = {
	{ "d", 86400 * NS_PER_S },
	{ "h", 3600 * NS_PER_S },
	{ "m", 60 * NS_PER_S },
	{ "min", 60 * NS_PER_S },
	{ "s", NS_PER_S },
	{ "ms", NS_PER_MS },
	{ "us", NS_PER_US },
	{ "ns", 1 },
	{ 0 },
};

const struct parse_unit parse_size_units[] = {
	{ "TiB", 1ull << 40 },
	{ "GiB", 1ull << 30 },
	{ "MiB", 1ull << 20 },
	{ "KiB", 1ull << 10 },
	{ "TB", 1000000000000 },
	{ "GB", 1000000000 },
	{ "MB", 1000000 },
	{ "KB", 1000 },
	{ "kB", 1000 },
	{ "B", 1 },
	{ 0 },
};

bool parse_is_name(const char *text)
{
	size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

	return length && !text[length] && text[0] != '.' && text[0] != '-';
}

int parse_bool(const char *text, bool *ret_value)
{
	static const char *const words[] = { "no", "yes", "false", "true", "off", "on", "0", "1" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcasecmp(text, words[i])) {
			*ret_value = i % 2;
			return 0;
		}
	return -EINVAL;
}

/* The digits at *text, which is moved past them. -ERANGE only after the last. */
static int read_digits(const char **text, bool is_hex, uint64_t *ret_value)
{
	uint64_t value;
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	value = strtoull(*text, &end, is_hex ? 16 : 10);
	*text = end;
	if (errno)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int parse_u64(const char *text, uint64_t *ret_value)
{
	bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	uint64_t value;
	int r = read_digits(&text, is_hex, &value);

	if (r == -EINVAL || *text)
		return -EINVAL;
	if (r < 0)
		return r;
	*ret_value = value;
	return 0;
}

int parse_s64(const char *text, int64_t *ret_value)
{
	bool is_negative = *text == '-';
	uint64_t value;
	int r = parse_u64(text + (*text == '-' || *text == '+'), &value);
	if (r < 0)
		return r;
	if (value > (uint64_t)INT64_MAX + is_negative)
		return -ERANGE;
	*ret_value = is_negative ? (int64_t)(0 - value) : (int64_t)value;
	return 0;
}

/* The unit at *text, letters to their end, from units on. NULL: there is none. */
static const struct parse_unit *read_unit(const char **text, const struct parse_unit *units)
{
	size_t length = 0;

	while (isalpha((unsigned char)(*text)[length]))
		length++;
	for (; units->name; units++)
		if (strlen(units->name) == length && !memcmp(units->name, *text, length)) {
			*text += length;
			return units;
		}
	return NULL;
}

/* Numbers with units, at most n_parts of them, each unit less than the one before. */
static int read_quantity(const char *text, const struct parse_unit *units, int n_parts,
			 uint64_t *ret_value)
{
	uint64_t total = 0, number = 0;
	bool is_over = false;

	if (!strcmp(text, "0")) {
		*ret_value = 0;
		return 0;
	}
	do {
		const struct parse_unit *unit;
		int r = read_digits(&text, false, &number);

		if (r == -EINVAL)
			return r;
		is_over |= r < 0;
		text += strspn(text, " \t");
		unit = read_unit(&text, units);
		if (!unit)
			return -EINVAL;
		is_over |= __builtin_mul_overflow(number, unit->factor, &number) ||
			   __builtin_add_overflow(total, number, &total);
		while (units->name && units->factor >= unit->factor)
			units++;
		text += strspn(text, " \t");
	} while (*text && --n_parts);
	if (*text)
		return -EINVAL;
	if (is_over)
		return -ERANGE;
	*ret_value = total;
	return 0;
}

int parse_duration_ns(const char *text, uint64_t *ret_ns)
{
	return read_quantity(text, parse_duration_units, 7, ret_ns);
}

int parse_size_bytes(const char *text, uint64_t *ret_bytes)
{
	return read_quantity(text, parse_size_units, 1, ret_bytes);
}

char *parse_strip(char *text)
{
	text += strspn(text, " \t");
	for (char *end = text + strlen(text); end > text && strchr(" \t", end[-1]);)
		*--end = '\0';
	return text;
}

int parse_percent(char *text)
{
	for (char *to = text; (*to = *text); text++, to++) {
		if (*text != '%')
			continue;
		if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]))
			return -EINVAL;
		*to = (char)strtoul((const char[]){ text[1], text[2], '\0' }, NULL, 16);
		if (!*to)
			return -EINVAL;
		text += 2;
	}
	return 0;
}

#define NAME_BYTES 64

/* The letters at a and at b, whatever their case. */
static bool is_same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edits from a to b (optimal string alignment). Longer names: SIZE_MAX. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t edits[NAME_BYTES + 1][NAME_BYTES + 1], n_a = strlen(a), n_b = strlen(b);

	if (n_a > NAME_BYTES || n_b > NAME_BYTES)
		return SIZE_MAX;
	for (size_t i = 0; i <= n_a; i++)
		for (size_t j = 0; j <= n_b; j++) {
			size_t least = i + j;

			if (i && j &&
			    edits[i - 1][j - 1] + !is_same_letter(a[i - 1], b[j - 1]) < least)
				least = edits[i - 1][j - 1] + !is_same_letter(a[i - 1], b[j - 1]);
			if (i && edits[i - 1][j] + 1 < least)
				least = edits[i - 1][j] + 1;
			if (j && edits[i][j - 1] + 1 < least)
				least = edits[i][j - 1] + 1;
			if (i > 1 && j > 1 && edits[i - 2][j - 2] + 1 < least &&
			    is_same_letter(a[i - 1], b[j - 2]) &&
			    is_same_letter(a[i - 2], b[j - 1]))
				least = edits[i - 2][j - 2] + 1;
			edits[i][j] = least;
		}
	return edits[n_a][n_b];
}

const char *parse_nearest_of(const char *text, const void *items, size_t n, size_t item_bytes)
{
	size_t length = strlen(text), forgiven = length / 4 ? length / 4 : 1;
	const char *nearest = NULL;

	for (size_t i = 0; i < n; i++) {
		const char *name = array_name(items, i, item_bytes);
		size_t distance = edit_distance(text, name);

		if (distance > forgiven || (distance && distance >= strlen(name)))
			continue;
		nearest = name;
		if (!distance)
			break;
		forgiven = distance - 1;
	}
	return nearest;
}

int parse_check_pattern(const char *text, const char **ret_complaint)
{
	*ret_complaint = "a \"[\" has no \"]\": add it, or write \"[[]\" for the character \"[\"";
	while ((text = strchr(text, '['))) {
		text += 1 + (text[1] == '!' || text[1] == '^');
		/* The first "]" stands for itself, and the one of "[:digit:]" ends only a class. */
		for (text += *text == ']'; *text && *text != ']'; text++)
			if (!strncmp(text, "[:", 2) && strstr(text + 2, ":]"))
				text = strstr(text + 2, ":]") + 1;
		if (!*text)
			return -EINVAL;
	}
	return 0;
}
