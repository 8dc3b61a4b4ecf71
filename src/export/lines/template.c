/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/name.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "util/cleanup.h"

static const struct {
	const char *name;
	enum template_kind kind;
} placeholders[] = {
	{ "metric", TEMPLATE_METRIC },
	{ "host", TEMPLATE_HOST },
	{ "unit", TEMPLATE_UNIT },
	{ "attributes", TEMPLATE_ATTRIBUTES },
};

static enum template_kind placeholder_kind(const char *name, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++)
		if (strlen(placeholders[i].name) == size && !memcmp(placeholders[i].name, name, size))
			return placeholders[i].kind;
	return TEMPLATE_NAMED;
}

/* One piece at text into *piece; what is wrong with it, or NULL. */
static const char *parse_piece(const char *text, struct template_piece *piece)
{
	bool is_placeholder = *text == '{';
	size_t size = 0;

	text += is_placeholder;
	while (isalnum((unsigned char)text[size]) || (text[size] && strchr("_-.", text[size])))
		size++;
	if (is_placeholder && (!size || text[size] != '}'))
		return "a placeholder is {metric}, {host}, {unit}, {attributes} or {an.attribute}";
	if (!size)
		return "outside {placeholders}, only letters, digits, \"_\", \"-\" and \".\" are allowed";
	*piece = (struct template_piece){ is_placeholder ? placeholder_kind(text, size) : TEMPLATE_TEXT, text, size };
	return NULL;
}

static const char *find_fault(const char *text, const struct template *template)
{
	const unsigned int *n = template->n_of;

	if (!n[TEMPLATE_METRIC])
		return "{metric} is missing: all metrics would have the same name";
	if (n[TEMPLATE_METRIC] > 1 || n[TEMPLATE_ATTRIBUTES] > 1)
		return "{metric} and {attributes} may be used only once";
	if (text[0] == '.' || text[strlen(text) - 1] == '.' || strstr(text, ".."))
		return "empty level: a dot at the start, at the end or after another dot";
	return NULL;
}

/* Is the piece that begins at text alone in its levels? Text before a value is a fixed part of it. */
static bool is_alone(const struct template *template, unsigned int i)
{
	const struct template_piece *piece = &template->pieces[i], *before = piece - 1, *after = piece + 1;
	bool is_first = !i || (before->kind == TEMPLATE_TEXT && before->text[before->size - 1] == '.');

	if (i + 1 < template->n && (after->kind != TEMPLATE_TEXT || after->text[0] != '.'))
		return false;
	return is_first || (piece->kind != TEMPLATE_ATTRIBUTES && before->kind == TEMPLATE_TEXT);
}

static void describe(struct template *template)
{
	bool is_after_metric = false;

	template->is_readable = true;
	for (unsigned int i = 0; i < template->n; i++) {
		enum template_kind kind = template->pieces[i].kind;

		if (kind == TEMPLATE_TEXT || kind == TEMPLATE_HOST)
			continue;
		if (!is_alone(template, i) || (kind == TEMPLATE_ATTRIBUTES && !is_after_metric))
			template->is_readable = false;
		template->has_values_after_metric |= is_after_metric;
		is_after_metric |= kind == TEMPLATE_METRIC;
	}
}

int template_parse(const char *text, struct template *ret_template, const char **ret_complaint)
{
	struct template template = { .n = 0 };
	const char *at = text, *fault = NULL;

	while (*at) {
		struct template_piece *piece = &template.pieces[template.n];

		fault = template.n == TEMPLATE_PIECES_MAX ? "too many pieces" : parse_piece(at, piece);
		if (fault)
			break;
		at = piece->text + piece->size + (piece->kind != TEMPLATE_TEXT);
		template.n++;
		template.n_of[piece->kind]++;
	}
	if (!fault)
		fault = find_fault(text, &template);
	if (fault) {
		*ret_complaint = fault;
		return -EINVAL;
	}
	describe(&template);
	*ret_template = template;
	return 0;
}

int template_check(const char *text, const char **ret_complaint)
{
	struct template template;

	return template_parse(text, &template, ret_complaint);
}
