/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes later replaces what is there: defaults, the environment, then the files, the strongest
 * last. Exporters get their types and settings at the end. Every mistake on the way is gathered,
 * and reading goes on after it.
 */
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "build-config.h"
#include "config/internal.h"
#include "util/array.h"
#include "util/ini.h"

static const char *const standard_roots[] = { SYSCONFDIR, "/run", "/usr/lib", NULL };
static const char *const os_release_roots[] = { "/etc", "/usr/lib", NULL }; /* os-release(5) */

static int read_standard_files(struct config *config, const char *const *roots, struct diag *diag)
{
	_cleanup_(setting_list_clear) struct setting_list paths = { 0 };
	int r = config_files_find(roots, diag, &paths);
	for (size_t i = 0; i < paths.n_items && r >= 0; i++) {
		if (i == CONFIG_FILES_MAX) {
			diag_add(diag, paths.items[i], 0, "more than %d files: this one and those after it are not read",
				 CONFIG_FILES_MAX);
			break;
		}
		r = config_read_file(config, paths.items[i], false, diag);
		/* A file that went away, or a link to nothing: it is in diag. */
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

int config_read(const char *path, const char *const *roots, struct diag *diag,
		struct config **ret_config)
{
	_cleanup_(config_freep) struct config *config = calloc(1, sizeof(*config));
	int err;

	if (!config)
		return -ENOMEM;
	err = setting_table_init(&config_agent_settings, &config->agent);
	if (!err)
		err = resource_set_defaults(&config->resource, roots ?: os_release_roots, path);
	err = err ?: config_environment_set(config);
	if (!err && path)
		err = config_read_file(config, path, true, diag);
	else if (!err)
		err = read_standard_files(config, roots ?: standard_roots, diag);
	err = err ?: config_set_exporters(config, diag);
	err = err ?: config_environment_set_exporters(config, diag);
	if (!err && !diag->n_errors) /* what was refused is not as it was written */
		config_warn_of_twins(config);
	err = err ?: buf_error(&diag->text);
	err = err ?: buf_error(&config->warnings.text);
	if (err)
		return err;
	*ret_config = TAKE_PTR(config);
	return 0;
}

const char *config_find_place(const struct config *config, const char *key, const char *word,
			      unsigned int *ret_line)
{
	const char *path = NULL;

	array_for_each (file, config->files, config->n_files)
		array_for_each (entry, (*file)->entries, (*file)->n_entries)
			if (entry->key && !strcmp(entry->section, "agent") && !strcmp(entry->key, key) &&
			    strstr(entry->value, word)) {
				path = (*file)->path;
				*ret_line = entry->line;
			}
	return path;
}

struct config *config_free(struct config *config)
{
	if (!config)
		return NULL;
	config_free_exporters(config);
	for (size_t i = 0; i < config->n_sections; i++)
		free(config->sections[i].given.items);
	free(config->sections);
	setting_table_done(&config_agent_settings, &config->agent);
	resource_done(&config->resource);
	diag_done(&config->warnings);
	for (size_t i = 0; i < config->n_files; i++)
		ini_file_free(config->files[i]);
	free(config->files);
	free(config);
	return NULL;
}

/* The last part of the hook, as a name that no other probe has. */
static void name_hook(const struct config *config, const char *hook, const char *end, char name[48])
{
	const char *at = (const char *)memrchr(hook, ':', (size_t)(end - hook)) + 1;
	size_t n;

	at += strspn(at, "_.0123456789");
	if (at < end)
		snprintf(name, 37, "%.*s", (int)(end - at), at);
	else
		snprintf(name, 37, "command"); /* probe is an object */
	for (char *c = name; *c; c++)
		*c = isalnum((unsigned char)*c) ? *c : '_';
	n = strlen(name);
	for (int i = 2; config_find_section(config, "probe", name); i++)
		snprintf(name + n, 48 - n, "_%d", i);
}

/* The first " KEY " in text, where the words before it end; NULL: there is none. */
static const char *find_clause(const char *text, const char **ret_key)
{
	static const char *const keys[] = { "by", "show", "only" };
	const char *first = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		char word[16];
		const char *at;

		snprintf(word, sizeof(word), " %s ", keys[i]);
		at = strstr(text, word);
		if (!at || (first && at > first))
			continue;
		first = at;
		*ret_key = keys[i];
	}
	return first;
}

static bool has_word(const char *text, const char *end, const char *word)
{
	static const char separators[] = ", ";

	for (size_t n; (text += strspn(text, separators)) < end; text += n) {
		n = strcspn(text, separators);
		if (n == strlen(word) && !strncmp(text, word, n))
			return true;
	}
	return false;
}

/* Each clause as a key of its section. */
static void append_clauses(const char *at, const char *key, bool is_by_unit, struct buf *section)
{
	const char *text, *end, *next_key = NULL;

	for (; at; at = find_clause(text - 1, &next_key), key = next_key) {
		text = at + strlen(key) + 2;
		end = find_clause(text - 1, &next_key) ?: text + strlen(text);
		end = end < text ? text : end; /* one clause at once after another */
		buf_printf(section, "%s = %.*s\n", key, (int)(end - text), text);
		is_by_unit &= !strcmp(key, "only") || !has_word(text, end, "unit");
	}
	if (is_by_unit)
		buf_append_text(section, "by = unit\n");
}

int config_add_probe(struct config *config, const char *text, bool is_by_unit, struct diag *diag)
{
	_cleanup_(buf_done) struct buf section = BUF_INIT;
	const char *key = NULL, *clause = find_clause(text, &key), *hook,
		   *end = clause ? clause : text + strlen(text);
	char name[48];

	while (end > text && end[-1] == ' ')
		end--;
	for (hook = end; hook > text && hook[-1] != ' ';)
		hook--;
	if (!memchr(hook, ':', (size_t)(end - hook)) || strpbrk(text, "\r\n")) {
		diag_add(diag, "bpfpush", 0, "--probe \"%.100s\" is not as it should be; write MEASURE HOOK by VALUES, like "
			 "\"latency uprobe:libc:getaddrinfo by unit\"", text);
		return 0;
	}
	name_hook(config, hook, end, name);
	buf_printf(&section, "[probe %s]\nhook = %.*s\n", name, (int)(end - hook), hook);
	if (hook > text)
		buf_printf(&section, "measure = %.*s\n", (int)(hook - text), text);
	append_clauses(clause, key, is_by_unit, &section);
	return buf_error(&section) ?: config_read_text(config, buf_text(&section), "bpfpush --probe", diag);
}
