/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a descriptor that need its metrics bound to the object's maps. */
#include "collector/binding.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "util/plural.h"

static void check_label(struct binder *binder, const struct descriptor_label *label, const struct binding *binding)
{
	const struct field *field = shape_find(&binding->key, label->member);
	const struct label_type *type = field ? label_type_find(field) : NULL;
	const struct shape *key = &binding->key;

	if (type && type->n_own)
		complain(binder, label->line,
			 "member \"%s\" of the key of map \"%s\" is a %s, which names its attributes itself; remove this section",
			 label->member, label->map, field->type_name);
	else if (!field && key->n_fields == 1 && !*key->fields[0].name)
		complain(binder, label->line, "the key of map \"%s\" has no members; write [label %s]", label->map, label->map);
	else if (!field && key->n_fields && !*label->member)
		complain(binder, label->line, "the key of map \"%s\" has members; write [label %s.MEMBER]", label->map, label->map);
	else if (!field && key->n_fields)
		complain_of_unknown(binder, label->line, "member", label->member, key->fields, key->n_fields);
}

/* [label]s whose map is exported and whose member is there, and can be named. */
static void check_labels(struct binder *binder)
{
	const struct collector *collector = binder->collector;

	for (size_t i = 0; i < collector->descriptor->n_labels; i++) {
		const struct descriptor_label *label = &collector->descriptor->labels[i];
		const struct binding *binding = binding_find(collector, label->map);

		if (binding)
			check_label(binder, label, binding);
		else
			complain_of_unknown(binder, label->line, "exported map", label->map, collector->bindings,
					    collector->n_bindings);
	}
}

/* Where one of two members got its name: the later section that names either. */
static unsigned int line_of_labels(const struct binder *binder, const struct binding *binding, const char *one,
				   const char *other)
{
	const struct descriptor *descriptor = binder->collector->descriptor;
	unsigned int line = binding->line;

	for (size_t i = 0; i < descriptor->n_labels; i++)
		if (!strcmp(descriptor->labels[i].map, binding->map) &&
		    (!strcmp(descriptor->labels[i].member, one) || !strcmp(descriptor->labels[i].member, other)))
			line = descriptor->labels[i].line;
	return line;
}

/* An attribute is there once: neither OTLP nor any other format can tell two of one name apart. */
static void check_key_names(struct binder *binder, const struct binding *binding)
{
	for (uint32_t i = 0; i < binding->key.n_fields; i++)
		for (uint32_t j = 0; j < i; j++) {
			const char *one = binding->key.fields[j].name, *other = binding->key.fields[i].name;

			if (!binding->labels[i].attribute || !binding->labels[j].attribute ||
			    strcmp(binding->labels[i].attribute, binding->labels[j].attribute))
				continue;
			complain(binder, line_of_labels(binder, binding, one, other),
				 "members \"%s\" and \"%s\" of the key of map \"%s\" both become attribute \"%s\"; give one another "
				 "name in a [label] section",
				 one, other, binding->map, binding->labels[i].attribute);
		}
}

static bool has_attribute(const struct binding *binding, const struct descriptor_metric *metric, unsigned int before,
			  const char *name)
{
	for (uint32_t i = 0; i < binding->key.n_fields; i++)
		if (binding->labels[i].attribute && !strcmp(binding->labels[i].attribute, name))
			return true;
	for (unsigned int i = 0; i < before; i++)
		if (!strcmp(metric->attributes[i].name, name))
			return true;
	return false;
}

static void check_metric(struct binder *binder, const struct binding *binding, const struct descriptor_metric *metric)
{
	unsigned int n = metric->n_attributes;

	for (uint32_t i = 0; i < binding->key.n_fields; i++)
		n += binding->labels[i].type ? binding->labels[i].type->n_own ?: 1 : 0;
	if (n > ATTRIBUTES_MAX)
		complain(binder, metric->line, "metric \"%s\" would have %u attributes; at most %d are possible, so remove members from the key",
			 metric->name, n, ATTRIBUTES_MAX);
	for (unsigned int i = 0; i < metric->n_attributes; i++)
		if (has_attribute(binding, metric, i, metric->attributes[i].name))
			complain(binder, metric->attributes[i].line,
				 "metric \"%s\" has an attribute \"%s\" already; remove this line, or use another name",
				 metric->name, metric->attributes[i].name);
}

/*
 * A program looks for a key in a flat table byte by byte. Whatever was in the gaps of a key would make another
 * key of it, so the members must leave none.
 */
static void check_gaps(struct binder *binder, const struct binding *binding)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i <= binding->key.n_fields; i++) {
		bool is_end = i == binding->key.n_fields;
		uint32_t start = is_end ? binding->key.size_bytes : binding->key.fields[i].offset_bytes;

		if (start > end)
			complain(binder, binding->line,
				 "the key of table \"%s\" has a gap of %u byte%s after member \"%s\", and random bytes there "
				 "would split one key into several; fill it with a member whose name begins with \"unused\"",
				 binding->map, start - end, plural(start - end),
				 i ? binding->key.fields[i - 1].name : "");
		if (!is_end)
			end = start + binding->key.fields[i].size_bytes;
	}
}

static void check_attributes(struct binder *binder)
{
	for (size_t i = 0; i < binder->collector->n_bindings; i++) {
		const struct binding *binding = &binder->collector->bindings[i];

		if (!binding->labels)
			continue;
		if (binding->source.is_table)
			check_gaps(binder, binding);
		check_key_names(binder, binding);
		for (uint32_t j = 0; j < binding->delta.n_metrics; j++)
			check_metric(binder, binding, binding->delta.metrics[j].user);
	}
}

static int check_settings(struct binder *binder)
{
	struct collector *collector = binder->collector;
	struct settings *settings = &collector->settings;
	const char *complaint;

	for (size_t i = 0; i < collector->descriptor->n_params; i++) {
		const struct descriptor_param *param = &collector->descriptor->params[i];
		struct setting *setting = setting_find(settings, param->name);
		int err;

		if (!setting)
			complain_of_unknown(binder, param->line, "\"const volatile\" variable", param->name, settings->items, settings->n);
		if (!setting || !param->default_text)
			continue;
		err = setting_set(settings, setting, param->default_text, collector->conf_path, param->line,
				  &complaint);
		if (err == -ENOMEM)
			return err;
		if (err)
			complain(binder, param->line, "default \"%s\" of \"%s\" %s", param->default_text, param->name,
				 complaint);
	}
	return 0;
}

/* A [program] section speaks of a program, or of all alternatives of a hook. */
static bool is_meant(const struct descriptor_program *described, const struct program *program)
{
	return !strcmp(described->name, program->name) || !strcmp(described->name, program->hook);
}

static const struct descriptor_program *described_program(const struct collector *collector,
							  const struct program *program)
{
	for (size_t i = 0; i < collector->descriptor->n_programs; i++)
		if (is_meant(&collector->descriptor->programs[i], program))
			return &collector->descriptor->programs[i];
	return NULL;
}

/* An iterator over the elements of a map must be told which. */
static void check_iterator(struct binder *binder, const struct program *program)
{
	const struct descriptor_program *described = described_program(binder->collector, program);
	const char *map = described ? described->map : NULL;

	if (program_is_over_map(program) && !map)
		complain(binder, described ? described->line : 0,
			 "program \"%s\" visits the elements of a map; name the map in [program %s]: map = …", program->name,
			 program->name);
	if (map && !program_is_over_map(program))
		complain(binder, described->line,
			 "\"map\" is for iterators over a map's elements, and program \"%s\" (%s) is not one; remove the line",
			 program->name, program->section);
	else if (map && !bpf_object__find_map_by_name(binder->collector->object, map))
		complain(binder, described->line, "\"map\" names a map that the object does not have: \"%s\"", map);
}

/* Only one of a hook's alternatives counts, so it must be sure that they are some. */
static void check_alternative(struct binder *binder, const struct program *program)
{
	if (program->is_doubtful)
		complain(binder, 0,
			 "program \"%s\" (%s) looks like an alternative for hook \"%s\", of which only one would count; end its "
			 "name in the type of its section (%s__btf, %s__fexit …), or use a name without \"__\"",
			 program->name, program->section, program->hook, program->hook, program->hook);
}

static void check_programs(struct binder *binder)
{
	const struct collector *collector = binder->collector;
	const struct programs *programs = &collector->programs;

	for (size_t i = 0; i < collector->descriptor->n_programs; i++) {
		const struct descriptor_program *described = &collector->descriptor->programs[i];
		bool is_found = false;

		for (uint32_t j = 0; j < programs->n; j++)
			is_found |= is_meant(described, &programs->items[j]);
		if (!is_found)
			complain_of_unknown(binder, described->line, "program or hook", described->name, programs->items, programs->n);
		if (described->when && !setting_find(&collector->settings, described->when))
			complain(binder, described->line, "\"when\" names a setting that the object does not have: \"%s\"", described->when);
	}
	for (uint32_t i = 0; i < programs->n; i++) {
		check_alternative(binder, &programs->items[i]);
		check_iterator(binder, &programs->items[i]);
	}
	if (!programs->n)
		complain(binder, 0, "%s has no program, so nothing would be counted", collector->object_path);
}

int bindings_check(struct collector *collector, struct diag *diag)
{
	struct binder binder = { collector, diag };

	int err = check_settings(&binder);

	check_labels(&binder);
	check_attributes(&binder);
	check_programs(&binder);
	return err;
}
