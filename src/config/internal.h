/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of config_read(). All: -ENOMEM. */

#include <stdbool.h>

struct config;
struct diag;
struct setting_list;

/*
 * Adds paths in the order of reading to a list that is empty. A directory that cannot be read goes
 * to diag.
 */
int config_files_find(const char *const *roots, struct diag *diag, struct setting_list *paths);
/*
 * Adds the sections and settings of a file. is_named: a person gave its path. -ENOENT: there is
 * none, which is in diag too.
 */
int config_read_file(struct config *config, const char *path, bool is_named, struct diag *diag);
/* Like config_read_file(), for a text that is in no file; mistakes are those of origin. */
int config_read_text(struct config *config, const char *text, const char *origin,
		     struct diag *diag);
/*
 * [agent] interval and log_level, from OTEL_METRIC_EXPORT_INTERVAL and OTEL_LOG_LEVEL; the
 * resource, from OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
 */
int config_environment_set(struct config *config);
/* Exporters of the sections. */
int config_set_exporters(struct config *config, struct diag *diag);
/*
 * If the files have no [exporter]: those of OTEL_METRICS_EXPORTER, or one otlp if a variable sets
 * its endpoint. None at all with OTEL_SDK_DISABLED=true.
 */
int config_environment_set_exporters(struct config *config, struct diag *diag);
/*
 * Exporters that push the same numbers to the same place are not a mistake, but probably not
 * intended.
 */
void config_warn_of_twins(struct config *config);
