/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/binding/key.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/binding/binding.h"
#include "collector/descriptor.h"
#include "collector/label/cgroup.h"
#include "collector/label/rule.h"
#include "util/array.h"
#include "util/parse.h"

/* NULL: there is none. A section of the map itself is stronger than one of all maps. */
static const struct descriptor_label *section_of(const struct binding *binding,
						 const struct field *field)
{
	const struct descriptor_label *found = NULL;

	array_for_each (section, binding->collector->descriptor->labels,
			binding->collector->descriptor->n_labels) {
		if (strcmp(section->member, field->name))
			continue;
		if (!strcmp(section->map, binding->map))
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
static char *attribute_name(const struct binding *binding, const struct key_label *label,
			    const struct descriptor_label *section)
{
	const char *name = label->type ? label->type->default_name : NULL,
		*member = label->field->name;
	char *made;

	if (section && section->name)
		name = section->name;
	if (name)
		return strdup(name);
	if (asprintf(&made, "%s.%s", binding->collector->name, *member ? member : "key") < 0)
		return NULL;
	/* A file may be called "My-collector"; attributes have lower-case names without "-". */
	for (char *at = made; *at; at++)
		*at = *at == '-' ? '_' : (char)tolower((unsigned char)*at);
	return made;
}

/* What is a time or an id of an event is a number elsewhere. */
static const struct label_type *find_type(const char *as, const struct field *field, bool is_event)
{
	const struct label_type *type;

	if (is_event && !as && !strcmp(field->type_name, "val_ns"))
		as = "seconds";
	else if (is_event && !as && !strcmp(field->type_name, "val_boot_ns"))
		as = "time";
	type = as ? label_type_named(as, field) : label_type_find(field);
	return type && type->is_of_event && !is_event ? NULL : type;
}

/* The type that the section or, without one, the field says; NULL after a complaint. */
static const struct label_type *type_of(const struct binding *binding,
					const struct descriptor_label *section,
					const struct field *field)
{
	const char *as = section ? section->as : NULL;
	bool is_event = binding_is_of_event(binding);
	const struct label_type *type = find_type(as, field, is_event);
	const char *type_name = *field->type_name ? field->type_name : "an array";
	const char *dot = *field->name ? "." : "";
	unsigned int line = section ? section->line : binding->first->line;
	_cleanup_(buf_done) struct buf names = BUF_INIT;

	if (type)
		return type;
	label_type_names(field, is_event, &names);
	if (as)
		complain(binding->collector, line,
			 "as = %s: no type of this name fits member \"%s\" of the key of map \"%s\" (%u byte%s); write one of: %s", as,
			 field->name, binding->map, field->size_bytes, plural(field->size_bytes),
			 buf_text(&names));
	else
		complain(binding->collector, line,
			 "member \"%s\" of the key of map \"%s\" (type %s) cannot become an attribute; use an integer, an enum, a char "
			 "array or a lbl_ type of <bpfpush/label.h>, or write [label %s%s%s] with as = one of: %s",
			 field->name, binding->map, type_name, binding->map, dot, field->name,
			 buf_text(&names));
	return NULL;
}

/* Digits that people do not read as parse_u64() does: with zeros in front, or more than 64 bits. */
static bool is_misread(const char *text)
{
	const char *digits = text + (*text == '-');
	int64_t number;
	uint64_t large;

	return *digits && !digits[strspn(digits, "0123456789")] &&
	       ((*digits == '0' && digits[1]) ||
		(parse_s64(text, &number) && parse_u64(text, &large)));
}

/*
 * What a section may not say of a type that names its attributes itself, and must say of an enum of
 * the kernel.
 */
static void check_section(const struct binding *binding, const struct descriptor_label *section,
			  const struct key_label *label)
{
	bool is_more = section->prefix || section->other || section->values.n || section->matches.n;
	bool is_said = section->name || is_more;

	if (label->type->n_own && is_said)
		complain(binding->collector, section->line,
			 "member \"%s\" of the key of map \"%s\" is a %s, which names its attributes itself; "
			 "write as = %s, or remove this section",
			 label->field->name, binding->map, section->as ?: label->field->type_name,
			 label->type->instead);
	else if (label->type->is_of_event && is_more)
		complain(binding->collector, section->line,
			 "member \"%s\" of the record of map \"%s\" is a time or a list of texts, of which only the name can be "
			 "chosen; keep only name = and as =",
			 label->field->name, binding->map);
	array_for_each (value, section->values.items, section->values.n)
		if (label_is_number(label->field) && is_misread(value->text))
			complain(binding->collector, value->line,
				 "value = %s=%s: the number has zeros in front, or more than 64 bits; write one like 8, -1 or 0x1f",
				 value->text, value->value);
	if (section->as && !strcmp(section->as, LABEL_KERNEL_ENUM))
		complain(binding->collector, section->line, "as = %s lacks the name of an enum of the kernel; write one, as in as = %s skb_drop_reason",
			 section->as, section->as);
}

static void check_role(const struct binding *binding, const struct descriptor_label *section,
		       const struct key_label *label)
{
	if (section->name || section->prefix || section->other || section->values.n ||
	    section->matches.n)
		complain(binding->collector, section->line,
			 "member \"%s\" of the record of map \"%s\" is the %s, and makes no attribute; keep only as = %s%s",
			 label->field->name, binding->map, label->type->name, label->type->name,
			 section->as ? "" : ", or remove this section");
}

/* A section of all maps does not change the role of a member, unless it says another role. */
static const struct descriptor_label *effective_section(const struct binding *binding,
							const struct field *field)
{
	const struct descriptor_label *section = section_of(binding, field);
	bool is_event = binding_is_of_event(binding);
	const struct label_type *own = find_type(NULL, field, is_event), *said;

	if (!section || *section->map != '*' || !own || !own->role)
		return section;
	said = section->as ? find_type(section->as, field, is_event) : NULL;
	return said && said->role ? section : NULL;
}

static int describe_label(const struct binding *binding, const struct descriptor_label *section,
			  struct key_label *label)
{
	const struct btf *kernel = NULL;
	int err;

	label->type = type_of(binding, section, label->field);
	if (label->type && label->type->role && section)
		check_role(binding, section, label);
	if (label->type && !label->type->put && !label->type->add)
		return 0;
	label->attribute = attribute_name(binding, label, section);
	if (!label->attribute)
		return -ENOMEM;
	if (label->type && !strcmp(label->type->name, "cgroup-path"))
		cgroups_keep_paths(binding->collector->labels->cgroups);
	if (!label->type || !section)
		return 0;
	check_section(binding, section, label);
	if (!strcmp(label->type->name, LABEL_KERNEL_ENUM))
		kernel = labels_kernel_types(binding->collector->labels);
	err = label_rule_new(section, kernel, binding->collector->diag,
			     binding->collector->conf_path, &label->rule);
	/* A collector is for many kernels. */
	if (!err && kernel && label->rule && binding->collector->is_probe)
		label_rule_check_enum(label->rule, kernel, binding->collector->diag,
				      binding->collector->conf_path);
	return err;
}

int key_labels_new(struct binding *binding)
{
	int err = 0;

	binding->labels = calloc(binding->key.n_fields, sizeof(*binding->labels));
	if (!binding->labels)
		return -ENOMEM;
	for (size_t i = 0; i < binding->key.n_fields && !err; i++) {
		const struct field *field = &binding->key.fields[i];
		const struct descriptor_label *section = effective_section(binding, field);

		binding->labels[i] = (struct key_label){ .context = &binding->collector->context,
							 .field = field };
		if (section && field == binding->bucket && *section->map != '*')
			complain(binding->collector, section->line,
				 "member \"%s\" of the key of map \"%s\" says the bucket, and makes no attribute; remove this section",
				 section->member, binding->map);
		else if (field != binding->bucket && (section || !is_filler(field)))
			err = describe_label(binding, section, &binding->labels[i]);
	}
	return err;
}

void key_labels_free(struct binding *binding)
{
	for (size_t i = 0; binding->labels && i < binding->key.n_fields; i++) {
		free(binding->labels[i].attribute);
		label_rule_free(binding->labels[i].rule);
	}
	free(binding->labels);
}

bool key_label_makes(const struct key_label *label, const char *attribute)
{
	if (!label->attribute || !attribute)
		return false;
	for (size_t i = 0; label->type && i < ARRAY_SIZE(label->type->own) && label->type->own[i];
	     i++)
		if (!strcmp(label->type->own[i], attribute))
			return true;
	return !strcmp(label->attribute, attribute);
}

/* An attribute is there once: neither OTLP nor any other format can tell two of one name apart. */
static const char *same_attribute(const struct key_label *one, const struct key_label *other)
{
	if (key_label_makes(one, other->attribute))
		return other->attribute;
	return key_label_makes(other, one->attribute) ? one->attribute : NULL;
}

static void complain_of_same(const struct binding *binding, const struct key_label *one,
			     const struct key_label *other)
{
	const struct descriptor_label *left = section_of(binding, one->field);
	const struct descriptor_label *right = section_of(binding, other->field);
	const char *instead = one->type && one->type == other->type ? one->type->instead : NULL;
	const char *first = one->field->name, *second = other->field->name, *map = binding->map;
	/* The last section that names one of them is the one to be changed. */
	const struct descriptor_label *last = left && (!right || left->line > right->line) ?
					      left : right;
	unsigned int line = last ? last->line : binding->first->line;

	if (instead)
		complain(binding->collector, line,
			 "members \"%s\" and \"%s\" of the key of map \"%s\" are both of type %s, of which a key can have only "
			 "one; write as = %s in [label %s.%s]",
			 first, second, map, one->type->name, instead, map, second);
	else
		complain(binding->collector, line,
			 "members \"%s\" and \"%s\" of the key of map \"%s\" both become attribute \"%s\"; give one another name "
			 "in a [label] section",
			 first, second, map, same_attribute(one, other));
}

void key_labels_check(const struct binding *binding)
{
	array_for_each (label, binding->labels, binding->key.n_fields) {
		const struct key_label *other = binding->labels;

		while (other < label && !same_attribute(other, label))
			other++;
		if (other < label)
			complain_of_same(binding, other, label);
	}
}
