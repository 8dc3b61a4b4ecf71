/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/name.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static enum template_kind placeholder_kind(const char *name, size_t size)
{
	static const char *const names[] = { [TEMPLATE_METRIC] = "metric", [TEMPLATE_HOST] = "host",
					     [TEMPLATE_UNIT] = "unit", [TEMPLATE_ATTRIBUTES] = "attributes" };
	enum template_kind kind = TEMPLATE_METRIC;

	while (kind < TEMPLATE_NAMED &&
	       (strlen(names[kind]) != size || memcmp(names[kind], name, size)))
		kind++;
	return kind;
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
	*piece = (struct template_piece){ is_placeholder ? placeholder_kind(text, size) :
					  TEMPLATE_TEXT, text, size };
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

/*
 * Is the piece that begins at text alone in its levels? Text before a value is a fixed part of it.
 */
static bool is_alone(const struct template *template, unsigned int i)
{
	const struct template_piece *piece = &template->pieces[i], *before = piece - 1,
		*after = piece + 1;
	bool is_first = !i ||
			(before->kind == TEMPLATE_TEXT && before->text[before->size - 1] == '.');

	if (i + 1 < template->n && (after->kind != TEMPLATE_TEXT || after->text[0] != '.'))
		return false;
	return is_first || (piece->kind != TEMPLATE_ATTRIBUTES && before->kind == TEMPLATE_TEXT);
}

static void classify_template(struct template *template)
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
	classify_template(&template);
	*ret_template = template;
	return 0;
}

int template_check(const char *text, const char **ret_complaint)
{
	struct template template;

	return template_parse(text, &template, ret_complaint);
}

int naming_init(struct naming *naming, const struct dialect *dialect, const char *template,
		const struct attribute *resource, unsigned int n_resource,
		const struct setting_list *resource_tags)
{
	const char *complaint;

	*naming = (struct naming){ .dialect = dialect, .resource = resource,
				   .n_resource = n_resource,
				   .resource_tags = resource_tags, .limit_bytes = NAME_PATH_BYTES };
	return template_parse(template ? template : dialect->default_template, &naming->template,
			      &complaint);
}
