/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard variables (OpenTelemetry specification, configuration/sdk-environment-variables.md):
 * an empty one is unset, enums are matched in any case, unknown or malformed values are ignored
 * with a warning. They rank below the files.
 */
#include "config/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/parse.h"

static const char *get(const char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=' &&
		    (*environment)[length + 1])
			return *environment + length + 1;
	return NULL;
}

static int set_agent(struct config *config, const char *variable, const char *key, const char *value)
{
	const struct assignment setting = { key, value, variable, 0 };

	return setting_table_set(&config_agent_settings, &config->agent, &setting, &config->warnings);
}

static int set_interval(struct config *config, const char *text)
{
	static const char variable[] = "OTEL_METRIC_EXPORT_INTERVAL";
	char duration[32];
	uint64_t interval_ms;

	if (!text || config_is_agent_set(config, "interval"))
		return 0;
	if (parse_u64(text, &interval_ms) < 0) {
		diag_add(&config->warnings, variable, 0, "\"%s\" is not a number of milliseconds: ignored", text);
		return 0;
	}
	snprintf(duration, sizeof(duration), "%" PRIu64 "ms", interval_ms);
	return set_agent(config, variable, "interval", duration);
}

static int set_log_level(struct config *config, const char *text)
{
	static const char variable[] = "OTEL_LOG_LEVEL";
	static const struct {
		const char *text, *level;
	} levels[] = {
		{ "trace", "debug" },  { "debug", "debug" },	 { "verbose", "debug" }, { "info", "info" },
		{ "warn", "warning" }, { "warning", "warning" }, { "error", "error" },	 { "fatal", "error" },
		{ "none", "error" },
	};

	if (!text || config_is_agent_set(config, "log_level"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (!strcasecmp(text, levels[i].text))
			return set_agent(config, variable, "log_level", levels[i].level);
	diag_add(&config->warnings, variable, 0, "\"%s\" is not debug, info, warn or error: ignored", text);
	return 0;
}

int config_environment_set_agent(struct config *config, const char *const *environment)
{
	int r;

	if (get(environment, "OTEL_CONFIG_FILE"))
		diag_add(&config->warnings, "OTEL_CONFIG_FILE", 0,
			 "is ignored: bpfpush has configuration files of its own");
	r = set_interval(config, get(environment, "OTEL_METRIC_EXPORT_INTERVAL"));
	return r < 0 ? r : set_log_level(config, get(environment, "OTEL_LOG_LEVEL"));
}

int config_environment_set_resource(struct config *config, const char *const *environment)
{
	const char *list = get(environment, "OTEL_RESOURCE_ATTRIBUTES");
	const char *name = get(environment, "OTEL_SERVICE_NAME");
	int r = list ? resource_set_list(&config->resource, list) : 0;

	if (r == -EINVAL)
		diag_add(&config->warnings, "OTEL_RESOURCE_ATTRIBUTES", 0,
			 "is not name=value,name=value with %%2C and %%3D for \",\" and \"=\" in values: ignored");
	else if (r == -ENOSPC)
		diag_add(&config->warnings, "OTEL_RESOURCE_ATTRIBUTES", 0,
			 "more than %d attributes: the rest is ignored", RESOURCE_ATTRIBUTES_MAX);
	else if (r < 0)
		return r;
	return name ? resource_set(&config->resource, "service.name", name) : 0;
}

static int add_exporter(struct config *config, const struct config_source *source, struct diag *diag,
			const char *type, const char *variable)
{
	const struct exporter_ops *ops = exporter_find(type);
	struct config_section section = { .is_enabled = true, .path = variable };

	if (!ops) {
		diag_add(&config->warnings, variable, 0, "there is no exporter \"%s\": ignored", type);
		return 0;
	}
	section.name = ops->type;
	return config_add_exporter(config, source, diag, &section, ops);
}

static int add_listed_exporters(struct config *config, const struct config_source *source,
				struct diag *diag, const char *list)
{
	_cleanup_(freep) char *copy = strdup(list);
	char *rest = copy, *type;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	while (r >= 0 && (type = strsep(&rest, ", ")))
		if (*type && strcasecmp(type, "none"))
			r = add_exporter(config, source, diag, type, "OTEL_METRICS_EXPORTER");
	return r;
}

static bool are_all_disabled(const struct config *config)
{
	for (size_t i = 0; i < config->n_exporter_sections; i++)
		if (config->exporter_sections[i].is_enabled)
			return false;
	return true;
}

int config_environment_set_exporters(struct config *config, const struct config_source *source,
				     struct diag *diag)
{
	static const char *const endpoints[] = {
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
		"OTEL_EXPORTER_OTLP_ENDPOINT",
	};
	const char *disabled = get(source->environment, "OTEL_SDK_DISABLED");
	const char *listed = get(source->environment, "OTEL_METRICS_EXPORTER");

	if (disabled && !strcasecmp(disabled, "true")) {
		diag_add(&config->warnings, "OTEL_SDK_DISABLED", 0, "is true: nothing is exported");
		while (config->n_exporters)
			config_drop_last_exporter(config);
		config->is_export_off = true;
		return 0;
	}
	if (config->n_exporter_sections) {
		config->is_export_off = are_all_disabled(config);
		return 0;
	}
	if (listed) {
		config->is_export_off = !strcasecmp(listed, "none");
		return add_listed_exporters(config, source, diag, listed);
	}
	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++)
		if (get(source->environment, endpoints[i]))
			return add_exporter(config, source, diag, "otlp", endpoints[i]);
	return 0;
}
