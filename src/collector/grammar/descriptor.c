/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each section makes one item of a list in the descriptor, and each key sets one string in that
 * item, as the tables in grammar/ say. The strings are those of the file.
 */
#include "collector/descriptor.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "collector/grammar/grammar.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/ini.h"

struct parser {
	struct descriptor *descriptor;
	struct diag *diag;
	const struct ini_file *file;
	bool has_collector;
};

#define complain(parser, line, ...) \
	diag_add((parser)->diag, (parser)->file->path, line, __VA_ARGS__)

static const char **text_at(void *item, size_t offset)
{
	return (const char **)((char *)item + offset);
}

static const struct grammar_section *find_section(struct parser *parser,
						  const struct ini_entry *head)
{
	const struct grammar_section *section = diag_find(parser->diag, parser->file->path,
							  head->line, "section",
							  head->section, grammar_sections,
							  GRAMMAR_SECTIONS);

	if (!section || !section->argument == !*head->argument)
		return section;
	if (section->argument)
		complain(parser, head->line, "write [%s %s]", section->name, section->argument);
	else
		complain(parser, head->line, "write [%s]", section->name);
	return NULL;
}

/* The item that a section makes; the entry's text is ours to cut. NULL: no memory. */
static void *add_item(struct descriptor *descriptor, const struct grammar_section *section,
		      const struct ini_entry *head)
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
	if (section->flag_offset)
		*(bool *)(item + section->flag_offset) = section->flag;
	if (section->member_offset) {
		dot = strchr(head->argument, '.');
		*text_at(item, section->member_offset) = dot ? dot + 1 : "";
		if (dot)
			*dot = '\0';
	}
	return item;
}

static struct descriptor_list *list_at(void *item, const struct grammar_key *key)
{
	return (struct descriptor_list *)((char *)item + key->offset);
}

/* The entry is ours to cut, and read once. */
static int add_to_list(void *item, const struct grammar_key *key, const struct ini_entry *entry)
{
	struct descriptor_list *list = list_at(item, key);
	char *equals = key->form == GRAMMAR_PAIRS ? strchr(entry->value, '=') : NULL;
	const struct descriptor_item item_of_list = { entry->value, equals ? equals + 1 : NULL,
						      entry->line };

	if (equals)
		*equals = '\0';
	return array_append(&list->items, &list->n, &item_of_list);
}

static int set_key(struct parser *parser, const struct grammar_key *key,
		   const struct ini_entry *entry, void *item)
{
	const char *complaint = grammar_check(key, entry->value);
	size_t n_words = 0;

	while (key->words[n_words])
		n_words++;
	if (n_words && !diag_find(parser->diag, parser->file->path, entry->line, key->name,
				  entry->value, key->words, n_words))
		return 0;
	if (key->form == GRAMMAR_TEXT && *text_at(item, key->offset))
		complain(parser, entry->line, "\"%s\" is set twice in this section; keep one", entry->key);
	if (complaint)
		complain(parser, entry->line, "%s \"%s\" %s", key->name, entry->value, complaint);
	else if (key->form != GRAMMAR_TEXT)
		return add_to_list(item, key, entry);
	/* A required text is kept all the same: it is not missing. */
	if (key->form == GRAMMAR_TEXT && (!complaint || key->is_required || key->is_kept))
		*text_at(item, key->offset) = entry->value;
	return 0;
}

static int read_entry(struct parser *parser, const struct grammar_section *section,
		      const struct ini_entry *entry, void *item)
{
	const char *names[GRAMMAR_KEYS];
	size_t n = 0;

	array_for_each (key, grammar_keys, GRAMMAR_KEYS) {
		if (strcmp(key->section, section->name))
			continue;
		if (!strcmp(key->name, entry->key))
			return set_key(parser, key, entry, item);
		names[n++] = key->name;
	}
	diag_add_unknown(parser->diag, parser->file->path, entry->line, "key", entry->key, names, n);
	return 0;
}

/* One section with its keys; *at becomes the index of the entry after them. */
static int read_section(struct parser *parser, size_t *at)
{
	const struct ini_file *file = parser->file;
	const struct ini_entry *head = &file->entries[*at], *entry = head + 1;
	const struct grammar_section *section = find_section(parser, head);
	void *item = section ? add_item(parser->descriptor, section, head) : NULL;
	int err = section && !item ? -ENOMEM : 0;

	parser->has_collector |= item == parser->descriptor;
	for (; entry < file->entries + file->n_entries && entry->key && !err; entry++)
		if (item)
			err = read_entry(parser, section, entry, item);
	array_for_each (key, grammar_keys, GRAMMAR_KEYS)
		if (item && key->is_required && !strcmp(key->section, section->name) &&
		    !*text_at(item, key->offset))
			complain(parser, head->line, "[%s] lacks \"%s\"; add a line %s = …", section->name, key->name,
				 key->name);
	*at = (size_t)(entry - file->entries);
	return err;
}

static void check_sections_differ(struct parser *parser)
{
	array_for_each (entry, parser->file->entries, parser->file->n_entries) {
		const struct ini_entry *earlier = entry->key ? NULL :
						  ini_find_earlier(parser->file, entry);

		if (earlier)
			complain(parser, entry->line, "[%s%s%s] already begins on line %u; keep one", entry->section,
				 *entry->argument ? " " : "", entry->argument, earlier->line);
	}
}

/* file becomes the descriptor's. */
static int read_file(struct ini_file *file, struct diag *diag, struct descriptor **ret_descriptor)
{
	_cleanup_(descriptor_freep) struct descriptor *descriptor = calloc(1, sizeof(*descriptor));
	struct parser parser = { .descriptor = descriptor, .diag = diag, .file = file };
	int err = 0;

	if (!descriptor) {
		ini_file_free(file);
		return -ENOMEM;
	}
	descriptor->file = file;
	check_sections_differ(&parser);
	for (size_t at = 0; !err && at < file->n_entries;)
		err = read_section(&parser, &at);
	if (err)
		return err;
	if (!parser.has_collector)
		diag_add(diag, file->path, 0, "no [collector] section; begin with one that has a description = …");
	if (!descriptor->description)
		descriptor->description = "";
	if (!descriptor->n_metrics && !descriptor->n_events)
		diag_add(diag, file->path, 0, "no [metric MAP], [event MAP] or [span MAP] section, so nothing would be shown; add one for each map to export");
	*ret_descriptor = TAKE_PTR(descriptor);
	return 0;
}

int descriptor_parse(FILE *f, const char *path, struct diag *diag,
		     struct descriptor **ret_descriptor)
{
	struct ini_file *file;
	int err = ini_read(f, path, diag, &file);

	return err ?: read_file(file, diag, ret_descriptor);
}

void descriptor_write_section(struct buf *out, const char *kind, const char *argument)
{
	buf_append_byte(out, '\0');
	buf_append(out, kind, strlen(kind) + 1);
	buf_append(out, argument, strlen(argument) + 1);
}

void descriptor_write_key(struct buf *out, const char *key, const char *format, ...)
{
	va_list arguments;

	buf_append(out, key, strlen(key) + 1);
	va_start(arguments, format);
	buf_vprintf(out, format, arguments);
	va_end(arguments);
	buf_append_byte(out, '\0');
}

static char *skip_text(char **at)
{
	char *text = *at;

	*at += strlen(text) + 1;
	return text;
}

static unsigned int line_of(const struct descriptor_entries *entries, const char *kind)
{
	if (!strcmp(kind, "metric"))
		return entries->metric_line;
	return strcmp(kind, "label") ? entries->line : entries->label_line;
}

int descriptor_read_entries(struct descriptor_entries *entries, struct diag *diag,
			    struct descriptor **ret_descriptor)
{
	_cleanup_(ini_file_freep) struct ini_file *file = calloc(1, sizeof(*file));
	size_t size = entries->text->size;
	uint64_t hash = hash_stable(HASH_STABLE_START, entries->text->data, size);
	struct ini_entry entry = { 0 };
	int err = file ? 0 : -ENOMEM;

	if (err)
		return err;
	file->path = strdup(entries->path);
	file->text = (char *)TAKE_PTR(entries->text->data);
	*entries->text = (struct buf)BUF_INIT;
	for (char *at = file->text; file->path && at < file->text + size && !err;) {
		const char *first = skip_text(&at);

		entry.key = *first ? first : NULL;
		if (!entry.key) {
			entry.section = skip_text(&at);
			entry.argument = skip_text(&at);
			entry.line = line_of(entries, entry.section);
		}
		entry.value = entry.key ? skip_text(&at) : NULL;
		err = array_append(&file->entries, &file->n_entries, &entry);
	}
	if (!file->path || err)
		return -ENOMEM;
	err = read_file(TAKE_PTR(file), diag, ret_descriptor);
	if (!err)
		(*ret_descriptor)->text_hash = hash | 1;
	return err;
}

const struct descriptor_param *descriptor_find_param(const struct descriptor *descriptor,
						     const char *name)
{
	return array_find(descriptor->params, descriptor->n_params, name);
}

bool descriptor_is_metric_of(const struct descriptor_metric *metric, const char *place)
{
	size_t n = strlen(metric->map);

	return !strncmp(place, metric->map, n) &&
	       (place[n] == '.' ? !strcmp(place + n + 1, metric->member) :
								   !place[n] && !*metric->member);
}

/* Calls visit for each item of each list, in the order of grammar_sections[]. */
static void for_each_item(const struct descriptor *descriptor,
			  void (*visit)(const struct grammar_section *section, void *item,
					void *user), void *user)
{
	array_for_each (section, grammar_sections, GRAMMAR_SECTIONS) {
		const char *base = (const char *)descriptor;
		char *items = section->argument ? *(char **)(base + section->list_offset) :
			      (char *)descriptor;
		size_t n = section->argument ? *(const size_t *)(base + section->n_offset) : 1;

		for (char *item = items; n--; item += section->item_bytes)
			if (!section->flag_offset ||
			    *(bool *)(item + section->flag_offset) == section->flag)
				visit(section, item, user);
	}
}

static void dump_list(const char *key, const struct descriptor_list *list, FILE *f)
{
	array_for_each (entry, list->items, list->n) {
		fprintf(f, " %s=%s", key, entry->text);
		if (entry->value)
			fprintf(f, "=%s", entry->value);
	}
}

static void dump_item(const struct grammar_section *section, void *item, void *user)
{
	const char *argument = section->argument ? *text_at(item, section->argument_offset) : "";
	const char *member = section->member_offset ? *text_at(item, section->member_offset) : "";
	FILE *f = user;

	fprintf(f, "[%s%s%s", section->name, *argument ? " " : "", argument);
	fprintf(f, "%s%s]", *member ? "." : "", member);
	array_for_each (key, grammar_keys, GRAMMAR_KEYS) {
		if (strcmp(key->section, section->name))
			continue;
		if (key->form != GRAMMAR_TEXT)
			dump_list(key->name, list_at(item, key), f);
		else if (*text_at(item, key->offset))
			fprintf(f, " %s=%s", key->name, *text_at(item, key->offset));
	}
	fputc('\n', f);
}

void descriptor_dump(const struct descriptor *descriptor, FILE *f)
{
	for_each_item(descriptor, dump_item, f);
}

static void free_item(const struct grammar_section *section, void *item, void *user)
{
	array_for_each (key, grammar_keys, GRAMMAR_KEYS)
		if (key->form != GRAMMAR_TEXT && !strcmp(key->section, section->name))
			free(list_at(item, key)->items);
}

void descriptor_free(struct descriptor *descriptor)
{
	if (!descriptor)
		return;
	for_each_item(descriptor, free_item, NULL);
	array_for_each (section, grammar_sections, GRAMMAR_SECTIONS) {
		char **items = (char **)((char *)descriptor + section->list_offset);

		if (!section->argument)
			continue;
		free(*items);
		*items = NULL; /* another section may have the same list */
	}
	ini_file_free(descriptor->file);
	free(descriptor);
}
