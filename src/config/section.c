/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files become sections, entry by entry and in order. [agent] and [resource] are set at once. The
 * other sections are gathered, because who knows their keys is not known here: collectors check
 * theirs when they are opened, and an exporter's keys follow from its type.
 */
#include "config/config.h"
#include "config/internal.h"

#include <errno.h>
#include <string.h>

#include "util/array.h"
#include "util/duration.h"
#include "util/ini.h"
#include "util/parse.h"
#include "util/trust.h"

static int check_name(const char *text, const char **ret_complaint)
{
	*ret_complaint = "a name consists of A-Z a-z 0-9 _ . - and does not begin with . or -";
	return parse_is_name(text) ? 0 : -EINVAL;
}

static int check_file(const char *text, const char **ret_complaint)
{
	*ret_complaint = "the file cannot be read; give the full path of one with the types (BTF) of the running kernel";
	return text[0] == '/' && !access(text, R_OK) ? 0 : -EINVAL;
}

static int check_directory(const char *text, const char **ret_complaint)
{
	*ret_complaint = "a directory begins with \"/\"";
	return text[0] == '/' ? 0 : -EINVAL;
}

/* The least has room for one unit on two CPUs. */
static int check_memory_limit(const char *text, const char **ret_complaint)
{
	uint64_t bytes;

	*ret_complaint = "too small: the minimum is 1MiB, or 0B for a part of the machine's memory";
	return parse_size_bytes(text, &bytes) || !bytes || bytes >= 1 << 20 ? 0 : -EINVAL;
}

/* Units that are made for one job each, with a number in their names: docs/collectors.md. */
/*
 * Below user@UID.service, a user chooses all names. "?" and "-" apart: together they are a
 * trigraph.
 */
#define NUMBERED(before)		\
	before "run-u[0-9]* " before "run-p[0-9]*-i[0-9]* " before "run-r????????????????????????????????.s* "	\
	before "dbus-:* " before "snap.*.scope " before "apptainer-[0-9]*.scope " before "libpod-conmon-*.scope " before "crio-conmon-*.scope "
#define FOLD_UNITS			\
	"session-*.scope ssh*@[0-9]*-* systemd-coredump@[0-9]*-* polkit-*@[0-9]*-* "				\
	"[0-9a-f]???????" "-????" "-????" "-????" "-????????????.*.scope "			\
	NUMBERED("") NUMBERED("user@*/") "user@*/app-*.scope user@*/app-*@* user@*/vte-* "	\
	"user@*/tmux-spawn-* user@*/gnome-launched-*"

#define ROW(...) SETTING(struct config_agent, __VA_ARGS__)

static const struct setting_row agent_rows[] = {
	ROW(interval_ns, "interval", SETTING_DURATION, "10s", .minimum = NS_PER_S,
	    .maximum = 86400 * NS_PER_S),
	ROW(log_level, "log_level", SETTING_CHOICE, "info", .choices = log_level_names),
	ROW(series_limit, "series_limit", SETTING_U64, "100000", .minimum = 1, .maximum = 10000000),
	ROW(units, "units", SETTING_U64, "500", .minimum = 1, .maximum = 100000),
	ROW(memory_limit_bytes, "memory_limit", SETTING_SIZE, "0B", .maximum = 1ull << 40,
	    .check = check_memory_limit),
	ROW(queue_bytes, "queue_size", SETTING_SIZE, "8MiB", .minimum = 65536, .maximum = 512 << 20),
	ROW(shutdown_timeout_ns, "shutdown_timeout", SETTING_DURATION, "10s",
	    .maximum = 300 * NS_PER_S),
	ROW(collector_directories, "collector_directory", SETTING_LIST, NULL,
	    .check = check_directory),
	ROW(collectors, "collectors", SETTING_WORDS, NULL, .check = check_name),
	ROW(names.units.include, "include_units", SETTING_WORDS, NULL, .check = parse_check_pattern),
	ROW(names.units.exclude, "exclude_units", SETTING_WORDS, NULL, .check = parse_check_pattern),
	ROW(names.units.fold, "fold_units", SETTING_WORDS, FOLD_UNITS, .check = parse_check_pattern),
	ROW(names.brief_processes, "brief_processes", SETTING_U64, "20", .maximum = 1000),
	ROW(self_metrics, "self_metrics", SETTING_BOOL, "yes"),
	ROW(names.kernel_types, "kernel_types", SETTING_TEXT, NULL, .check = check_file),
	ROW(is_strict, "strict", SETTING_BOOL, "no"),
};
const struct setting_table config_agent_settings = SETTING_TABLE(agent_rows, struct config_agent);

/* One file while it is being read. */
struct reading {
	struct config *config;
	struct diag *diag;
	const struct ini_file *file;
	const struct ini_entry *entry;
	/* Of the keys that follow; NULL: they are skipped. */
	const struct section_kind *kind;
	struct config_section *section; /* NULL: of a kind that has only one */
};

#define mistake(reading, ...) \
	diag_add((reading)->diag, (reading)->file->path, (reading)->entry->line, __VA_ARGS__)

static int take_agent(struct reading *reading, const struct assignment *setting)
{
	return setting_table_set(&config_agent_settings, &reading->config->agent, setting,
				 reading->diag);
}

static int take_resource(struct reading *reading, const struct assignment *setting)
{
	const char *complaint = resource_complaint(setting->key, setting->value);
	int r = 0;

	if (setting->earlier_line)
		mistake(reading, "%s: already set on line %u", setting->key, setting->earlier_line);
	else if (complaint)
		mistake(reading, "%s: %s", setting->key, complaint);
	else
		r = resource_set(&reading->config->resource, setting->key, setting->value);
	if (r == -ENOSPC)
		mistake(reading, "%s: more than %d attributes", setting->key, RESOURCE_ATTRIBUTES_MAX);
	return r == -ENOMEM ? r : 0;
}

static int take_setting(struct reading *reading, const struct assignment *setting)
{
	struct config_section *section = reading->section;
	bool is_switch = !strcmp(setting->key, "enabled");

	/* Which other keys of an exporter may be repeated is known when its type is. */
	if (setting->earlier_line &&
	    (is_switch || !strcmp(section->kind, "collector") || !strcmp(setting->key, "type"))) {
		mistake(reading, "%s: already set on line %u", setting->key, setting->earlier_line);
		return 0;
	}
	if (is_switch && parse_bool(setting->value, &section->is_enabled))
		mistake(reading, "enabled: \"%s\" is neither yes nor no", setting->value);
	if (is_switch)
		return 0;
	return array_append(&section->given.items, &section->given.n, setting);
}

static const struct section_kind {
	const char *name;
	/* take_setting: it has an argument */
	int (*take)(struct reading *reading, const struct assignment *setting);
} section_kinds[] = {
	{ "agent", take_agent },
	{ "resource", take_resource },
	{ "collector", take_setting },
	{ "exporter", take_setting },
	{ "metric", take_setting },
	{ "probe", take_setting },
};

/* The kind of the section that begins, or NULL with a mistake. */
static const struct section_kind *find_kind(struct reading *reading)
{
	const struct ini_entry *entry = reading->entry;
	const struct section_kind *kind = diag_find(reading->diag, reading->file->path,
						    entry->line, "section",
						    entry->section, section_kinds,
						    ARRAY_SIZE(section_kinds));
	const char *argument = entry->argument, *complaint;

	if (!kind)
		return NULL;
	if (kind->take != take_setting && *argument)
		mistake(reading, "[%s %s]: there is only one: write [%s]", kind->name, argument, kind->name);
	else if (kind->take == take_setting && !*argument)
		mistake(reading, "[%s] needs a name: write [%s NAME]", kind->name, kind->name);
	else if (kind->take == take_setting && check_name(argument, &complaint) < 0)
		mistake(reading, "[%s %s]: %s", kind->name, argument, complaint);
	else
		return kind;
	return NULL;
}

const struct config_section *config_find_section(const struct config *config, const char *kind,
						 const char *name)
{
	for (size_t i = 0; i < config->n_sections; i++)
		if (!strcmp(config->sections[i].kind, kind) &&
		    !strcmp(config->sections[i].name, name))
			return &config->sections[i];
	return NULL;
}

/* The section's own line: even an empty section asks for its collector or exporter. */
static int begin_section(struct reading *reading, const struct ini_entry *earlier)
{
	const struct ini_entry *entry = reading->entry;
	const struct section_kind *kind = find_kind(reading);
	const char *argument = entry->argument;
	struct config *config = reading->config;

	reading->kind = NULL;
	if (!kind)
		return 0;
	if (earlier)
		mistake(reading, "[%s%s%s] already begins on line %u", kind->name, *argument ? " " : "", argument,
			earlier->line);
	reading->kind = kind;
	if (kind->take != take_setting)
		return 0;
	reading->section = (struct config_section *)config_find_section(config,
									kind->name, argument);
	if (!reading->section) {
		reading->section = array_add(&config->sections, &config->n_sections,
					     sizeof(*reading->section));
		if (!reading->section)
			return -ENOMEM;
		*reading->section = (struct config_section){ kind->name, argument,
							     .is_enabled = true };
	}
	reading->section->given.path = reading->file->path;
	reading->section->given.line = entry->line;
	return 0;
}

static bool is_foreign(const char *name)
{
	return name && !strncmp(name, "x-", 2);
}

static int take_entry(struct reading *reading)
{
	const struct ini_entry *entry = reading->entry,
		*earlier = ini_find_earlier(reading->file, entry);
	const struct assignment setting = { entry->key, entry->value, reading->file->path,
					    entry->line, earlier ? earlier->line : 0 };

	if (is_foreign(entry->section) || is_foreign(entry->key))
		return 0;
	if (!entry->key)
		return begin_section(reading, earlier);
	return reading->kind ? reading->kind->take(reading, &setting) : 0;
}

/* The file is the configuration's from then on. */
static int take_file(struct config *config, struct ini_file *file, struct diag *diag)
{
	struct reading reading = { .config = config, .diag = diag, .file = file };
	int r = array_append(&config->files, &config->n_files, &file);

	if (r) {
		ini_file_free(file);
		return r;
	}
	for (size_t i = 0; i < file->n_entries && r >= 0; i++) {
		reading.entry = &file->entries[i];
		r = take_entry(&reading);
	}
	return r;
}

int config_read_text(struct config *config, const char *text, const char *origin, struct diag *diag)
{
	_cleanup_(fclosep) FILE *f = fmemopen((char *)text, strlen(text), "r");
	struct ini_file *file;
	int err = f ? ini_read(f, origin, diag, &file) : -ENOMEM;

	if (err)
		return err;
	array_for_each (entry, file->entries, file->n_entries)
		entry->line = 0;
	return take_file(config, file, diag);
}

int config_read_file(struct config *config, const char *path, bool is_named, struct diag *diag)
{
	_cleanup_(fclosep) FILE *f = NULL;
	struct ini_file *file = NULL;
	int r = trust_open(path, is_named, diag, &f) ?: ini_read(f, path, diag, &file);

	if (r && r != -ENOMEM)
		diag_add(diag, path, 0, "cannot be read: %s",
			 r == -EOPNOTSUPP ? "it is a device or a pipe, not a file" : strerror(-r));
	if (!file)
		return r == -ENOENT || r == -ENOMEM ? r : 0;
	return take_file(config, file, diag);
}
