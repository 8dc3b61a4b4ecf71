/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are read in order, each strictly: what is known here ([agent], [resource]) is set at once, what
 * others know ([collector], [exporter]) is gathered with its places. When all has been seen, exporters get
 * their types and options, and the environment fills in what no file has set.
 */
#include "config/config.h"

#include <errno.h>
#include <string.h>

#include "config/files.h"
#include "config/internal.h"
#include "util/ini.h"
#include "util/parse.h"

static const char *const standard_roots[] = { "/etc", "/run", "/usr/lib", NULL };

static int check_name(const char *text, const char **ret_complaint);
static int check_directory(const char *text, const char **ret_complaint);

static const char *const log_levels[] = { "error", "warning", "info", "debug", NULL };

#define ROW(...) SETTING(struct config_agent, __VA_ARGS__)

static const struct setting_row agent_rows[] = {
	ROW(interval_ns, "interval", SETTING_DURATION, "10s", .minimum = 1000000000,
	    .maximum = 86400000000000),
	ROW(log_level, "log_level", SETTING_CHOICE, "info", .choices = log_levels),
	ROW(series_limit, "series_limit", SETTING_U64, "2000", .minimum = 2, .maximum = 1000000),
	ROW(shutdown_timeout_ns, "shutdown_timeout", SETTING_DURATION, "10s",
	    .maximum = 300000000000),
	ROW(collector_directories, "collector_directory", SETTING_LIST, NULL,
	    .check = check_directory),
	ROW(collectors, "collectors", SETTING_WORDS, NULL, .check = check_name),
	ROW(self_metrics, "self_metrics", SETTING_BOOL, "yes"),
};
const struct setting_table config_agent_settings = SETTING_TABLE(agent_rows, struct config_agent);

struct reading {
	struct config *config;
	const struct config_source *source;
	struct diag *diag;
	const struct ini_file *file; /* now */
};

static int check_name(const char *text, const char **ret_complaint)
{
	*ret_complaint = "a name is of A-Z a-z 0-9 _ . - and begins with none of . and -";
	return parse_is_name(text) ? 0 : -EINVAL;
}

static int check_directory(const char *text, const char **ret_complaint)
{
	*ret_complaint = "a directory begins with \"/\"";
	return text[0] == '/' ? 0 : -EINVAL;
}

/* The section [collector name] or [exporter name] of a list, made when it is new. NULL: no memory. */
static struct config_collector *get_section(struct config_collector **list, size_t *n, const char *name)
{
	struct config_collector *sections;

	for (size_t i = 0; i < *n; i++)
		if (!strcmp((*list)[i].name, name))
			return &(*list)[i];
	sections = reallocarray(*list, *n + 1, sizeof(*sections));
	if (!sections)
		return NULL;
	*list = sections;
	sections[*n] = (struct config_collector){ .name = name, .is_enabled = true };
	return &sections[(*n)++];
}

static int add_setting(struct config_collector *section, const struct assignment *setting)
{
	struct assignment *settings =
		reallocarray(section->settings, section->n_settings + 1, sizeof(*settings));

	if (!settings)
		return -ENOMEM;
	section->settings = settings;
	settings[section->n_settings++] = *setting;
	return 0;
}

/* Is it said in this file for the first time? */
static bool is_new(struct reading *reading, const struct ini_entry *entry)
{
	const struct ini_entry *earlier = ini_find_earlier(reading->file, entry);

	if (earlier)
		diag_add(reading->diag, reading->file->path, entry->line, "%s: is set in line %u already",
			 entry->key, earlier->line);
	return !earlier;
}

static int take_agent(struct reading *reading, const struct ini_entry *entry)
{
	const struct setting_row *row = setting_table_find(&config_agent_settings, entry->key);
	const struct assignment setting = { entry->key, entry->value, reading->file->path, entry->line };

	if (!setting_row_is_list(row) && !is_new(reading, entry))
		return 0;
	return setting_table_set(&config_agent_settings, &reading->config->agent, &setting, reading->diag);
}

/* Only checked: what is set when all ranks below the files are known (set_resource()). */
static int take_resource(struct reading *reading, const struct ini_entry *entry)
{
	const char *complaint = resource_name_complaint(entry->key);

	if (!is_new(reading, entry))
		return 0;
	if (complaint)
		diag_add(reading->diag, reading->file->path, entry->line, "%s: %s", entry->key, complaint);
	if (!strcmp(entry->key, "service.name") && !*entry->value)
		diag_add(reading->diag, reading->file->path, entry->line, "service.name: a service needs a name");
	return 0;
}

static int take_enabled(struct reading *reading, const struct ini_entry *entry,
			struct config_collector *section)
{
	static const struct setting_row rows[] = {
		SETTING(struct config_collector, is_enabled, "enabled", SETTING_BOOL, "yes"),
	};
	static const struct setting_table table = SETTING_TABLE(rows, struct config_collector);
	const struct assignment setting = { entry->key, entry->value, reading->file->path, entry->line };

	return setting_table_set(&table, section, &setting, reading->diag);
}

/* A later file's setting takes the place of an earlier one's. */
static int take_collector(struct reading *reading, const struct ini_entry *entry)
{
	struct config_collector *section = get_section(&reading->config->collectors,
						       &reading->config->n_collectors, entry->argument);
	struct assignment setting = { entry->key, entry->value, reading->file->path, entry->line };

	if (!section)
		return -ENOMEM;
	if (!entry->key) {
		section->path = reading->file->path;
		section->line = entry->line;
		return 0;
	}
	if (!is_new(reading, entry))
		return 0;
	if (!strcmp(entry->key, "enabled"))
		return take_enabled(reading, entry, section);
	for (size_t i = 0; i < section->n_settings; i++)
		if (!strcmp(section->settings[i].key, entry->key)) {
			section->settings[i] = setting;
			return 0;
		}
	return add_setting(section, &setting);
}

/* What may be repeated is known when the type is: config_set_exporters() looks for duplicates. */
static int take_exporter(struct reading *reading, const struct ini_entry *entry)
{
	struct config_collector *section = get_section(
		&reading->config->exporter_sections, &reading->config->n_exporter_sections, entry->argument);
	struct assignment setting = { entry->key, entry->value, reading->file->path, entry->line };

	if (!section)
		return -ENOMEM;
	if (!entry->key) {
		section->path = reading->file->path;
		section->line = entry->line;
		return 0;
	}
	if (!strcmp(entry->key, "enabled"))
		return is_new(reading, entry) ? take_enabled(reading, entry, section) : 0;
	if (!strcmp(entry->key, "type") && !is_new(reading, entry))
		return 0;
	return add_setting(section, &setting);
}

static const struct section_kind {
	const char *name;
	bool is_named; /* [name argument] */
	bool wants_sections; /* take() is called for their own lines too, with a NULL key */
	int (*take)(struct reading *reading, const struct ini_entry *entry);
} section_kinds[] = {
	{ "agent", false, false, take_agent },
	{ "resource", false, false, take_resource },
	{ "collector", true, true, take_collector },
	{ "exporter", true, true, take_exporter },
};

static const struct section_kind *find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(section_kinds); i++)
		if (!strcmp(section_kinds[i].name, name))
			return &section_kinds[i];
	return NULL;
}

static void report_unknown_section(struct reading *reading, const struct ini_entry *entry)
{
	const char *names[ARRAY_SIZE(section_kinds)];

	for (size_t i = 0; i < ARRAY_SIZE(section_kinds); i++)
		names[i] = section_kinds[i].name;
	diag_add_unknown(reading->diag, reading->file->path, entry->line, "section", entry->section, names,
			   ARRAY_SIZE(names));
}

static bool has_right_argument(const struct section_kind *kind, const struct ini_entry *entry)
{
	return kind->is_named ? parse_is_name(entry->argument) : !*entry->argument;
}

static void check_section(struct reading *reading, const struct section_kind *kind,
			  const struct ini_entry *entry)
{
	const struct ini_entry *earlier = ini_find_earlier(reading->file, entry);
	const char *path = reading->file->path;
	const char *complaint;

	if (kind->is_named && !*entry->argument)
		diag_add(reading->diag, path, entry->line, "[%s] needs a name: write [%s NAME]", kind->name,
			 kind->name);
	else if (kind->is_named && check_name(entry->argument, &complaint) < 0)
		diag_add(reading->diag, path, entry->line, "[%s %s]: %s", kind->name, entry->argument, complaint);
	else if (!has_right_argument(kind, entry))
		diag_add(reading->diag, path, entry->line, "[%s %s]: there is only one: write [%s]", kind->name,
			 entry->argument, kind->name);
	else if (earlier)
		diag_add(reading->diag, path, entry->line, "[%s%s%s] begins in line %u already", kind->name,
			 *entry->argument ? " " : "", entry->argument, earlier->line);
}

static bool is_foreign(const char *name)
{
	return !strncmp(name, "x-", 2);
}

static int take_entry(struct reading *reading, const struct ini_entry *entry)
{
	const struct section_kind *kind = find_kind(entry->section);

	if (is_foreign(entry->section) || (entry->key && is_foreign(entry->key)))
		return 0;
	if (!kind) {
		if (!entry->key)
			report_unknown_section(reading, entry);
		return 0;
	}
	if (!entry->key)
		check_section(reading, kind, entry);
	if (!has_right_argument(kind, entry) || (!entry->key && !kind->wants_sections))
		return 0;
	return kind->take(reading, entry);
}

static int read_file(struct reading *reading, const char *path)
{
	struct config *config = reading->config;
	_cleanup_(ini_file_freep) struct ini_file *file = NULL;
	_cleanup_(fclosep) FILE *f = NULL;
	struct ini_file **files;
	int r;

	r = config_file_open(path, reading->source->path, reading->diag, &f);
	if (r < 0 || !f)
		return r;
	r = ini_read(f, path, reading->diag, &file);
	if (r < 0) {
		if (r != -ENOMEM)
			diag_add(reading->diag, path, 0, "cannot be read: %s", strerror(-r));
		return r == -ENOMEM ? r : 0;
	}
	files = reallocarray(config->files, config->n_files + 1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	config->files = files;
	reading->file = files[config->n_files++] = TAKE_PTR(file);
	for (size_t i = 0; i < reading->file->n_entries && r >= 0; i++)
		r = take_entry(reading, &reading->file->entries[i]);
	return r;
}

static int read_standard_files(struct reading *reading)
{
	_cleanup_(config_files_done) struct config_files files = { 0 };
	int r;

	r = config_files_find(reading->source->roots ?: standard_roots, reading->diag, &files);
	for (size_t i = 0; i < files.n && r >= 0; i++) {
		if (i == CONFIG_FILES_MAX) {
			diag_add(reading->diag, files.paths[i], 0,
				 "more than %d files: this one and those behind it are not read",
				 CONFIG_FILES_MAX);
			break;
		}
		r = read_file(reading, files.paths[i]);
		/* One that went away, or a link to nothing: told already. */
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

static int set_resource(struct reading *reading)
{
	struct config *config = reading->config;
	int r;

	r = resource_set_defaults(&config->resource, reading->source->roots ?: standard_roots,
				  reading->source->path);
	if (r >= 0)
		r = config_environment_set_resource(config, reading->source->environment);
	for (size_t i = 0; i < config->n_files && r >= 0; i++)
		for (size_t j = 0; j < config->files[i]->n_entries && r >= 0; j++) {
			const struct ini_entry *entry = &config->files[i]->entries[j];

			if (!entry->key || strcmp(entry->section, "resource") || *entry->argument ||
			    resource_name_complaint(entry->key) || is_foreign(entry->key))
				continue;
			r = resource_set(&config->resource, entry->key, entry->value);
			if (r == -ENOSPC) {
				diag_add(reading->diag, config->files[i]->path, entry->line,
					 "%s: more than %d attributes", entry->key, RESOURCE_ATTRIBUTES_MAX);
				return 0;
			}
		}
	return r;
}

bool config_is_set(const struct config *config, const char *section, const char *key)
{
	for (size_t i = 0; i < config->n_files; i++)
		for (size_t j = 0; j < config->files[i]->n_entries; j++) {
			const struct ini_entry *entry = &config->files[i]->entries[j];

			if (entry->key && !strcmp(entry->section, section) && !strcmp(entry->key, key))
				return true;
		}
	return false;
}

int config_read(const struct config_source *source, struct diag *diag, struct config **ret_config)
{
	_cleanup_(config_freep) struct config *config = calloc(1, sizeof(*config));
	struct reading reading = { .config = config, .source = source, .diag = diag };
	int r;

	if (!config)
		return -ENOMEM;
	r = setting_table_init(&config_agent_settings, &config->agent);
	if (r >= 0)
		r = source->path ? read_file(&reading, source->path) : read_standard_files(&reading);
	if (r >= 0)
		r = config_environment_set_agent(config, source->environment);
	if (r >= 0)
		r = set_resource(&reading);
	if (r >= 0)
		r = config_set_exporters(config, source, diag);
	if (r >= 0)
		r = config_environment_set_exporters(config, source, diag);
	if (r >= 0)
		config_warn_of_twins(config);
	if (r >= 0)
		r = buf_error(&diag->text) ?: buf_error(&config->warnings.text);
	if (r < 0)
		return r;
	*ret_config = TAKE_PTR(config);
	return 0;
}

const struct config_collector *config_find_collector(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->n_collectors; i++)
		if (!strcmp(config->collectors[i].name, name))
			return &config->collectors[i];
	return NULL;
}

static void free_sections(struct config_collector *sections, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(sections[i].settings);
	free(sections);
}

struct config *config_free(struct config *config)
{
	if (!config)
		return NULL;
	while (config->n_exporters)
		config_drop_last_exporter(config);
	free(config->exporters);
	free_sections(config->exporter_sections, config->n_exporter_sections);
	free_sections(config->collectors, config->n_collectors);
	setting_table_done(&config_agent_settings, &config->agent);
	resource_done(&config->resource);
	diag_done(&config->warnings);
	for (size_t i = 0; i < config->n_files; i++)
		ini_file_free(config->files[i]);
	free(config->files);
	free(config);
	return NULL;
}
