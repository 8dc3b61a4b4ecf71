/* SPDX-License-Identifier: Apache-2.0 */
#include "lines-grammar.h"

#include <string.h>

#include "util/cleanup.h"

/* What a receiver of the dialect reads as what. */
static const struct syntax {
	const char *tags_behind; /* where tags begin: behind the path, or with is_tail behind everything */
	char tag_equals, tag_next;
	bool is_tail, is_graphite;
	const char *value_bytes; /* of a tag's value */
} syntaxes[DIALECTS] = {
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	[DIALECT_PLAIN] = { NULL },
	[DIALECT_GRAPHITE] = { ";", '=', ';', .value_bytes = LETTERS "." },
	[DIALECT_DOGSTATSD] = { "|#", ':', ',', .is_tail = true, .value_bytes = LETTERS "./:" },
	[DIALECT_INFLUX] = { ",", '=', ',', .value_bytes = LETTERS "./" },
	[DIALECT_DOTTED] = { NULL, .is_graphite = true },
	[DIALECT_TAGGED] = { ";", '=', ';', .is_graphite = true, .value_bytes = LETTERS ".:@+" },
};

struct grammar_text grammar_cut(struct grammar_text *text, char stop)
{
	const char *found = text->size ? memchr(text->at, stop, text->size) : NULL;
	struct grammar_text result = { text->at, found ? (size_t)(found - text->at) : text->size };
	size_t skipped = result.size + !!found;

	*text = (struct grammar_text){ text->at + skipped, text->size - skipped };
	return result;
}

bool grammar_is(struct grammar_text text, const char *what)
{
	return text.size == strlen(what) && !memcmp(text.at, what, text.size);
}

static bool has_only(struct grammar_text text, const char *bytes)
{
	for (size_t i = 0; i < text.size; i++)
		if (!text.at[i] || !strchr(bytes, text.at[i]))
			return false;
	return text.size;
}

static const char *parse_path(struct grammar_text path)
{
	struct grammar_text rest = path;

	if (!path.size || path.at[path.size - 1] == '.')
		return "a path that is empty or ends in a dot";
	while (rest.size)
		if (!has_only(grammar_cut(&rest, '.'), LETTERS))
			return "a level that is empty or has other bytes";
	return NULL;
}

static bool has_tag(const struct grammar_line *line, struct grammar_text name)
{
	for (unsigned int i = 0; i < line->n_tags; i++)
		if (line->tags[i].name.size == name.size && !memcmp(line->tags[i].name.at, name.at, name.size))
			return true;
	return false;
}

static const char *parse_tags(const struct syntax *syntax, struct grammar_text text, struct grammar_line *line)
{
	if (!text.size || text.at[text.size - 1] == syntax->tag_next)
		return "tags that are empty or end in a separator";
	while (text.size) {
		struct grammar_text value = grammar_cut(&text, syntax->tag_next);
		struct grammar_text name = grammar_cut(&value, syntax->tag_equals);

		if (!has_only(name, LETTERS "."))
			return "a tag's name that is empty or has other bytes";
		if (!has_only(value, syntax->value_bytes))
			return "a tag's value that is empty or has other bytes";
		if (grammar_is(name, "name") || grammar_is(name, "__name__"))
			return "a tag's name that is the metric's own";
		if (has_tag(line, name))
			return "two tags of one name";
		if (line->n_tags == GRAMMAR_TAGS_MAX)
			return "too many tags";
		line->tags[line->n_tags++] = (struct grammar_tag){ name, value };
	}
	return NULL;
}

/* name is path and, where they stand there, tags. */
static const char *parse_name(const struct syntax *syntax, struct grammar_text name, struct grammar_line *line)
{
	bool has_tags;

	if (!syntax->tags_behind || syntax->is_tail) {
		line->path = name;
		return parse_path(name);
	}
	has_tags = name.size && memchr(name.at, syntax->tags_behind[0], name.size);
	line->path = grammar_cut(&name, syntax->tags_behind[0]);
	return parse_path(line->path) ?: has_tags ? parse_tags(syntax, name, line) : NULL;
}

/* Decimal: no sign, no exponent, no digit too many in front. */
static bool is_number(struct grammar_text text, bool is_whole)
{
	bool has_dot = text.size && memchr(text.at, '.', text.size);
	struct grammar_text digits = grammar_cut(&text, '.');

	if (!has_only(digits, "0123456789") || (digits.at[0] == '0' && digits.size > 1))
		return false;
	return has_dot ? !is_whole && has_only(text, "0123456789") : true;
}

/* Decimal as well: of 18446744073709551615 at most. */
static bool to_u64(struct grammar_text text, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!is_number(text, true))
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(text.at[i] - '0'), &number))
			return false;
	*ret_number = number;
	return true;
}

/* A fraction above 0 and below 1: a rate of 1 is left out. */
static bool is_rate(struct grammar_text text)
{
	return is_number(text, false) && text.size > 2 && text.at[0] == '0' && memchr(text.at, '.', text.size) &&
	       !has_only((struct grammar_text){ text.at + 2, text.size - 2 }, "0");
}

static const char *parse_type(struct grammar_text text, struct grammar_line *line)
{
	static const char *const types[] = { [GRAMMAR_COUNTER] = "c", [GRAMMAR_GAUGE] = "g", [GRAMMAR_TIMER] = "ms",
					     [GRAMMAR_DISTRIBUTION] = "d" };
	bool has_rate = text.size && memchr(text.at, '|', text.size);
	struct grammar_text type = grammar_cut(&text, '|');
	size_t i = 0;

	while (i < ARRAY_SIZE(types) && !grammar_is(type, types[i]))
		i++;
	if (i == ARRAY_SIZE(types))
		return "another type";
	line->type = (enum grammar_type)i;
	if (!has_rate)
		return NULL;
	if (!text.size || text.at[0] != '@')
		return "something behind the type that is no rate";
	grammar_cut(&text, '@');
	line->rate = text;
	return is_rate(text) ? NULL : "a rate that is none";
}

static const char *parse_statsd(const struct syntax *syntax, struct grammar_text text, struct grammar_line *line)
{
	const char *tags = syntax->is_tail ? memmem(text.at, text.size, syntax->tags_behind, 2) : NULL, *wrong = NULL;
	uint64_t number;

	if (tags) {
		struct grammar_text tail = { tags + 2, text.size - (size_t)(tags + 2 - text.at) };

		text.size = (size_t)(tags - text.at);
		wrong = parse_tags(syntax, tail, line);
	}
	if (!wrong)
		wrong = parse_name(syntax, grammar_cut(&text, ':'), line);
	line->value = grammar_cut(&text, '|');
	if (!wrong)
		wrong = parse_type(text, line);
	if (wrong)
		return wrong;
	if (!is_number(line->value, line->type == GRAMMAR_COUNTER))
		return "a value that is no number, or of a counter and not whole";
	if (line->type == GRAMMAR_COUNTER && (!to_u64(line->value, &number) || number > INT64_MAX))
		return "a counter that does not fit";
	if (line->type == GRAMMAR_DISTRIBUTION && !syntax->is_tail)
		return "a type that the dialect does not have";
	if (line->rate.size && (line->type == GRAMMAR_COUNTER || line->type == GRAMMAR_GAUGE))
		return "a rate of what is no sample";
	return NULL;
}

static const char *parse_graphite(const struct syntax *syntax, struct grammar_text text, struct grammar_line *line)
{
	const char *wrong = parse_name(syntax, grammar_cut(&text, ' '), line);

	line->type = GRAMMAR_PLAIN;
	line->value = grammar_cut(&text, ' ');
	line->is_negative = line->value.size && line->value.at[0] == '-';
	if (line->is_negative)
		grammar_cut(&line->value, '-');
	if (wrong)
		return wrong;
	if (!is_number(line->value, false))
		return "a value that is no number";
	return to_u64(text, &line->time_s) ? NULL : "a time that is none";
}

const char *grammar_parse(enum dialect_id dialect, struct grammar_text text, struct grammar_line *ret_line)
{
	const struct syntax *syntax = &syntaxes[dialect];

	*ret_line = (struct grammar_line){ .n_tags = 0 };
	return syntax->is_graphite ? parse_graphite(syntax, text, ret_line) : parse_statsd(syntax, text, ret_line);
}
