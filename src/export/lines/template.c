/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/template.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
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

static bool is_path_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '-' || byte == '.';
}

/* One piece at text into *piece; what is wrong with it, or NULL. */
static const char *parse_piece(const char *text, struct template_piece *piece)
{
	size_t size = 0;

	if (*text == '{') {
		text++;
		while (is_path_byte(text[size]))
			size++;
		if (!size || text[size] != '}')
			return "a placeholder is written {metric}, {host}, {unit}, {attributes} or {an.attribute}";
		*piece = (struct template_piece){ placeholder_kind(text, size), text, size };
		return NULL;
	}
	while (is_path_byte(text[size]))
		size++;
	if (!size)
		return "beside {placeholders} it may hold letters, digits, \"_\", \"-\" and \".\" only";
	*piece = (struct template_piece){ TEMPLATE_TEXT, text, size };
	return NULL;
}

static const char *find_fault(const char *text, const struct template *template)
{
	unsigned int n[TEMPLATE_NAMED + 1] = { 0 };

	for (unsigned int i = 0; i < template->n; i++)
		n[template->pieces[i].kind]++;
	if (!n[TEMPLATE_METRIC])
		return "{metric} is missing: all metrics would have one name";
	if (n[TEMPLATE_METRIC] > 1 || n[TEMPLATE_ATTRIBUTES] > 1)
		return "{metric} and {attributes} may stand there once only";
	if (text[0] == '.' || text[strlen(text) - 1] == '.' || strstr(text, ".."))
		return "a level without a name: a dot at the beginning, at the end or behind another dot";
	return NULL;
}

int template_parse(const char *text, struct template *ret_template, const char **ret_complaint)
{
	struct template template = { .n = 0 };
	const char *at = text, *fault = NULL;

	while (*at && !fault) {
		struct template_piece *piece = &template.pieces[template.n];

		if (template.n == TEMPLATE_PIECES_MAX)
			fault = "too many pieces";
		else
			fault = parse_piece(at, piece);
		if (fault)
			break;
		at = piece->text + piece->size + (piece->kind != TEMPLATE_TEXT);
		template.n++;
	}
	if (!fault)
		fault = find_fault(text, &template);
	if (fault) {
		*ret_complaint = fault;
		return -EINVAL;
	}
	*ret_template = template;
	return 0;
}

int template_check(const char *text, const char **ret_complaint)
{
	struct template template;

	return template_parse(text, &template, ret_complaint);
}
