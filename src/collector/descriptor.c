/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A section of each kind is a row in kinds[], a key of each section a row in its keys: the target is a
 * string at an offset in the item that the section made. What is not a plain string has a function.
 */
#include "collector/descriptor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/ini.h"
#include "util/parse.h"

struct reader {
	struct descriptor *descriptor;
	struct diag *diag;
	const char *path;
};

struct key {
	const char *name;
	size_t offset; /* of a const char * in the item; with set(): unused */
	/* Complains itself. */
	void (*set)(struct reader *reader, const struct ini_entry *entry, void *item);
	bool is_required;
};

#define complain(reader, line, ...) diag_add((reader)->diag, (reader)->path, line, __VA_ARGS__)

static bool is_name(const char *text, const char *extra)
{
	bool is_start = true;

	for (; *text; text++) {
		bool is_letter = *text >= 'a' && *text <= 'z';
		bool is_later = (*text >= '0' && *text <= '9') || (*text == '_' && !is_start);

		if (!is_letter && (is_start || !is_later) && !(strchr(extra, *text) && !is_start))
			return false;
		is_start = *text == '.';
	}
	return !is_start;
}

bool descriptor_is_metric_name(const char *text)
{
	return is_name(text, ".");
}

static void set_name(struct reader *reader, const struct ini_entry *entry, void *item)
{
	/* The name is the first string of both items that have one by this function. */
	if (!descriptor_is_metric_name(entry->value))
		complain(reader, entry->line,
			 "name \"%s\" is not a lower-case dotted name; write one like \"system.timer.starts\"",
			 entry->value);
	*(const char **)item = entry->value;
}

static void set_metric_name(struct reader *reader, const struct ini_entry *entry, void *item)
{
	set_name(reader, entry, &((struct descriptor_metric *)item)->name);
}

static void set_label_name(struct reader *reader, const struct ini_entry *entry, void *item)
{
	set_name(reader, entry, &((struct descriptor_label *)item)->name);
}

static void set_unit(struct reader *reader, const struct ini_entry *entry, void *item)
{
	if (!*entry->value || strlen(entry->value) > 63 || strpbrk(entry->value, " \t"))
		complain(reader, entry->line,
			 "unit \"%s\" is not a UCUM unit; write s, By, 1 or an annotation like {call}", entry->value);
	((struct descriptor_metric *)item)->unit = entry->value;
}

static void set_kind(struct reader *reader, const struct ini_entry *entry, void *item)
{
	if (strcmp(entry->value, "gauge"))
		complain(reader, entry->line,
			 "kind \"%s\" cannot be said here: only gauge can (a sum or a histogram is seen from the "
			 "member's type); write kind = gauge or leave the line out",
			 entry->value);
	else
		((struct descriptor_metric *)item)->is_gauge = true;
}

static void set_attribute(struct reader *reader, const struct ini_entry *entry, void *item)
{
	struct descriptor_metric *metric = item;
	char *value = strchr(entry->value, '=');

	if (!value || value == entry->value || !value[1]) {
		complain(reader, entry->line, "attribute \"%s\" has no name and value; write attribute = name=value",
			 entry->value);
		return;
	}
	if (metric->n_attributes == DESCRIPTOR_ATTRIBUTES_MAX) {
		complain(reader, entry->line, "more than %d fixed attributes on one metric; move the rest into the map's key",
			 DESCRIPTOR_ATTRIBUTES_MAX);
		return;
	}
	*value = '\0'; /* the entry is ours, and read once */
	if (!descriptor_is_metric_name(entry->value))
		complain(reader, entry->line,
			 "attribute name \"%s\" is not a lower-case dotted name; write one like \"disk.io.direction\"",
			 entry->value);
	metric->attributes[metric->n_attributes++] =
		(struct descriptor_attribute){ entry->value, value + 1, entry->line };
}

#define TEXT(structure, member, is_required_)                                   \
	{                                                                       \
#member, offsetof(struct structure, member), NULL, is_required_ \
	}

static const struct key collector_keys[] = {
	TEXT(descriptor, description, true),
	{ 0 },
};
static const struct key param_keys[] = {
	TEXT(descriptor_param, description, false),
	{ "default", offsetof(struct descriptor_param, default_text), NULL, false },
	{ 0 },
};
static const struct key metric_keys[] = {
	{ "name", offsetof(struct descriptor_metric, name), set_metric_name, true },
	{ "unit", offsetof(struct descriptor_metric, unit), set_unit, true },
	TEXT(descriptor_metric, description, true),
	{ "kind", 0, set_kind, false },
	{ "attribute", 0, set_attribute, false },
	{ 0 },
};
static const struct key label_keys[] = {
	{ "name", offsetof(struct descriptor_label, name), set_label_name, true },
	{ 0 },
};
static const struct key program_keys[] = {
	TEXT(descriptor_program, when, false),
	TEXT(descriptor_program, map, false),
	{ 0 },
};

/* Makes room for one more item of a list in the descriptor. */
static void *append(void *list, size_t *n, size_t item_bytes)
{
	void **items = list, *grown = reallocarray(*items, *n + 1, item_bytes);

	if (!grown)
		return NULL;
	*items = grown;
	return memset((char *)grown + (*n)++ * item_bytes, 0, item_bytes);
}

/* "map.member" into its two halves; the entry's text is ours. */
static void split(const struct ini_entry *entry, const char **ret_map, const char **ret_member)
{
	char *dot = strchr(entry->argument, '.');

	*ret_map = entry->argument;
	*ret_member = dot ? dot + 1 : "";
	if (dot)
		*dot = '\0';
}

static void *begin_collector(struct descriptor *d, const struct ini_entry *entry)
{
	return d;
}

static void *begin_param(struct descriptor *d, const struct ini_entry *entry)
{
	struct descriptor_param *item = append(&d->params, &d->n_params, sizeof(*item));

	if (item)
		*item = (struct descriptor_param){ .name = entry->argument, .description = "", .line = entry->line };
	return item;
}

static void *begin_metric(struct descriptor *d, const struct ini_entry *entry)
{
	struct descriptor_metric *item = append(&d->metrics, &d->n_metrics, sizeof(*item));

	if (item) {
		split(entry, &item->map, &item->member);
		item->line = entry->line;
	}
	return item;
}

static void *begin_label(struct descriptor *d, const struct ini_entry *entry)
{
	struct descriptor_label *item = append(&d->labels, &d->n_labels, sizeof(*item));

	if (item) {
		split(entry, &item->map, &item->member);
		item->line = entry->line;
	}
	return item;
}

static void *begin_program(struct descriptor *d, const struct ini_entry *entry)
{
	struct descriptor_program *item = append(&d->programs, &d->n_programs, sizeof(*item));

	if (item)
		*item = (struct descriptor_program){ .name = entry->argument, .line = entry->line };
	return item;
}

static const struct kind {
	const char *name;
	const char *argument; /* what it is called in messages; NULL: the section has none */
	void *(*begin)(struct descriptor *descriptor, const struct ini_entry *entry);
	const struct key *keys;
} kinds[] = {
	{ "collector", NULL, begin_collector, collector_keys },
	{ "param", "NAME", begin_param, param_keys },
	{ "metric", "MAP.MEMBER", begin_metric, metric_keys },
	{ "label", "MAP.MEMBER", begin_label, label_keys },
	{ "program", "NAME", begin_program, program_keys },
};

static const struct kind *find_kind(struct reader *reader, const struct ini_entry *entry)
{
	const char *names[ARRAY_SIZE(kinds)], *nearest;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		names[i] = kinds[i].name;
		if (strcmp(kinds[i].name, entry->section))
			continue;
		if (!kinds[i].argument != !*entry->argument) {
			complain(reader, entry->line, "write [%s%s%s]", kinds[i].name, kinds[i].argument ? " " : "",
				 kinds[i].argument ? kinds[i].argument : "");
			return NULL;
		}
		return &kinds[i];
	}
	nearest = parse_nearest(entry->section, names, ARRAY_SIZE(names));
	complain(reader, entry->line, "unknown section [%s]; %s%s%s", entry->section,
		 nearest ? "did you mean [" : "a descriptor has collector, param, metric, label and program sections",
		 nearest ? nearest : "", nearest ? "]?" : "");
	return NULL;
}

static void set(struct reader *reader, const struct kind *kind, const struct ini_entry *entry, void *item)
{
	const char *names[8], *nearest;
	const struct key *key;
	size_t n = 0;

	for (key = kind->keys; key->name; key++) {
		if (strcmp(key->name, entry->key)) {
			names[n++] = key->name;
			continue;
		}
		if (key->set)
			key->set(reader, entry, item);
		else
			*(const char **)((char *)item + key->offset) = entry->value;
		return;
	}
	nearest = parse_nearest(entry->key, names, n);
	if (nearest)
		complain(reader, entry->line, "unknown key \"%s\" in [%s]; did you mean \"%s\"?", entry->key,
			 kind->name, nearest);
	else
		complain(reader, entry->line, "unknown key \"%s\" in [%s]", entry->key, kind->name);
}

static void check_required(struct reader *reader, const struct kind *kind, unsigned int line, const void *item)
{
	for (const struct key *key = kind->keys; key->name; key++)
		if (key->is_required && !*(const char *const *)((const char *)item + key->offset))
			complain(reader, line, "[%s] lacks \"%s\"; add a line %s = …", kind->name, key->name, key->name);
}

/* The keys of one section; returns the index of the entry behind them. */
static size_t read_section(struct reader *reader, const struct ini_file *file, size_t at, int *ret_error)
{
	const struct ini_entry *head = &file->entries[at];
	const struct kind *kind = find_kind(reader, head);
	void *item = kind ? kind->begin(reader->descriptor, head) : NULL;

	if (kind && !item)
		*ret_error = -ENOMEM;
	for (at++; at < file->n_entries && file->entries[at].key; at++) {
		bool is_again = false;

		if (!item)
			continue;
		for (const struct ini_entry *e = head + 1; e < &file->entries[at]; e++)
			is_again |= !strcmp(e->key, file->entries[at].key);
		if (is_again && strcmp(file->entries[at].key, "attribute"))
			complain(reader, file->entries[at].line, "\"%s\" is set twice in this section; keep one",
				 file->entries[at].key);
		set(reader, kind, &file->entries[at], item);
	}
	if (item)
		check_required(reader, kind, head->line, item);
	return at;
}

static bool has_collector_section(const struct ini_file *file)
{
	for (size_t i = 0; i < file->n_entries; i++)
		if (!file->entries[i].key && !strcmp(file->entries[i].section, "collector"))
			return true;
	return false;
}

/* The same section twice, by what begins it. */
static void check_again(struct reader *reader, const struct ini_file *file)
{
	for (size_t i = 0; i < file->n_entries; i++) {
		const struct ini_entry *entry = &file->entries[i];

		for (size_t j = 0; j < i && !entry->key; j++)
			if (!file->entries[j].key && !strcmp(file->entries[j].section, entry->section) &&
			    !strcmp(file->entries[j].argument, entry->argument)) {
				complain(reader, entry->line,
					 "[%s%s%s] is there a second time (first in line %u); keep one",
					 entry->section, *entry->argument ? " " : "", entry->argument,
					 file->entries[j].line);
				break;
			}
	}
}

int descriptor_parse(FILE *f, const char *path, struct diag *diag, struct descriptor **ret_descriptor)
{
	_cleanup_(descriptor_freep) struct descriptor *descriptor = calloc(1, sizeof(*descriptor));
	struct reader reader = { .descriptor = descriptor, .diag = diag, .path = path };
	int err;

	if (!descriptor)
		return -ENOMEM;
	err = ini_read(f, path, diag, &descriptor->file);
	if (err)
		return err;
	check_again(&reader, descriptor->file);
	for (size_t at = 0; at < descriptor->file->n_entries && !err;) {
		if (descriptor->file->entries[at].key)
			at++; /* a key before any section: ini_read() has complained */
		else
			at = read_section(&reader, descriptor->file, at, &err);
	}
	if (err)
		return err;
	if (!has_collector_section(descriptor->file))
		diag_add(diag, path, 0, "no [collector] section; begin with one that has a description = …");
	if (!descriptor->description)
		descriptor->description = "";
	if (!descriptor->n_metrics)
		diag_add(diag, path, 0, "no [metric MAP] section, so nothing would be shown; add one for each map to export");
	*ret_descriptor = TAKE_PTR(descriptor);
	return 0;
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
