/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files become sections, entry by entry and in order. [agent] is set at once. The other sections
 * are gathered, because who knows their keys is not known here: collectors check theirs when they
 * are opened, an exporter's keys follow from its type, and the resource has attributes of a lower
 * rank below it.
 */
#include "config/internal.h"

#include <errno.h>
#include <string.h>

#include "config/files.h"
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

static const char *const log_levels[] = { "error", "warning", "info", "debug", NULL };

#define ROW(...) SETTING(struct config_agent, __VA_ARGS__)

static const struct setting_row agent_rows[] = {
	ROW(interval_ns, "interval", SETTING_DURATION, "10s", .minimum = NS_PER_S,
	    .maximum = 86400 * NS_PER_S),
	ROW(log_level, "log_level", SETTING_CHOICE, "info", .choices = log_levels),
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

/* The section of a list with this name, made if it is new. NULL: no memory. */
static struct config_section *get_section(struct config_section **list, size_t *n, const char *name)
{
	struct config_section *sections;

	for (size_t i = 0; i < *n; i++)
		if (!strcmp((*list)[i].name, name))
			return &(*list)[i];
	sections = reallocarray(*list, *n + 1, sizeof(*sections));
	if (!sections)
		return NULL;
	*list = sections;
	sections[*n] = (struct config_section){ .name = name, .is_enabled = true };
	return &sections[(*n)++];
}

static int add_setting(struct config_section *section, const struct assignment *setting)
{
	struct assignment *settings =
		reallocarray(section->settings, section->n_settings + 1, sizeof(*settings));

	if (!settings)
		return -ENOMEM;
	section->settings = settings;
	settings[section->n_settings++] = *setting;
	return 0;
}

/* Is the key given for the first time in this file? If not, that is reported. */
static bool is_first(struct reading *reading)
{
	const struct ini_entry *earlier = ini_find_earlier(reading->file, reading->entry);

	if (earlier)
		mistake(reading, "%s: already set on line %u", reading->entry->key, earlier->line);
	return !earlier;
}

static int take_agent(struct reading *reading, const struct assignment *setting)
{
	const struct setting_row *row = setting_table_find(&config_agent_settings, setting->key);

	if (!setting_row_is_list(row) && !is_first(reading))
		return 0;
	return setting_table_set(&config_agent_settings, &reading->config->agent, setting, reading->diag);
}

static int take_resource(struct reading *reading, const struct assignment *setting)
{
	const char *complaint = resource_name_complaint(setting->key);

	if (!strcmp(setting->key, "service.name") && !*setting->value)
		complaint = "a service needs a name";
	if (!is_first(reading))
		return 0;
	if (!complaint)
		return add_setting(&reading->config->resource_section, setting);
	mistake(reading, "%s: %s", setting->key, complaint);
	return 0;
}

static int set_enabled(struct reading *reading, struct config_section *section, const struct assignment *setting)
{
	static const struct setting_row rows[] = {
		SETTING(struct config_section, is_enabled, "enabled", SETTING_BOOL, "yes"),
	};
	static const struct setting_table table = SETTING_TABLE(rows, struct config_section);

	return is_first(reading) ? setting_table_set(&table, section, setting, reading->diag) : 0;
}

/* A setting of a later file replaces one of an earlier file. */
static int take_collector(struct reading *reading, const struct assignment *setting)
{
	struct config *config = reading->config;
	struct config_section *section =
		get_section(&config->collectors, &config->n_collectors, reading->entry->argument);

	if (!strcmp(setting->key, "enabled"))
		return set_enabled(reading, section, setting);
	if (!is_first(reading))
		return 0;
	for (size_t i = 0; i < section->n_settings; i++)
		if (!strcmp(section->settings[i].key, setting->key)) {
			section->settings[i] = *setting;
			return 0;
		}
	return add_setting(section, setting);
}

/*
 * Which keys may be repeated is known when the type is: config_set_exporters() looks for
 * duplicates.
 */
static int take_exporter(struct reading *reading, const struct assignment *setting)
{
	struct config *config = reading->config;
	struct config_section *section =
		get_section(&config->exporter_sections, &config->n_exporter_sections, reading->entry->argument);

	if (!strcmp(setting->key, "enabled"))
		return set_enabled(reading, section, setting);
	if (!strcmp(setting->key, "type") && !is_first(reading))
		return 0;
	return add_setting(section, setting);
}

static const struct section_kind {
	const char *name;
	int (*take)(struct reading *reading, const struct assignment *setting);
	/* [name argument]: where its sections are listed; 0: [name] alone */
	size_t list_offset, n_offset; /* in struct config */
} section_kinds[] = {
	{ "agent", take_agent },
	{ "resource", take_resource },
	{ "collector", take_collector, offsetof(struct config, collectors), offsetof(struct config, n_collectors) },
	{ "exporter", take_exporter, offsetof(struct config, exporter_sections),
	  offsetof(struct config, n_exporter_sections) },
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
	return kind->list_offset ? parse_is_name(entry->argument) : !*entry->argument;
}

static void check_section(struct reading *reading, const struct section_kind *kind)
{
	const struct ini_entry *entry = reading->entry, *earlier = ini_find_earlier(reading->file, entry);
	const char *complaint;

	if (kind->list_offset && !*entry->argument)
		mistake(reading, "[%s] needs a name: write [%s NAME]", kind->name, kind->name);
	else if (kind->list_offset && check_name(entry->argument, &complaint) < 0)
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
	char *config = (char *)reading->config;
	struct config_section *section;

	check_section(reading, kind);
	if (!kind->list_offset || !has_right_argument(kind, reading->entry))
		return 0;
	section = get_section((struct config_section **)(config + kind->list_offset),
			      (size_t *)(config + kind->n_offset), reading->entry->argument);
	if (!section)
		return -ENOMEM;
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
	const struct assignment setting = { entry->key, entry->value, reading->file->path, entry->line };

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
	files = reallocarray(config->files, config->n_files + 1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	config->files = files;
	reading.file = files[config->n_files++] = TAKE_PTR(file);
	for (size_t i = 0; i < reading.file->n_entries && r >= 0; i++) {
		reading.entry = &reading.file->entries[i];
		r = take_entry(&reading);
	}
	return r;
}

bool config_is_agent_set(const struct config *config, const char *key)
{
	for (size_t i = 0; i < config->n_files; i++)
		for (size_t j = 0; j < config->files[i]->n_entries; j++) {
			const struct ini_entry *entry = &config->files[i]->entries[j];

			if (entry->key && !strcmp(entry->section, "agent") && !strcmp(entry->key, key))
				return true;
		}
	return false;
}
