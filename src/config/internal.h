/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of config_read(), in the order of their calls. All: -ENOMEM. */

#include "config/config.h"

/*
 * Adds what a file says. is_named: a person gave its path. -ENOENT: there is none, which is in diag
 * too.
 */
int config_read_file(struct config *config, const char *path, bool is_named, struct diag *diag);
/* Does any file have this key in [agent]? */
bool config_is_agent_set(const struct config *config, const char *key);

/* [agent] keys that no file has set, from OTEL_METRIC_EXPORT_INTERVAL and OTEL_LOG_LEVEL. */
int config_environment_set_agent(struct config *config, const char *const *environment);
/* OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME. */
int config_environment_set_resource(struct config *config, const char *const *environment);
/* Exporters of the sections. */
int config_set_exporters(struct config *config, const struct config_source *source, struct diag *diag);
/*
 * Where the files have no [exporter]: those of OTEL_METRICS_EXPORTER, or one otlp where an endpoint
 * of it is set. None at all under OTEL_SDK_DISABLED=true.
 */
int config_environment_set_exporters(struct config *config, const struct config_source *source,
				     struct diag *diag);

/* Exporters that push the same numbers to the same place are not a mistake, but probably not intended. */
void config_warn_of_twins(struct config *config);

/* One exporter of a type; of section, name and path are borrowed, settings are not kept. */
int config_add_exporter(struct config *config, const struct config_source *source, struct diag *diag,
			const struct config_section *section, const struct exporter_ops *ops);
void config_drop_last_exporter(struct config *config);
