/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are read first, the strongest last. Then the environment fills in what no file has set, and
 * exporters get their types and settings. Every mistake on the way is gathered, and reading goes on
 * after it.
 */
#include "config/config.h"

#include <errno.h>
#include <string.h>

#include "config/files.h"
#include "config/internal.h"
#include "util/ini.h"

static const char *const standard_roots[] = { "/etc", "/run", "/usr/lib", NULL };

static int read_standard_files(struct config *config, const char *const *roots, struct diag *diag)
{
	_cleanup_(config_files_done) struct config_files files = { 0 };
	int r;

	r = config_files_find(roots, diag, &files);
	for (size_t i = 0; i < files.n && r >= 0; i++) {
		if (i == CONFIG_FILES_MAX) {
			diag_add(diag, files.paths[i], 0, "more than %d files: this one and those after it are not read",
				 CONFIG_FILES_MAX);
			break;
		}
		r = config_read_file(config, files.paths[i], false, diag);
		/* A file that went away, or a link to nothing: it is in diag. */
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

static int set_resource(struct config *config, const struct config_source *source, struct diag *diag)
{
	const struct config_section *section = &config->resource_section;
	int r;

	r = resource_set_defaults(&config->resource, source->roots ?: standard_roots, source->path);
	if (r >= 0)
		r = config_environment_set_resource(config, source->environment);
	for (size_t i = 0; i < section->n_settings && r >= 0; i++) {
		const struct assignment *setting = &section->settings[i];

		r = resource_set(&config->resource, setting->key, setting->value);
		if (r == -ENOSPC) {
			diag_add(diag, setting->path, setting->line, "%s: more than %d attributes", setting->key,
				 RESOURCE_ATTRIBUTES_MAX);
			return 0;
		}
	}
	return r;
}

int config_read(const struct config_source *source, struct diag *diag, struct config **ret_config)
{
	_cleanup_(config_freep) struct config *config = calloc(1, sizeof(*config));
	int r;

	if (!config)
		return -ENOMEM;
	r = setting_table_init(&config_agent_settings, &config->agent);
	if (r >= 0)
		r = source->path ? config_read_file(config, source->path, true, diag) :
				   read_standard_files(config, source->roots ?: standard_roots, diag);
	if (r >= 0)
		r = config_environment_set_agent(config, source->environment);
	if (r >= 0)
		r = set_resource(config, source, diag);
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

const struct config_section *config_find_collector(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->n_collectors; i++)
		if (!strcmp(config->collectors[i].name, name))
			return &config->collectors[i];
	return NULL;
}

static void free_sections(struct config_section *sections, size_t n)
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
	free(config->resource_section.settings);
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
