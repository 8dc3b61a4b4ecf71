/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/rule.h"

#include <bpf/btf.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "collector/descriptor.h"
#include "collector/shape.h"
#include "util/array.h"
#include "util/parse.h"

struct constant {
	char *name;
	int64_t number;
};

struct label_rule {
	const struct descriptor_label *section;
	regex_t *matches; /* of section->matches */
	size_t n_matches;
	struct constant *constants;
	size_t n_constants;
};

int label_rule_compile(const struct descriptor_item *match, struct diag *diag, const char *path, regex_t **patterns,
		       size_t *n)
{
	regex_t *added = array_add(patterns, n, sizeof(*added));
	char why[128];
	int err;

	if (!added)
		return -ENOMEM;
	err = regcomp(added, match->text, REG_EXTENDED);
	if (!err)
		return 0;
	--*n;
	regerror(err, added, why, sizeof(why));
	diag_add(diag, path, match->line, "match = %s is not a regular expression (%s); see regex(7)", match->text, why);
	return 0;
}

/* On a kernel that has no such enum, numbers stay numbers. */
static int add_constants(struct label_rule *rule, const struct btf *types, const char *name)
{
	int narrow = btf__find_by_name_kind(types, name, BTF_KIND_ENUM);
	int id = narrow < 0 ? btf__find_by_name_kind(types, name, BTF_KIND_ENUM64) : narrow;
	const char *constant;
	int64_t number;

	for (uint32_t i = 0; id > 0 && (constant = shape_enum_at(types, (uint32_t)id, i, &number)); i++) {
		struct constant *added = array_add(&rule->constants, &rule->n_constants, sizeof(*added));

		if (added)
			*added = (struct constant){ strdup(constant), number };
		if (!added || !added->name)
			return -ENOMEM;
	}
	return 0;
}

static void check(const struct descriptor_label *section, struct diag *diag, const char *path)
{
	const struct descriptor_list *values = &section->values;

	if (section->other && !values->n && !section->matches.n)
		diag_add(diag, path, section->line, "other = %s says what becomes of what no value or match fits, but there is "
			 "neither; add one, or remove the line", section->other);
	for (size_t i = 0; i < values->n; i++)
		if (array_find(values->items, i, values->items[i].text))
			diag_add(diag, path, values->items[i].line, "value = %s=%s: \"%s\" has a text already; keep one of the lines",
				 values->items[i].text, values->items[i].value, values->items[i].text);
}

int label_rule_new(const struct descriptor_label *section, const struct btf *kernel, struct diag *diag,
		   const char *path, struct label_rule **ret_rule)
{
	const char *blank = section->as ? strchr(section->as, ' ') : NULL;
	struct label_rule *rule;
	int err = 0;

	check(section, diag, path);
	if (!section->as && !section->prefix && !section->values.n && !section->matches.n)
		return 0;
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	rule->section = section;
	if (kernel && blank)
		err = add_constants(rule, kernel, blank + 1);
	for (size_t i = 0; !err && i < section->matches.n; i++)
		err = label_rule_compile(&section->matches.items[i], diag, path, &rule->matches, &rule->n_matches);
	*ret_rule = err ? label_rule_free(rule) : rule;
	return err;
}

struct label_rule *label_rule_free(struct label_rule *rule)
{
	if (!rule)
		return NULL;
	array_for_each (match, rule->matches, rule->n_matches)
		regfree(match);
	array_for_each (constant, rule->constants, rule->n_constants)
		free(constant->name);
	free(rule->matches);
	free(rule->constants);
	free(rule);
	return NULL;
}

const char *label_rule_constant(const struct label_rule *rule, int64_t number)
{
	array_for_each (constant, rule->constants, rule->n_constants)
		if (constant->number == number)
			return constant->name;
	return NULL;
}

const char *label_rule_value(const struct label_rule *rule, int64_t number)
{
	const struct descriptor_list *values = rule ? &rule->section->values : NULL;
	int64_t known;
	uint64_t large;

	for (size_t i = 0; values && i < values->n; i++)
		if (!parse_s64(values->items[i].text, &known) ? known == number :
		    !parse_u64(values->items[i].text, &large) && large == (uint64_t)number)
			return values->items[i].value;
	return NULL;
}

const char *label_rule_apply(const struct label_rule *rule, char *text)
{
	const struct descriptor_label *section = rule->section;
	size_t size = section->prefix ? strlen(section->prefix) : 0;
	const struct descriptor_item *value;
	regmatch_t parts[2], *part;

	if (size && !strncmp(text, section->prefix, size))
		text += size;
	value = array_find(section->values.items, section->values.n, text);
	if (value)
		return value->value;
	for (size_t i = 0; i < rule->n_matches; i++) {
		if (regexec(&rule->matches[i], text, ARRAY_SIZE(parts), parts, 0))
			continue;
		part = &parts[parts[1].rm_so >= 0];
		text[part->rm_eo] = '\0';
		return text + part->rm_so;
	}
	if (!section->other || !strcmp(section->other, "keep"))
		return text;
	return strcmp(section->other, "drop") ? section->other : NULL;
}
