/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files become sections, entry by entry and in order. [agent] and [resource] are set at once. The
 * other sections are gathered, because who knows their keys is not known here: collectors check
 * theirs when they are opened, and an exporter's keys follow from its type.
 */
#include "config/internal.h"

#include <errno.h>
#include <string.h>

#include "config/files.h"
#include "util/array.h"
#include "util/duration.h"
#include "util/ini.h"
#include "util/parse.h"

static int check_name(const char *text, const char **ret_complaint)
{
	*ret_complaint = "a name consists of A-Z a-z 0-9 _ . - and does not begin with . or -";
	return parse_is_name(text) ? 0 : -EINVAL;
}

static int check_directory(const char *text, const char **ret_complaint)
{
	*ret_complaint = "a directory begins with \"/\"";
	return text[0] == '/' ? 0 : -EINVAL;
}

#define ROW(...) SETTING(struct config_agent, __VA_ARGS__)

static const struct setting_row agent_rows[] = {
	ROW(interval_ns, "interval", SETTING_DURATION, "10s", .minimum = NS_PER_S,
	    .maximum = 86400 * NS_PER_S),
	ROW(log_level, "log_level", SETTING_CHOICE, "info", .choices = log_level_names),
	ROW(series_limit, "series_limit", SETTING_U64, "2000", .minimum = 2, .maximum = 1000000),
	ROW(shutdown_timeout_ns, "shutdown_timeout", SETTING_DURATION, "10s",
	    .maximum = 300 * NS_PER_S),
	ROW(collector_directories, "collector_directory", SETTING_LIST, NULL,
	    .check = check_directory),
	ROW(collectors, "collectors", SETTING_WORDS, NULL, .check = check_name),
	ROW(self_metrics, "self_metrics", SETTING_BOOL, "yes"),
};
const struct setting_table config_agent_settings = SETTING_TABLE(agent_rows, struct config_agent);

/* One file while it is being read. */
struct reading {
	struct config *config;
	struct diag *diag;
	const struct ini_file *file;
	const struct ini_entry *entry;
};

#define mistake(reading, ...) \
	diag_add((reading)->diag, (reading)->file->path, (reading)->entry->line, __VA_ARGS__)

const struct config_section *config_find_section(const struct config *config, const char *kind, const char *name)
{
	for (size_t i = 0; i < config->n_sections; i++)
		if (!strcmp(config->sections[i].kind, kind) && !strcmp(config->sections[i].name, name))
			return &config->sections[i];
	return NULL;
}

static struct config_section *find_section(const struct reading *reading)
{
	return (struct config_section *)config_find_section(reading->config, reading->entry->section,
							    reading->entry->argument);
}

static int take_agent(struct reading *reading, const struct assignment *setting)
{
	return setting_table_set(&config_agent_settings, &reading->config->agent, setting, reading->diag);
}

static void report_repeated(struct reading *reading, const struct assignment *setting)
{
	mistake(reading, "%s: already set on line %u", setting->key, setting->earlier_line);
}

static int take_resource(struct reading *reading, const struct assignment *setting)
{
	const char *complaint = resource_name_complaint(setting->key);
	int r = 0;

	if (!strcmp(setting->key, "service.name") && !*setting->value)
		complaint = "a service needs a name";
	if (setting->earlier_line)
		report_repeated(reading, setting);
	else if (complaint)
		mistake(reading, "%s: %s", setting->key, complaint);
	else
		r = resource_set(&reading->config->resource, setting->key, setting->value);
	if (r == -ENOSPC)
		mistake(reading, "%s: more than %d attributes", setting->key, RESOURCE_ATTRIBUTES_MAX);
	return r == -ENOMEM ? r : 0;
}

static int set_enabled(struct reading *reading, const struct assignment *setting)
{
	static const struct setting_row rows[] = {
		SETTING(struct config_section, is_enabled, "enabled", SETTING_BOOL, "yes"),
	};
	static const struct setting_table table = SETTING_TABLE(rows, struct config_section);

	return setting_table_set(&table, find_section(reading), setting, reading->diag);
}

static int add_setting(struct config_section *section, const struct assignment *setting)
{
	struct assignment *settings = array_add(&section->settings, &section->n_settings, sizeof(*settings));

	if (!settings)
		return -ENOMEM;
	*settings = *setting;
	return 0;
}

/* A setting of a later file replaces one of an earlier file. */
static int take_collector(struct reading *reading, const struct assignment *setting)
{
	struct config_section *section = find_section(reading);

	if (!strcmp(setting->key, "enabled"))
		return set_enabled(reading, setting);
	if (setting->earlier_line) {
		report_repeated(reading, setting);
		return 0;
	}
	for (size_t i = 0; i < section->n_settings; i++)
		if (!strcmp(section->settings[i].key, setting->key)) {
			section->settings[i] = *setting;
			return 0;
		}
	return add_setting(section, setting);
}

/* Which other keys may be repeated is known when the type is. */
static int take_exporter(struct reading *reading, const struct assignment *setting)
{
	if (!strcmp(setting->key, "enabled"))
		return set_enabled(reading, setting);
	if (strcmp(setting->key, "type") || !setting->earlier_line)
		return add_setting(find_section(reading), setting);
	report_repeated(reading, setting);
	return 0;
}

static const struct section_kind {
	const char *name;
	int (*take)(struct reading *reading, const struct assignment *setting);
	bool has_argument;
} section_kinds[] = {
	{ "agent", take_agent },
	{ "resource", take_resource },
	{ "collector", take_collector, .has_argument = true },
	{ "exporter", take_exporter, .has_argument = true },
};

static const struct section_kind *find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(section_kinds); i++)
		if (!strcmp(section_kinds[i].name, name))
			return &section_kinds[i];
	return NULL;
}

static void report_unknown_section(struct reading *reading)
{
	const char *names[ARRAY_SIZE(section_kinds)];

	for (size_t i = 0; i < ARRAY_SIZE(section_kinds); i++)
		names[i] = section_kinds[i].name;
	diag_add_unknown(reading->diag, reading->file->path, reading->entry->line, "section", reading->entry->section,
			 names, ARRAY_SIZE(names));
}

static bool has_right_argument(const struct section_kind *kind, const struct ini_entry *entry)
{
	return kind->has_argument ? parse_is_name(entry->argument) : !*entry->argument;
}

static void check_section(struct reading *reading, const struct section_kind *kind)
{
	const struct ini_entry *entry = reading->entry, *earlier = ini_find_earlier(reading->file, entry);
	const char *complaint;

	if (kind->has_argument && !*entry->argument)
		mistake(reading, "[%s] needs a name: write [%s NAME]", kind->name, kind->name);
	else if (kind->has_argument && check_name(entry->argument, &complaint) < 0)
		mistake(reading, "[%s %s]: %s", kind->name, entry->argument, complaint);
	else if (!has_right_argument(kind, entry))
		mistake(reading, "[%s %s]: there is only one: write [%s]", kind->name, entry->argument, kind->name);
	else if (earlier)
		mistake(reading, "[%s%s%s] already begins on line %u", kind->name, *entry->argument ? " " : "",
			entry->argument, earlier->line);
}

/* The section's own line: even an empty section asks for its collector or exporter. */
static int begin_section(struct reading *reading, const struct section_kind *kind)
{
	struct config *config = reading->config;
	struct config_section *section;

	check_section(reading, kind);
	if (!kind->has_argument || !has_right_argument(kind, reading->entry))
		return 0;
	section = find_section(reading);
	if (!section) {
		section = array_add(&config->sections, &config->n_sections, sizeof(*section));
		if (!section)
			return -ENOMEM;
		*section = (struct config_section){ kind->name, reading->entry->argument, .is_enabled = true };
	}
	section->path = reading->file->path;
	section->line = reading->entry->line;
	return 0;
}

static bool is_foreign(const char *name)
{
	return name && !strncmp(name, "x-", 2);
}

static int take_entry(struct reading *reading)
{
	const struct ini_entry *entry = reading->entry;
	const struct section_kind *kind = find_kind(entry->section);
	const struct ini_entry *earlier = ini_find_earlier(reading->file, entry);
	const struct assignment setting = { entry->key, entry->value, reading->file->path, entry->line,
					    earlier ? earlier->line : 0 };

	if (is_foreign(entry->section) || is_foreign(entry->key))
		return 0;
	if (!kind && !entry->key)
		report_unknown_section(reading);
	if (!kind)
		return 0;
	if (!entry->key)
		return begin_section(reading, kind);
	return has_right_argument(kind, entry) ? kind->take(reading, &setting) : 0;
}

int config_read_file(struct config *config, const char *path, bool is_named, struct diag *diag)
{
	struct reading reading = { .config = config, .diag = diag };
	_cleanup_(ini_file_freep) struct ini_file *file = NULL;
	_cleanup_(fclosep) FILE *f = NULL;
	struct ini_file **files;
	int r;

	r = config_file_open(path, is_named, diag, &f);
	if (r < 0 || !f)
		return r;
	r = ini_read(f, path, diag, &file);
	if (r < 0) {
		if (r != -ENOMEM)
			diag_add(diag, path, 0, "cannot be read: %s", strerror(-r));
		return r == -ENOMEM ? r : 0;
	}
	files = array_add(&config->files, &config->n_files, sizeof(*files));
	if (!files)
		return -ENOMEM;
	reading.file = *files = TAKE_PTR(file);
	for (size_t i = 0; i < reading.file->n_entries && r >= 0; i++) {
		reading.entry = &reading.file->entries[i];
		r = take_entry(&reading);
	}
	return r;
}
