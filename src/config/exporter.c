/* SPDX-License-Identifier: Apache-2.0 */
/* From [exporter NAME] sections, as gathered, to exporters with their options. */
#include "config/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct assignment *find_setting(const struct config_section *section, const char *key)
{
	for (size_t i = section->n_settings; i--;)
		if (!strcmp(section->settings[i].key, key))
			return &section->settings[i];
	return NULL;
}

static bool is_set_in_section(void *user, const char *key)
{
	return find_setting(user, key);
}

/* Was the key given before in the same file? (One path, one string.) */
static bool report_repeated(const struct config_section *section, size_t at, struct diag *diag)
{
	const struct assignment *setting = &section->settings[at];

	for (size_t i = 0; i < at; i++)
		if (section->settings[i].path == setting->path &&
		    !strcmp(section->settings[i].key, setting->key)) {
			diag_add(diag, setting->path, setting->line, "%s: already set on line %u",
				 setting->key, section->settings[i].line);
			return true;
		}
	return false;
}

/*
 * The options of an exporter from its section, then from the environment; with all that is wrong
 * with them.
 */
static int set_options(struct config *config, const struct config_source *source, struct diag *diag,
		       const struct config_section *section, const struct config_exporter *exporter)
{
	const struct exporter_ops *ops = exporter->ops;
	unsigned int n_errors = diag->n_errors;
	int r = 0;

	for (size_t i = 0; i < section->n_settings && r >= 0; i++) {
		const struct assignment *setting = &section->settings[i];
		const struct setting_row *row = setting_table_find(ops->settings, setting->key);

		if (!strcmp(setting->key, "type") ||
		    (!setting_row_is_list(row) && report_repeated(section, i, diag)))
			continue;
		r = setting_table_set(ops->settings, exporter->options, setting, diag);
	}
	if (r >= 0 && ops->environment && source->environment)
		r = ops->environment(exporter->options, is_set_in_section, (void *)section, &config->warnings);
	/* Combinations are checked when each setting is sound. */
	if (r >= 0 && ops->check && diag->n_errors == n_errors)
		r = ops->check(exporter->options, section->path, section->line, diag);
	return r == -ENOMEM ? r : 0;
}

int config_add_exporter(struct config *config, const struct config_source *source, struct diag *diag,
			const struct config_section *section, const struct exporter_ops *ops)
{
	struct config_exporter *exporters;
	void *options;
	int r;

	exporters = reallocarray(config->exporters, config->n_exporters + 1, sizeof(*exporters));
	if (!exporters)
		return -ENOMEM;
	config->exporters = exporters;
	r = setting_table_new(ops->settings, &options);
	if (r < 0)
		return r;
	exporters[config->n_exporters++] = (struct config_exporter){
		.name = section->name,
		.ops = ops,
		.options = options,
		.path = section->path,
		.line = section->line,
	};
	return set_options(config, source, diag, section, &exporters[config->n_exporters - 1]);
}

void config_drop_last_exporter(struct config *config)
{
	struct config_exporter *exporter = &config->exporters[--config->n_exporters];

	setting_table_free(exporter->ops->settings, exporter->options);
}

static void report_no_type(const struct config_section *section, struct diag *diag)
{
	_cleanup_(buf_done) struct buf list = BUF_INIT;

	for (size_t i = 0; exporter_table[i]; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", exporter_table[i]->type);
	diag_add(diag, section->path, section->line, "[exporter %s] has no \"type =\": write one of %s",
		 section->name, buf_text(&list));
	if (buf_error(&list))
		diag->text.error = buf_error(&list);
}

/* The type that a section names, or NULL with a mistake. */
static const struct exporter_ops *find_type(const struct config_section *section, struct diag *diag)
{
	const struct assignment *type = find_setting(section, "type");
	const struct exporter_ops *ops = type ? exporter_find(type->value) : NULL;
	const char *names[32];
	size_t n = 0;

	for (; n < ARRAY_SIZE(names) && exporter_table[n]; n++)
		names[n] = exporter_table[n]->type;
	if (!type)
		report_no_type(section, diag);
	else if (!ops)
		diag_add_unknown(diag, type->path, type->line, "type", type->value, names, n);
	return ops;
}

static bool are_lists_equal(const struct setting_list *left, const struct setting_list *right)
{
	if (left->n_items != right->n_items)
		return false;
	for (size_t i = 0; i < left->n_items; i++)
		if (strcmp(left->items[i], right->items[i]))
			return false;
	return true;
}

/* Do both push to the same place, with nothing (headers, templates, files) to tell them apart? */
static bool are_twins(const struct config_exporter *left, const struct config_exporter *right)
{
	const struct setting_table *table = left->ops->settings;

	if (left->ops != right->ops || !setting_table_find(table, "endpoint"))
		return false;
	for (size_t i = 0; i < table->n_rows; i++) {
		const void *one = (const char *)left->options + table->rows[i].offset;
		const void *other = (const char *)right->options + table->rows[i].offset;

		if (setting_row_is_list(&table->rows[i]) && !are_lists_equal(one, other))
			return false;
		if (table->rows[i].type == SETTING_TEXT &&
		    strcmp(*(char *const *)one ?: "", *(char *const *)other ?: ""))
			return false;
	}
	return true;
}

void config_warn_of_twins(struct config *config)
{
	for (size_t i = 0; i < config->n_exporters; i++)
		for (size_t j = 0; j < i; j++) {
			const struct config_exporter *exporter = &config->exporters[i], *twin = &config->exporters[j];

			if (are_twins(exporter, twin))
				diag_add(&config->warnings, exporter->path, exporter->line,
					 "exporters %s and %s push to the same endpoint: it gets every number twice",
					 twin->name, exporter->name);
		}
}

int config_set_exporters(struct config *config, const struct config_source *source, struct diag *diag)
{
	int r = 0;

	for (size_t i = 0; i < config->n_exporter_sections && r >= 0; i++) {
		const struct config_section *section = &config->exporter_sections[i];
		const struct exporter_ops *ops = find_type(section, diag);

		if (!ops)
			continue;
		r = config_add_exporter(config, source, diag, section, ops);
		if (r >= 0 && !section->is_enabled)
			config_drop_last_exporter(config);
	}
	return r;
}
