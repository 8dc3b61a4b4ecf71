/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/key.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/descriptor.h"
#include "collector/label/cgroup.h"
#include "collector/label/rule.h"
#include "util/array.h"

#define complain(origin, line, ...) diag_add((origin)->diag, (origin)->path, line, __VA_ARGS__)

/* NULL: there is none. A section of the map itself is stronger than one of all maps. */
static const struct descriptor_label *section_of(const struct key_origin *origin, const struct field *field)
{
	const struct descriptor_label *found = NULL;

	array_for_each (section, origin->descriptor->labels, origin->descriptor->n_labels) {
		if (strcmp(section->member, field->name))
			continue;
		if (!strcmp(section->map, origin->map))
			return section;
		if (!strcmp(section->map, "*"))
			found = section;
	}
	return found;
}

/* A member that only fills a gap: "unused", "owner.unused_2". */
static bool is_filler(const struct field *field)
{
	const char *dot = strrchr(field->name, '.');

	return !strncmp(dot ? dot + 1 : field->name, "unused", 6);
}

/* From [label], else the type's, else COLLECTOR.MEMBER. NULL: no memory. */
static char *attribute_name(const struct key_origin *origin, const struct key_label *label,
			    const struct descriptor_label *section)
{
	const char *name = label->type ? label->type->default_name : NULL, *member = label->field->name;
	char *made;

	if (section && section->name)
		name = section->name;
	if (name)
		return strdup(name);
	if (asprintf(&made, "%s.%s", origin->collector, *member ? member : "key") < 0)
		return NULL;
	/* A file may be called "My-collector"; attributes have lower-case names without "-". */
	for (char *at = made; *at; at++)
		*at = *at == '-' ? '_' : (char)tolower((unsigned char)*at);
	return made;
}

/* The type that the section or, without one, the field says; NULL after a complaint. */
static const struct label_type *type_of(const struct key_origin *origin, const struct descriptor_label *section,
					const struct field *field)
{
	const char *as = section ? section->as : NULL;
	const struct label_type *type = as ? label_type_named(as, field) : label_type_find(field);
	_cleanup_(buf_done) struct buf names = BUF_INIT;

	if (type)
		return type;
	label_type_names(field, &names);
	if (as)
		complain(origin, section->line,
			 "as = %s: no type of this name fits member \"%s\" of the key of map \"%s\" (%u byte%s); write one of: %s", as,
			 field->name, origin->map, field->size_bytes, plural(field->size_bytes), buf_text(&names));
	else
		complain(origin, section ? section->line : origin->line,
			 "member \"%s\" of the key of map \"%s\" (type %s) cannot become an attribute; use an integer, an enum, a char "
			 "array or a lbl_ type of <bpfpush/label.h>, or write [label %s%s%s] with as = one of: %s",
			 field->name, origin->map, *field->type_name ? field->type_name : "an array", origin->map,
			 *field->name ? "." : "", field->name, buf_text(&names));
	return NULL;
}

/* What a section may not say of a type that names its attributes itself, and must say of an enum of the kernel. */
static void check_section(const struct key_origin *origin, const struct descriptor_label *section,
			  const struct key_label *label)
{
	bool is_said = section->name || section->prefix || section->other || section->values.n || section->matches.n;

	if (label->type->n_own && is_said)
		complain(origin, section->line,
			 "member \"%s\" of the key of map \"%s\" is a %s, which names its attributes itself; write as = %s, or remove "
			 "this section",
			 label->field->name, origin->map, section->as ?: label->field->type_name, label->type->instead);
	if (section->as && !strcmp(section->as, LABEL_KERNEL_ENUM))
		complain(origin, section->line, "as = %s lacks the name of an enum of the kernel; write one, as in as = %s skb_drop_reason",
			 section->as, section->as);
}

static int describe(const struct key_origin *origin, const struct descriptor_label *section, struct key_label *label)
{
	const struct btf *kernel = NULL;

	label->type = type_of(origin, section, label->field);
	if (label->type && !label->type->add)
		return 0;
	label->attribute = attribute_name(origin, label, section);
	if (!label->attribute)
		return -ENOMEM;
	if (label->type && !strcmp(label->type->name, "cgroup-path"))
		cgroups_keep_paths(origin->context->labels->cgroups);
	if (!label->type || !section)
		return 0;
	check_section(origin, section, label);
	if (!strcmp(label->type->name, LABEL_KERNEL_ENUM))
		kernel = labels_kernel_types(origin->context->labels);
	return label_rule_new(section, kernel, origin->diag, origin->path, &label->rule);
}

int key_labels_new(const struct key_origin *origin, const struct shape *key, struct key_label **ret_labels)
{
	struct key_label *labels = calloc(key->n_fields + 1, sizeof(*labels));
	int err = 0;

	if (!labels)
		return -ENOMEM;
	for (size_t i = 0; i < key->n_fields && !err; i++) {
		const struct descriptor_label *section = section_of(origin, &key->fields[i]);

		labels[i] = (struct key_label){ .context = origin->context, .field = &key->fields[i] };
		if (section && labels[i].field == origin->bucket && *section->map != '*')
			complain(origin, section->line,
				 "member \"%s\" of the key of map \"%s\" says the bucket, and makes no attribute; remove this section",
				 section->member, origin->map);
		else if (labels[i].field != origin->bucket && (section || !is_filler(labels[i].field)))
			err = describe(origin, section, &labels[i]);
	}
	if (err)
		labels = key_labels_free(labels, key->n_fields);
	*ret_labels = labels;
	return err;
}

struct key_label *key_labels_free(struct key_label *labels, size_t n)
{
	for (size_t i = 0; labels && i < n; i++) {
		free(labels[i].attribute);
		label_rule_free(labels[i].rule);
	}
	free(labels);
	return NULL;
}

bool key_label_makes(const struct key_label *label, const char *attribute)
{
	if (!label->attribute || !attribute)
		return false;
	for (size_t i = 0; label->type && i < ARRAY_SIZE(label->type->own) && label->type->own[i]; i++)
		if (!strcmp(label->type->own[i], attribute))
			return true;
	return !strcmp(label->attribute, attribute);
}

static void complain_of_same(const struct key_origin *origin, const struct key_label *one,
			     const struct key_label *other, unsigned int n, unsigned int line)
{
	const char *instead = one->type && one->type == other->type ? one->type->instead : NULL;
	const char *first = one->field->name, *second = other->field->name, *map = origin->map;

	if (instead)
		complain(origin, line,
			 "members \"%s\" and \"%s\" of the key of map \"%s\" are both of type %s, of which a key can have only "
			 "one; write as = %s in [label %s.%s]",
			 first, second, map, one->type->name, instead, map, second);
	else if (n > 2)
		complain(origin, line,
			 "%u members of the key of map \"%s\" become attribute \"%s\", \"%s\" and \"%s\" among them; give each a "
			 "name of its own in a [label] section",
			 n, map, one->attribute, first, second);
	else
		complain(origin, line,
			 "members \"%s\" and \"%s\" of the key of map \"%s\" both become attribute \"%s\"; give one another name "
			 "in a [label] section",
			 first, second, map,
			 key_label_makes(one, other->attribute) ? other->attribute : one->attribute);
}

/* An attribute is there once: neither OTLP nor any other format can tell two of one name apart. */
void key_labels_check(const struct key_origin *origin, const struct key_label *labels, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct key_label *first = NULL, *same = NULL;
		unsigned int line = origin->line, n_same = 0;

		for (size_t j = 0; j < n; j++) {
			const struct descriptor_label *section = section_of(origin, labels[j].field);

			if (!key_label_makes(&labels[i], labels[j].attribute) &&
			    !key_label_makes(&labels[j], labels[i].attribute))
				continue;
			n_same++;
			same = first && !same ? &labels[j] : same;
			first = first ?: &labels[j];
			/* The last section that names one of them is the one to be changed. */
			if (section && (line == origin->line || section->line > line))
				line = section->line;
		}
		if (same && first == &labels[i])
			complain_of_same(origin, first, same, n_same, line);
	}
}
