/* SPDX-License-Identifier: Apache-2.0 */
/* conf/bpfpush.conf against the tables that the program has: it names every key, its default, and no other. */
#include "test.h"

#include <ctype.h>

#include "build-config.h"
#include "config/config.h"
#include "tree.h"
#include "util/ini.h"

static struct ini_file *read_ini(const char *path)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	_cleanup_(fclosep) FILE *f = fopen(path, "r");
	struct ini_file *file;

	assert_non_null(f);
	assert_ok(ini_read(f, path, &diag, &file));
	assert_string_equal(buf_text(&diag.text), "");
	return file;
}

/* "#key = value" and "#[section]" are what one may uncomment; "# words" are for people. */
static void uncomment(const struct tree *tree, const char *name)
{
	_cleanup_(fclosep) FILE *from = fopen(SOURCE_ROOT "/conf/bpfpush.conf", "r");
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	char line[512];

	assert_non_null(from);
	while (fgets(line, sizeof(line), from)) {
		bool is_setting = line[0] == '#' && (line[1] == '[' || isalpha((unsigned char)line[1]));

		buf_append_text(&text, line + is_setting);
	}
	assert_ok(buf_error(&text));
	tree_write_bytes(tree, name, text.data, text.size);
}

static const struct ini_entry *find(const struct ini_file *file, const char *section, const char *argument,
				    const char *key)
{
	for (size_t i = 0; i < file->n_entries; i++) {
		const struct ini_entry *entry = &file->entries[i];

		if (entry->key && !strcmp(entry->section, section) && !strcmp(entry->argument, argument) &&
		    !strcmp(entry->key, key))
			return entry;
	}
	return NULL;
}

/* How many keys a section has. */
static size_t count(const struct ini_file *file, const char *section, const char *argument)
{
	size_t n = 0;

	for (size_t i = 0; i < file->n_entries; i++)
		n += file->entries[i].key && !strcmp(file->entries[i].section, section) &&
		     !strcmp(file->entries[i].argument, argument);
	return n;
}

static void check_table(const struct ini_file *file, const char *section, const char *argument,
			const struct setting_table *table)
{
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct setting_row *row = &table->rows[i];
		const struct ini_entry *entry = find(file, section, argument, row->key);

		if (!entry)
			fail_msg("[%s %s] lacks %s", section, argument, row->key);
		if (strcmp(entry->value, row->default_text ?: ""))
			fail_msg("[%s %s] %s = %s: its default is \"%s\"", section, argument, entry->key,
				 entry->value, row->default_text ?: "");
	}
}

static void every_key_of_every_table_is_there_with_its_default(void **state)
{
	_cleanup_(ini_file_freep) struct ini_file *file = NULL;
	_cleanup_(tree_done) struct tree tree;

	tree_init(&tree);
	uncomment(&tree, "a.conf");
	file = read_ini(tree_path(&tree, "a.conf"));
	check_table(file, "agent", "", &config_agent_settings);
	assert_int_equal(count(file, "agent", ""), config_agent_settings.n_rows);
	for (size_t i = 0; exporter_table[i]; i++) {
		const char *type = exporter_table[i]->type;
		const struct ini_entry *entry = find(file, "exporter", type, "type");

		if (!entry || strcmp(entry->value, type))
			fail_msg("no [exporter %s] with type = %s", type, type);
		assert_non_null(find(file, "exporter", type, "enabled"));
		check_table(file, "exporter", type, exporter_table[i]->settings);
		assert_int_equal(count(file, "exporter", type), exporter_table[i]->settings->n_rows + 2);
	}
}

static void uncommented_it_is_without_a_mistake(void **state)
{
	_cleanup_(ini_file_freep) struct ini_file *file = NULL;
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	_cleanup_(tree_done) struct tree tree;
	size_t n = 0;

	tree_init(&tree);
	uncomment(&tree, "a.conf");
	const char *path = tree_path(&tree, "a.conf");

	assert_ok(config_read(path, NULL, &diag, &config));
	assert_string_equal(buf_text(&diag.text), "");
	while (exporter_table[n])
		n++;
	assert_int_equal(config->n_exporters, n);
	file = read_ini(path);
	for (size_t i = 0; i < file->n_entries; i++)
		n += !file->entries[i].key && strstr("collector metric probe", file->entries[i].section);
	assert_int_equal(config->n_sections, n);
}

static void as_it_is_it_changes_nothing(void **state)
{
	static const char path[] = SOURCE_ROOT "/conf/bpfpush.conf";
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_(ini_file_freep) struct ini_file *file = read_ini(path);
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	assert_ok(config_read(path, NULL, &diag, &config));
	assert_string_equal(buf_text(&diag.text), "");
	assert_int_equal(config->n_exporters, 0);
	assert_int_equal(config->n_sections, 0);
	for (size_t i = 0; i < file->n_entries; i++)
		assert_null(file->entries[i].key);
}

/* Its numbers cannot belong to a process. */
static bool has_no_processes(const char *name)
{
	static const char *const names[] = { "block", "drops", "hardirq", "softirq", "throttle", "usage" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* What a shipped collector can be told, by its descriptor. */
static void check_collector(const struct ini_file *conf, const char *name)
{
	_cleanup_(ini_file_freep) struct ini_file *descriptor = NULL;
	char path[PATH_MAX];
	size_t n = 1;

	snprintf(path, sizeof(path), SOURCE_ROOT "/bpf/%s.conf", name);
	descriptor = read_ini(path);
	for (size_t i = 0; i < descriptor->n_entries; i++) {
		const struct ini_entry *entry = &descriptor->entries[i], *found, *text;

		if (entry->key || strcmp(entry->section, "param"))
			continue;
		found = find(conf, "collector", name, entry->argument);
		text = find(descriptor, "param", entry->argument, "default");
		if (!found)
			fail_msg("[collector %s] lacks %s", name, entry->argument);
		if (text && strcmp(found->value, text->value))
			fail_msg("[collector %s] %s = %s: its default is \"%s\"", name, found->key, found->value, text->value);
		n += strcmp(entry->argument, "per_process") != 0;
	}
	assert_non_null(find(conf, "collector", name, "enabled"));
	if (!has_no_processes(name)) {
		assert_string_equal(find(conf, "collector", name, "per_process")->value, "no");
		n++;
	}
	assert_int_equal(count(conf, "collector", name), n);
}

static void collectors_have_their_parameters(void **state)
{
	_cleanup_(ini_file_freep) struct ini_file *file = NULL;
	_cleanup_(tree_done) struct tree tree;

	tree_init(&tree);
	uncomment(&tree, "a.conf");
	file = read_ini(tree_path(&tree, "a.conf"));
	for (size_t i = 0; i < file->n_entries; i++)
		if (!file->entries[i].key && !strcmp(file->entries[i].section, "collector"))
			check_collector(file, file->entries[i].argument);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_of_every_table_is_there_with_its_default),
		cmocka_unit_test(uncommented_it_is_without_a_mistake),
		cmocka_unit_test(as_it_is_it_changes_nothing),
		cmocka_unit_test(collectors_have_their_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
