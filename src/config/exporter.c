/* SPDX-License-Identifier: Apache-2.0 */
/* From [exporter NAME] sections, as gathered, to exporters with their options. */
#include "config/config.h"
#include "config/internal.h"

#include <errno.h>
#include <string.h>

#include "util/array.h"
#include "util/hash.h"

/* From the section, then from the environment; with all that is wrong with them. */
static int set_options(struct config *config, const struct config_section *section,
		       const struct exporter_ops *ops, void *options, struct diag *diag)
{
	const struct assignments *given = &section->given;
	unsigned int n_errors = diag->n_errors;
	int r = 0;

	for (size_t i = 0; i < given->n && r >= 0; i++)
		if (strcmp(given->items[i].key, "type"))
			r = setting_table_set(ops->settings, options, &given->items[i], diag);
	if (r >= 0 && ops->environment)
		r = ops->environment(options, given, &config->warnings);
	/* Combinations are checked when each setting is sound. */
	if (r >= 0 && ops->check && given->path && diag->n_errors == n_errors)
		ops->check(options, given, diag);
	return r == -ENOMEM ? r : 0;
}

static const struct exporter_ops *ops_at(const struct config_exporter *exporter, size_t i)
{
	return i ? exporter->ops->others[i - 1] : exporter->ops;
}

static char *join_names(const char *exporter, const char *signal)
{
	char *name;

	return asprintf(&name, "%s/%s", exporter, signal) < 0 ? NULL : name;
}

/* What sends metrics is called like the section. */
static int make_names(struct config_exporter *exporter)
{
	const struct exporter_ops *ops;

	for (size_t i = 0; i < SIGNALS && (ops = ops_at(exporter, i)); i++) {
		if (ops->takes)
			exporter->names[i] = join_names(exporter->name,
							signal_words(ops->takes)->name);
		else
			exporter->names[i] = strdup(exporter->name);
		if (!exporter->names[i])
			return -ENOMEM;
	}
	return 0;
}

static void free_exporter(struct config_exporter *exporter)
{
	setting_table_done(exporter->ops->settings, exporter->options);
	for (size_t i = 0; i < SIGNALS; i++)
		free(exporter->names[i]);
	free(exporter->options);
}

int config_add_exporter(struct config *config, const struct config_section *section,
			const struct exporter_ops *ops, struct diag *diag)
{
	void *options = calloc(1, ops->settings->size_bytes ?: 1);
	struct config_exporter exporter = { section->name, ops, options, { NULL },
					    section->given.path, section->given.line };
	int r = options ? setting_table_init(ops->settings, options) : -ENOMEM;

	r = r ?: make_names(&exporter);
	r = r ?: set_options(config, section, ops, options, diag);
	if (!r && section->is_enabled)
		r = array_append(&config->exporters, &config->n_exporters, &exporter);
	if (r || !section->is_enabled)
		free_exporter(&exporter);
	return r;
}

const struct exporter_ops *config_exporter_ops(const struct config_exporter *exporter,
					       enum signals signal, const char **ret_name)
{
	enum signals wanted = exporter_signals(exporter->ops, exporter->options);
	const struct exporter_ops *ops;

	for (size_t i = 0; i < SIGNALS && (ops = ops_at(exporter, i)); i++) {
		if (!(wanted & signal) || signal_index(ops->takes) != signal_index(signal))
			continue;
		*ret_name = exporter->names[i];
		return ops;
	}
	return NULL;
}

void config_free_exporters(struct config *config)
{
	array_for_each (exporter, config->exporters, config->n_exporters)
		free_exporter(exporter);
	array_free(&config->exporters, &config->n_exporters);
}

/* The type that a section names, or NULL with a mistake. */
static const struct exporter_ops *find_type(const struct config_section *section, struct diag *diag)
{
	const struct assignment type = assignments_place(&section->given, "type", NULL);
	const struct exporter_ops *ops = type.value ? exporter_find(type.value) : NULL;
	const char *names[32];
	size_t n = 0;

	if (ops)
		return ops;
	for (; n < ARRAY_SIZE(names) && exporter_table[n]; n++)
		names[n] = exporter_table[n]->type;
	diag_add_unknown(diag, type.path, type.line, "type", type.value, names, n);
	return NULL;
}

/* The file that an exporter appends to, or NULL. */
static const char *file_of(const struct config_exporter *exporter)
{
	const struct setting_row *row = setting_table_find(exporter->ops->settings, "path");
	const char *path = row ? *(char *const *)((const char *)exporter->options + row->offset) :
			   NULL;

	return path && strcmp(path, "-") ? path : NULL;
}

void config_warn_of_output(struct config *config)
{
	array_for_each (exporter, config->exporters, config->n_exporters)
		if (setting_table_find(exporter->ops->settings, "path") && !file_of(exporter))
			diag_add(&config->warnings, exporter->path, exporter->line,
				 "exporter %s writes to standard output, which is the service's journal: all that is counted fills "
				 "it at each interval; set path to a file", exporter->name);
}

/* Of its texts and lists (headers, templates, files). */
static uint64_t hash_of(const struct config_exporter *exporter)
{
	const struct setting_table *table = exporter->ops->settings;
	uint64_t hash = hash_text(HASH_STABLE_START, exporter->ops->type);

	array_for_each (row, table->rows, table->n_rows) {
		const void *member = (const char *)exporter->options + row->offset;
		const struct setting_list *list = setting_row_is_list(row) ? member : NULL;

		hash = hash_text(hash,
				 row->type == SETTING_TEXT ? *(char *const *)member : row->key);
		for (size_t i = 0; list && i < list->n_items; i++)
			hash = hash_text(hash, list->items[i]);
	}
	return hash;
}

/* One warning for each exporter. */
void config_warn_of_twins(struct config *config)
{
	const struct config_exporter *twin;

	array_for_each (exporter, config->exporters, config->n_exporters) {
		unsigned int n_before = config->warnings.n_errors;
		const char *file = file_of(exporter);

		for (twin = config->exporters;
		     twin < exporter && config->warnings.n_errors == n_before; twin++) {
			const char *other = file ? file_of(twin) : NULL;

			if (other && !strcmp(file, other))
				diag_add(&config->warnings, exporter->path, exporter->line,
					 "exporters %s and %s append to the same file, %s: give each its own path",
					 twin->name, exporter->name, file);
			/* Nothing tells their endpoints apart. */
			if (setting_table_find(exporter->ops->settings, "endpoint") &&
			    hash_of(exporter) == hash_of(twin))
				diag_add(&config->warnings, exporter->path, exporter->line,
					 "exporters %s and %s push to the same endpoint: it gets every number twice",
					 twin->name, exporter->name);
		}
	}
}

int config_set_exporters(struct config *config, struct diag *diag)
{
	int r = 0;

	array_for_each (section, config->sections, config->n_sections) {
		const struct exporter_ops *ops = strcmp(section->kind, "exporter") ? NULL :
						 find_type(section, diag);

		if (ops && r >= 0)
			r = config_add_exporter(config, section, ops, diag);
	}
	return r;
}
