/* SPDX-License-Identifier: Apache-2.0 */
/* What of a descriptor can be checked once its metrics are bound to the object's maps. */
#include "collector/binding.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "util/parse.h"

const char *binding_instead(const char *name, const char *const *names, size_t n, const char *whose, struct buf *out)
{
	const char *nearest = parse_nearest(name, names, n);

	buf_reset(out);
	if (nearest) {
		buf_printf(out, "did you mean \"%s\"?", nearest);
		return buf_text(out);
	}
	buf_printf(out, "%s has %s", whose, n ? "" : "none");
	for (size_t i = 0; i < n && i < 12; i++)
		buf_printf(out, "%s%s", i ? ", " : "", names[i]);
	return buf_text(out);
}

size_t binding_field_names(const struct shape *shape, const char **names, size_t max)
{
	size_t n = 0;

	for (; n < shape->n_fields && n < max; n++)
		names[n] = shape->fields[n].name;
	return n;
}

/* [label]s whose map is exported and whose member is there, and can be named. */
static void check_labels(struct binder *binder)
{
	const struct descriptor *descriptor = binder->collector->descriptor;

	for (size_t i = 0; i < descriptor->n_labels; i++) {
		const struct descriptor_label *label = &descriptor->labels[i];
		const struct binding *binding = binding_find(binder->collector, label->map);
		const struct field *field = binding ? shape_find(&binding->key, label->member) : NULL;
		_cleanup_(buf_done) struct buf text = BUF_INIT;
		const char *names[32];
		size_t n = 0;

		if (!binding) {
			for (; n < binder->collector->n_bindings && n < ARRAY_SIZE(names); n++)
				names[n] = binder->collector->bindings[n].map;
			complain(binder, label->line, "no [metric] exports a map \"%s\"; %s", label->map,
				 binding_instead(label->map, names, n, "this descriptor", &text));
		} else if (field && label_names_itself(field)) {
			complain(binder, label->line,
				 "member \"%s\" of the key of map \"%s\" is a %s, which names its attributes itself; remove this section",
				 label->member, label->map, field->type_name);
		} else if (!field && binding->key.n_fields == 1 && !*binding->key.fields[0].name) {
			complain(binder, label->line, "the key of map \"%s\" has no members; write [label %s]", label->map, label->map);
		} else if (!field && binding->key.n_fields) {
			n = binding_field_names(&binding->key, names, ARRAY_SIZE(names));
			complain(binder, label->line, "the key of map \"%s\" has no member \"%s\"; %s", label->map,
				 label->member, binding_instead(label->member, names, n, "it", &text));
		}
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

			if (!binding->label_names[i] || !binding->label_names[j] ||
			    strcmp(binding->label_names[i], binding->label_names[j]))
				continue;
			complain(binder, line_of_labels(binder, binding, one, other),
				 "members \"%s\" and \"%s\" of the key of map \"%s\" both become attribute \"%s\"; name one otherwise "
				 "in a [label] section",
				 one, other, binding->map, binding->label_names[i]);
		}
}

static bool has_attribute(const struct binding *binding, const struct descriptor_metric *metric, unsigned int before,
			  const char *name)
{
	for (uint32_t i = 0; i < binding->key.n_fields; i++)
		if (binding->label_names[i] && !strcmp(binding->label_names[i], name))
			return true;
	for (unsigned int i = 0; i < before; i++)
		if (!strcmp(metric->attributes[i].name, name))
			return true;
	return false;
}

static void check_attributes(struct binder *binder)
{
	for (size_t i = 0; i < binder->collector->n_bindings; i++) {
		const struct binding *binding = &binder->collector->bindings[i];
		unsigned int n_key = 0;

		if (!binding->label_names)
			continue;
		check_key_names(binder, binding);
		for (uint32_t j = 0; j < binding->key.n_fields; j++)
			n_key += label_n_attributes(&binding->key.fields[j]);
		for (uint32_t j = 0; j < binding->delta.n_metrics; j++) {
			const struct descriptor_metric *metric = binding->described[j];

			if (n_key + metric->n_attributes > ATTRIBUTES_MAX)
				complain(binder, metric->line, "metric \"%s\" would have %u attributes; %d is the most, so take "
							       "some out of the key",
					 metric->name, n_key + metric->n_attributes, ATTRIBUTES_MAX);
			for (unsigned int k = 0; k < metric->n_attributes; k++)
				if (has_attribute(binding, metric, k, metric->attributes[k].name))
					complain(binder, metric->attributes[k].line,
						 "metric \"%s\" has an attribute \"%s\" already; remove this line, or name it otherwise",
						 metric->name, metric->attributes[k].name);
		}
	}
}

static int check_params(struct binder *binder)
{
	struct collector *collector = binder->collector;
	const char *names[64], *complaint;

	for (size_t i = 0; i < collector->descriptor->n_params; i++) {
		const struct descriptor_param *param = &collector->descriptor->params[i];
		const struct setting *setting = setting_find(&collector->settings, param->name);
		_cleanup_(buf_done) struct buf text = BUF_INIT;
		size_t n = 0;
		int err;

		for (; n < collector->settings.n && n < ARRAY_SIZE(names); n++)
			names[n] = collector->settings.items[n].name;
		if (!setting) {
			complain(binder, param->line, "the object has no \"const volatile\" variable \"%s\"; %s", param->name,
				 binding_instead(param->name, names, n, "it", &text));
			continue;
		}
		if (!param->default_text)
			continue;
		err = setting_set(&collector->settings, setting, param->default_text, &complaint);
		if (err == -ENOMEM)
			return err;
		if (err)
			complain(binder, param->line, "default \"%s\" of \"%s\" %s", param->default_text, param->name, complaint);
		else
			setting_note(&collector->settings, setting, param->default_text, collector->conf_path,
				     param->line);
	}
	return 0;
}

/* What a [program] section says is said of a program, or of all alternatives of a hook. */
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
static void check_iterators(struct binder *binder)
{
	struct collector *collector = binder->collector;

	for (uint32_t i = 0; i < collector->programs.n; i++) {
		const struct program *program = &collector->programs.items[i];
		const struct descriptor_program *described = described_program(collector, program);

		if (program_is_over_map(program) && (!described || !described->map))
			complain(binder, described ? described->line : 0,
				 "program \"%s\" visits the elements of a map; say which in [program %s]: map = …",
				 program->name, program->name);
		if (described && described->map && !program_is_over_map(program))
			complain(binder, described->line,
				 "\"map\" is for iterators over a map's elements, which program \"%s\" (%s) is not; remove the line",
				 program->name, program->section);
		else if (described && described->map &&
			 !bpf_object__find_map_by_name(collector->object, described->map))
			complain(binder, described->line, "\"map\" names no map of the object: \"%s\"", described->map);
	}
}

static void check_programs(struct binder *binder)
{
	struct collector *collector = binder->collector;
	const char *names[64];

	for (size_t i = 0; i < collector->descriptor->n_programs; i++) {
		const struct descriptor_program *described = &collector->descriptor->programs[i];
		_cleanup_(buf_done) struct buf text = BUF_INIT;
		bool is_found = false;
		size_t n = 0;

		for (uint32_t j = 0; j < collector->programs.n; j++) {
			if (n < ARRAY_SIZE(names))
				names[n++] = collector->programs.items[j].name;
			is_found |= is_meant(described, &collector->programs.items[j]);
		}
		if (!is_found)
			complain(binder, described->line, "the object has no program or hook \"%s\"; %s", described->name,
				 binding_instead(described->name, names, n, "it", &text));
		if (described->when && !setting_find(&collector->settings, described->when))
			complain(binder, described->line, "\"when\" names a setting that the object does not have: \"%s\"", described->when);
	}
	if (!collector->programs.n)
		complain(binder, 0, "%s holds no program, so nothing would be counted", collector->object_path);
}

int bindings_check(struct binder *binder)
{
	int err = check_params(binder);

	if (err)
		return err;
	check_labels(binder);
	check_attributes(binder);
	check_programs(binder);
	check_iterators(binder);
	return 0;
}
