/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/rule.h"

#include <bpf/btf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "collector/descriptor.h"
#include "collector/shape.h"
#include "util/array.h"
#include "util/parse.h"

#define COPIES_MAX 2000 /* as a message says; the memory grows with the square */

struct constant {
	char *name;
	int64_t number;
};

struct label_rule {
	const struct descriptor_label *section;
	struct patterns matches; /* of section->matches */
	struct constant *constants;
	size_t n_constants;
};

/* regcomp() makes as many copies as repetitions in repetitions multiply to. */
static bool is_too_large(const char *text)
{
	unsigned long copies = 1, n;
	char *end;

	for (const char *at = text; (at = strchr(at, '{')) && copies <= COPIES_MAX; at++) {
		n = strtoul(at + 1, &end, 10);
		if (*end == ',' && end[1] != '}')
			n = strtoul(end + 1, &end, 10);
		n = n ?: 1;
		copies *= n > COPIES_MAX ? COPIES_MAX + 1 : n;
	}
	return copies > COPIES_MAX;
}

int patterns_compile(const struct descriptor_list *matches, struct diag *diag, const char *path,
		     struct patterns *ret_patterns)
{
	array_for_each (match, matches->items, matches->n) {
		regex_t *added = array_add(&ret_patterns->items, &ret_patterns->n, sizeof(*added));
		char why[128] = "its repetitions multiply to more than 2000, which takes too much memory";
		int err;

		if (!added)
			return -ENOMEM;
		err = is_too_large(match->text) ? REG_ESPACE :
		      regcomp(added, match->text, REG_EXTENDED);
		if (!err)
			continue;
		--ret_patterns->n;
		if (!is_too_large(match->text))
			regerror(err, added, why, sizeof(why));
		diag_add(diag, path, match->line, "match = %s is not a regular expression (%s); see regex(7)", match->text, why);
	}
	return 0;
}

bool patterns_fit(const struct patterns *patterns, const char *text,
		  regmatch_t *ret_parts, size_t n)
{
	array_for_each (pattern, patterns->items, patterns->n)
		if (!regexec(pattern, text, n, ret_parts, 0))
			return true;
	return false;
}

void patterns_done(struct patterns *patterns)
{
	array_for_each (pattern, patterns->items, patterns->n)
		regfree(pattern);
	free(patterns->items);
}

static bool has_constant(const struct btf *types, uint32_t id, const char *name)
{
	const char *constant;
	int64_t number;

	for (uint32_t i = 0; (constant = shape_enum_at(types, id, i, &number)); i++)
		if (!strcmp(constant, name))
			return true;
	return false;
}

/* That of the name or, since many have none, the one that has such a constant. -ENOENT. */
static int find_enum(const struct btf *types, const char *name)
{
	int narrow = btf__find_by_name_kind(types, name, BTF_KIND_ENUM);
	int id = narrow < 0 ? btf__find_by_name_kind(types, name, BTF_KIND_ENUM64) : narrow;

	for (uint32_t i = 1; id < 0 && i < btf__type_cnt(types); i++)
		if (btf_is_any_enum(btf__type_by_id(types, i)) && has_constant(types, i, name))
			return (int)i;
	return id;
}

/* On a kernel that has no such enum, numbers stay numbers. */
static int add_constants(struct label_rule *rule, const struct btf *types, const char *name)
{
	int id = find_enum(types, name);
	const char *constant;
	int64_t number;

	for (uint32_t i = 0; id > 0 && (constant = shape_enum_at(types, (uint32_t)id, i, &number));
	     i++) {
		struct constant *added = array_add(&rule->constants, &rule->n_constants,
						   sizeof(*added));

		if (added)
			*added = (struct constant){ strdup(constant), number };
		if (!added || !added->name)
			return -ENOMEM;
	}
	return 0;
}

static void check_section(const struct descriptor_label *section, struct diag *diag,
			  const char *path)
{
	const struct descriptor_list *values = &section->values;

	if (section->other && !values->n && !section->matches.n)
		diag_add(diag, path, section->line, "other = %s says what becomes of what no value or match fits, but there is "
			 "neither; add one, or remove the line", section->other);
	for (size_t i = 0; i < values->n; i++)
		if (array_find(values->items, i, values->items[i].text))
			diag_add(diag, path, values->items[i].line, "value = %s=%s: \"%s\" has a text already; keep one of the lines",
				 values->items[i].text, values->items[i].value,
				 values->items[i].text);
}

int label_rule_new(const struct descriptor_label *section, const struct btf *kernel,
		   struct diag *diag, const char *path, struct label_rule **ret_rule)
{
	const char *blank = section->as ? strchr(section->as, ' ') : NULL;
	struct label_rule *rule;
	int err;

	check_section(section, diag, path);
	if (!blank && !section->prefix && !section->values.n && !section->matches.n)
		return 0;
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	rule->section = section;
	err = kernel && blank ? add_constants(rule, kernel, blank + 1) : 0;
	err = err ?: patterns_compile(&section->matches, diag, path, &rule->matches);
	*ret_rule = err ? label_rule_free(rule) : rule;
	return err;
}

void label_rule_check_enum(const struct label_rule *rule, const struct btf *kernel,
			   struct diag *diag, const char *path)
{
	const char *wanted = strchr(rule->section->as, ' ') + 1, *nearest;
	char guess[256] = "; write another one, or the number's type alone, such as u32";

	if (rule->n_constants)
		return;
	nearest = shape_nearest_type(kernel, 1u << BTF_KIND_ENUM | 1u << BTF_KIND_ENUM64, "",
				     wanted, LONG_MAX);
	if (nearest)
		snprintf(guess, sizeof(guess), ": did you mean \"%s\"?", nearest);
	diag_add(diag, path, rule->section->line,
		 "this kernel has no enum \"%s\", and none with a constant of this name%s", wanted, guess);
}

struct label_rule *label_rule_free(struct label_rule *rule)
{
	if (!rule)
		return NULL;
	patterns_done(&rule->matches);
	array_for_each (constant, rule->constants, rule->n_constants)
		free(constant->name);
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
	const struct descriptor_label *section = rule ? rule->section : NULL;
	size_t size = section && section->prefix ? strlen(section->prefix) : 0;
	const struct descriptor_item *value;
	regmatch_t parts[2], *part;

	if (!section)
		return text;
	if (size && !strncmp(text, section->prefix, size))
		text += size;
	value = array_find(section->values.items, section->values.n, text);
	if (value)
		return value->value;
	if (patterns_fit(&rule->matches, text, parts, ARRAY_SIZE(parts))) {
		part = &parts[parts[1].rm_so >= 0];
		text[part->rm_eo] = '\0';
		return text + part->rm_so;
	}
	if (!section->other || !strcmp(section->other, "keep"))
		return text;
	return strcmp(section->other, "drop") ? section->other : NULL;
}
