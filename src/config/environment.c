/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard variables (OpenTelemetry specification, configuration/sdk-environment-variables.md):
 * an empty one is unset, enums are matched in any case, unknown or malformed values are ignored
 * with a warning. They rank below the files.
 */
#include "config/config.h"
#include "config/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "util/parse.h"

static const char *get_variable(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static int set_agent(struct config *config, const char *variable, const char *key,
		     const char *value)
{
	const struct assignment setting = { key, value, variable, 0 };

	return setting_table_set(&config_agent_settings, &config->agent, &setting,
				 &config->warnings);
}

static int set_interval(struct config *config)
{
	static const char variable[] = "OTEL_METRIC_EXPORT_INTERVAL";
	const char *text = get_variable(variable);
	char duration[32];
	uint64_t interval_ms;

	if (!text)
		return 0;
	if (parse_u64(text, &interval_ms) < 0) {
		diag_add(&config->warnings, variable, 0, "\"%s\" is not a number of milliseconds: ignored", text);
		return 0;
	}
	snprintf(duration, sizeof(duration), "%" PRIu64 "ms", interval_ms);
	return set_agent(config, variable, "interval", duration);
}

static int set_log_level(struct config *config)
{
	static const char variable[] = "OTEL_LOG_LEVEL";
	static const struct {
		const char *text, *level;
	} levels[] = {
		{ "trace", "debug" },  { "debug", "debug" },	 { "verbose", "debug" }, { "info", "info" },
		{ "warn", "warning" }, { "warning", "warning" }, { "error", "error" },	 { "fatal", "error" },
		{ "none", "error" },
	};
	const char *text = get_variable(variable);

	for (size_t i = 0; i < ARRAY_SIZE(levels) && text; i++)
		if (!strcasecmp(text, levels[i].text))
			return set_agent(config, variable, "log_level", levels[i].level);
	if (text)
		diag_add(&config->warnings, variable, 0, "\"%s\" is not debug, info, warn or error: ignored", text);
	return 0;
}

static int set_resource(struct config *config)
{
	const char *list = get_variable(RESOURCE_VARIABLE);
	const char *name = get_variable("OTEL_SERVICE_NAME");
	int r = list ? resource_set_list(&config->resource, list, &config->warnings) : 0;

	if (r == -EINVAL)
		diag_add(&config->warnings, RESOURCE_VARIABLE, 0,
			 "is not name=value,name=value with %%2C and %%3D for \",\" and \"=\" in values: ignored");
	else if (r == -ENOSPC)
		diag_add(&config->warnings, RESOURCE_VARIABLE, 0,
			 "more than %d attributes: the rest is ignored", RESOURCE_ATTRIBUTES_MAX);
	else if (r < 0)
		return r;
	return name ? resource_set(&config->resource, "service.name", name) : 0;
}

int config_environment_set(struct config *config)
{
	int err;

	if (get_variable("OTEL_CONFIG_FILE"))
		diag_add(&config->warnings, "OTEL_CONFIG_FILE", 0,
			 "is ignored: bpfpush has its own configuration files");
	err = set_interval(config) ?: set_log_level(config);
	return err ?: set_resource(config);
}

static int add_exporter(struct config *config, struct diag *diag, const char *type,
			const char *variable)
{
	struct config_section section = { .is_enabled = true, .given.path = variable };
	const struct exporter_ops *ops = exporter_find(type);

	if (!ops || ops->take) {
		diag_add(&config->warnings, variable, 0, "%s \"%s\": ignored",
			 ops ? "no metrics go to an exporter" : "unknown exporter", type);
		return 0;
	}
	section.name = ops->type;
	return config_add_exporter(config, &section, ops, diag);
}

static int add_listed_exporters(struct config *config, struct diag *diag, const char *list)
{
	_cleanup_(freep) char *copy = strdup(list);
	char *rest = copy, *type;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	while (r >= 0 && (type = strsep(&rest, ", ")))
		if (*type && strcasecmp(type, "none"))
			r = add_exporter(config, diag, type, "OTEL_METRICS_EXPORTER");
	return r;
}

int config_environment_set_exporters(struct config *config, struct diag *diag)
{
	static const char of_metrics[] = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", of_all[] = "OTEL_EXPORTER_OTLP_ENDPOINT";
	const char *endpoint = get_variable(of_metrics) ? of_metrics : of_all;
	const char *disabled = get_variable("OTEL_SDK_DISABLED");
	const char *listed = get_variable("OTEL_METRICS_EXPORTER");

	if (disabled && !strcasecmp(disabled, "true")) {
		diag_add(&config->warnings, "OTEL_SDK_DISABLED", 0, "is true: nothing is exported");
		config_free_exporters(config);
		config->is_export_off = true;
		return 0;
	}
	for (size_t i = 0; i < config->n_sections; i++)
		if (!strcmp(config->sections[i].kind, "exporter")) {
			config->is_export_off = !config->n_exporters;
			return 0;
		}
	if (listed) {
		config->is_export_off = !strcasecmp(listed, "none");
		return add_listed_exporters(config, diag, listed);
	}
	return get_variable(endpoint) ? add_exporter(config, diag, "otlp", endpoint) : 0;
}
