/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent.h"
#include "command.h"
#include "util/log.h"

#define DURATION_NS 10000000000ull

/* What --format= may be, and the exporter behind each. */
static const char *const formats[][2] = {
	{ "table", "console" },
	{ "json", "json" },
	{ "bpftrace-json", "bpftrace-json" },
};

static const char *exporter_type(const char *format)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i][0], format))
			return formats[i][1];
	return NULL;
}

int command_once(const struct arguments *arguments)
{
	const char *type = exporter_type(arguments->format ? arguments->format : "table");
	_cleanup_(setup_free_exporter) struct config_exporter exporter = { 0 };
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(agent_freep) struct agent *agent = NULL;
	struct agent_options options = { .set = &setup.set, .exporters = &exporter, .n_exporters = 1, .is_once = true };
	uint64_t duration_ns = arguments->duration_ns;
	enum exit_code code;
	int err, status = 0;

	if (!type) {
		log_error("--format=%s: write table, json or bpftrace-json", arguments->format);
		return EXIT_USE;
	}
	code = setup_open(arguments, arguments->n_words ? (const char *const *)arguments->words : NULL, &setup);
	if (code != EXIT_OK)
		return code;
	if (setup_make_exporter(type, arguments->output_path, &exporter))
		return EXIT_INTERNAL;
	options.config = setup.config;
	err = agent_new(&options, &agent);
	if (err)
		return setup_exit_code(err);
	if (!duration_ns && !arguments->command)
		duration_ns = DURATION_NS;
	err = agent_once(agent, duration_ns, arguments->command, &status);
	if (err) {
		log_error("cannot go on: %s", strerror(-err));
		return EXIT_INTERNAL;
	}
	return status;
}
