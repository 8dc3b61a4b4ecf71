/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind of section is a row in sections[], a key a row in keys[]. Each section makes one item of a list in the
 * descriptor, and each key sets one string in that item. The strings are those of the file.
 */
#include "collector/descriptor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/ini.h"
#include "util/parse.h"

struct reader {
	struct descriptor *descriptor;
	struct diag *diag;
	const struct ini_file *file;
	bool has_collector;
};

#define complain(reader, line, ...) diag_add((reader)->diag, (reader)->file->path, line, __VA_ARGS__)

bool descriptor_is_metric_name(const char *text)
{
	bool is_start = true;

	for (; *text; text++) {
		bool is_letter = *text >= 'a' && *text <= 'z';
		bool is_later = (*text >= '0' && *text <= '9') || *text == '_' || *text == '.';

		if (!is_letter && (is_start || !is_later))
			return false;
		is_start = *text == '.';
	}
	return !is_start;
}

static const char *check_name(const char *value)
{
	return descriptor_is_metric_name(value) ? NULL :
		"is not a lower-case dotted name; write one like \"disk.io.direction\"";
}

static const char *check_unit(const char *value)
{
	return *value && strlen(value) <= 63 && !strpbrk(value, " \t") ? NULL :
		"is not a UCUM unit; write s, By, 1 or an annotation like {call}";
}

static const char *check_kind(const char *value)
{
	return !strcmp(value, "gauge") ? NULL :
		"cannot be set here: only gauge can (a sum or a histogram follows from the member's type); write "
		"kind = gauge or remove the line";
}

static const char *check_object(const char *value)
{
	return parse_is_name(value) ? NULL : "is not a plain name; write NAME for NAME.bpf.o in the descriptor's directory";
}

static const char *check_runs(const char *value)
{
	return !strcmp(value, "once") || !strcmp(value, "seed") ?
		       NULL :
		       "is neither \"once\" nor \"seed\"; write one of them or remove the line";
}

static const char *check_attribute(const char *value)
{
	const char *equals = strchr(value, '=');

	return equals && equals != value && equals[1] ? NULL : "has no name and value; write attribute = name=value";
}

#define LIST(list) offsetof(struct descriptor, list), offsetof(struct descriptor, n_##list), \
		   sizeof(*((struct descriptor *)NULL)->list)
#define PLACE(structure, subject) offsetof(struct structure, subject), offsetof(struct structure, line)

static const struct section {
	const char *name;
	const char *argument;			     /* what messages call it; NULL: the section has none */
	size_t list_offset, n_offset, item_bytes;    /* of its list in the descriptor */
	size_t argument_offset, line_offset;	     /* in an item */
	size_t member_offset;			     /* of what follows the dot in the argument; 0: it is one name */
} sections[] = {
	{ "collector" },
	{ "param", "NAME", LIST(params), PLACE(descriptor_param, name) },
	{ "metric", "MAP.MEMBER", LIST(metrics), PLACE(descriptor_metric, map), offsetof(struct descriptor_metric, member) },
	{ "label", "MAP.MEMBER", LIST(labels), PLACE(descriptor_label, map), offsetof(struct descriptor_label, member) },
	{ "program", "NAME", LIST(programs), PLACE(descriptor_program, name) },
};

static const struct key {
	const char *section, *name;
	size_t offset; /* of a const char * in the item */
	const char *(*check)(const char *value); /* NULL, or the end of the message "KEY "VALUE" …" */
	bool is_required;
} keys[] = {
	{ "collector", "description", offsetof(struct descriptor, description), NULL, true },
	{ "collector", "object", offsetof(struct descriptor, object), check_object },
	{ "param", "default", offsetof(struct descriptor_param, default_text) },
	{ "param", "description", offsetof(struct descriptor_param, description) },
	{ "metric", "name", offsetof(struct descriptor_metric, name), check_name, true },
	{ "metric", "unit", offsetof(struct descriptor_metric, unit), check_unit, true },
	{ "metric", "description", offsetof(struct descriptor_metric, description), NULL, true },
	{ "metric", "kind", offsetof(struct descriptor_metric, kind), check_kind },
	{ "metric", "attribute", 0, check_attribute },
	{ "metric", "when", offsetof(struct descriptor_metric, when) },
	{ "label", "name", offsetof(struct descriptor_label, name), check_name, true },
	{ "program", "when", offsetof(struct descriptor_program, when) },
	{ "program", "map", offsetof(struct descriptor_program, map) },
	{ "program", "runs", offsetof(struct descriptor_program, runs), check_runs },
	{ "program", "events", offsetof(struct descriptor_program, events) },
	{ "program", "backup", offsetof(struct descriptor_program, backup) },
};

static const char **text_at(void *item, size_t offset)
{
	return (const char **)((char *)item + offset);
}

static const struct section *find_section(struct reader *reader, const struct ini_entry *head)
{
	const struct section *section = array_find(sections, ARRAY_SIZE(sections), head->section);

	if (!section)
		diag_add_unknown(reader->diag, reader->file->path, head->line, "section", head->section, sections,
				 ARRAY_SIZE(sections));
	if (!section || !section->argument == !*head->argument)
		return section;
	complain(reader, head->line, "write [%s%s%s]", section->name, section->argument ? " " : "",
		 section->argument ?: "");
	return NULL;
}

/* The item that a section makes; the entry's text is ours to cut. NULL: no memory. */
static void *add_item(struct descriptor *descriptor, const struct section *section, const struct ini_entry *head)
{
	size_t *n = (size_t *)((char *)descriptor + section->n_offset);
	char *item, *dot;

	if (!section->argument)
		return descriptor;
	item = array_add((char *)descriptor + section->list_offset, n, section->item_bytes);
	if (!item)
		return NULL;
	*text_at(item, section->argument_offset) = head->argument;
	*(unsigned int *)(item + section->line_offset) = head->line;
	if (section->member_offset) {
		dot = strchr(head->argument, '.');
		*text_at(item, section->member_offset) = dot ? dot + 1 : "";
		if (dot)
			*dot = '\0';
	}
	return item;
}

static void add_attribute(struct reader *reader, struct descriptor_metric *metric, const struct ini_entry *entry)
{
	char *equals = strchr(entry->value, '=');

	if (metric->n_attributes == DESCRIPTOR_ATTRIBUTES_MAX) {
		complain(reader, entry->line, "more than %d fixed attributes on one metric; move the rest into the map's key",
			 DESCRIPTOR_ATTRIBUTES_MAX);
		return;
	}
	*equals = '\0'; /* the entry is ours, and read once */
	if (check_name(entry->value))
		complain(reader, entry->line, "attribute name \"%s\" %s", entry->value, check_name(entry->value));
	metric->attributes[metric->n_attributes++] =
		(struct descriptor_attribute){ entry->value, equals + 1, entry->line };
}

static void set(struct reader *reader, const struct section *section, const struct ini_entry *entry, void *item)
{
	const char *names[ARRAY_SIZE(keys)], *complaint;
	size_t n = 0;

	array_for_each (key, keys, ARRAY_SIZE(keys)) {
		if (strcmp(key->section, section->name))
			continue;
		names[n++] = key->name;
		if (strcmp(key->name, entry->key))
			continue;
		if (key->offset && *text_at(item, key->offset))
			complain(reader, entry->line, "\"%s\" is set twice in this section; keep one", entry->key);
		complaint = key->check ? key->check(entry->value) : NULL;
		if (complaint)
			complain(reader, entry->line, "%s \"%s\" %s", key->name, entry->value, complaint);
		else if (!key->offset)
			add_attribute(reader, item, entry);
		/* A required text is kept all the same: it is not missing. */
		if (key->offset && (!complaint || key->is_required))
			*text_at(item, key->offset) = entry->value;
		return;
	}
	diag_add_unknown(reader->diag, reader->file->path, entry->line, "key", entry->key, names, n);
}

static void check_required(struct reader *reader, const struct section *section, unsigned int line, void *item)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].is_required && !strcmp(keys[i].section, section->name) && !*text_at(item, keys[i].offset))
			complain(reader, line, "[%s] lacks \"%s\"; add a line %s = …", section->name, keys[i].name,
				 keys[i].name);
}

/* One section with its keys; *at becomes the index of the entry after them. */
static int read_section(struct reader *reader, size_t *at)
{
	const struct ini_file *file = reader->file;
	const struct ini_entry *head = &file->entries[*at], *entry = head + 1;
	const struct section *section = find_section(reader, head);
	void *item = section ? add_item(reader->descriptor, section, head) : NULL;

	if (section && !item)
		return -ENOMEM;
	reader->has_collector |= item == reader->descriptor;
	for (; entry < file->entries + file->n_entries && entry->key; entry++)
		if (item)
			set(reader, section, entry, item);
	if (item)
		check_required(reader, section, head->line, item);
	*at = (size_t)(entry - file->entries);
	return 0;
}

static void check_sections_differ(struct reader *reader)
{
	array_for_each (entry, reader->file->entries, reader->file->n_entries) {
		const struct ini_entry *earlier = entry->key ? NULL : ini_find_earlier(reader->file, entry);

		if (earlier)
			complain(reader, entry->line, "[%s%s%s] already begins on line %u; keep one", entry->section,
				 *entry->argument ? " " : "", entry->argument, earlier->line);
	}
}

int descriptor_parse(FILE *f, const char *path, struct diag *diag, struct descriptor **ret_descriptor)
{
	_cleanup_(descriptor_freep) struct descriptor *descriptor = calloc(1, sizeof(*descriptor));
	struct reader reader = { .descriptor = descriptor, .diag = diag };
	int err;

	if (!descriptor)
		return -ENOMEM;
	err = ini_read(f, path, diag, &descriptor->file);
	if (err)
		return err;
	reader.file = descriptor->file;
	check_sections_differ(&reader);
	for (size_t at = 0; !err && at < reader.file->n_entries;)
		err = read_section(&reader, &at);
	if (err)
		return err;
	if (!reader.has_collector)
		diag_add(diag, path, 0, "no [collector] section; begin with one that has a description = …");
	if (!descriptor->description)
		descriptor->description = "";
	if (!descriptor->n_metrics)
		diag_add(diag, path, 0, "no [metric MAP] section, so nothing would be shown; add one for each map to export");
	*ret_descriptor = TAKE_PTR(descriptor);
	return 0;
}

const struct descriptor_param *descriptor_find_param(const struct descriptor *descriptor, const char *name)
{
	return array_find(descriptor->params, descriptor->n_params, name);
}

bool descriptor_is_metric_of(const struct descriptor_metric *metric, const char *place)
{
	size_t n = strlen(metric->map);

	return !strncmp(place, metric->map, n) && (place[n] == '.' ? !strcmp(place + n + 1, metric->member) :
								   !place[n] && !*metric->member);
}

struct descriptor *descriptor_free(struct descriptor *descriptor)
{
	if (!descriptor)
		return NULL;
	free(descriptor->params);
	free(descriptor->metrics);
	free(descriptor->labels);
	free(descriptor->programs);
	ini_file_free(descriptor->file);
	free(descriptor);
	return NULL;
}
