/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "command/setup.h"
#include "util/duration.h"
#include "util/log.h"

/* Between refreshes for a person who watches. */
#define CONSOLE_INTERVAL_NS (2 * NS_PER_S)

static int run(const struct arguments *arguments, const struct setup *setup, const struct config_exporter *exporters,
	       size_t n_exporters, bool is_console)
{
	_cleanup_(agent_freep) struct agent *agent = NULL;
	struct agent_options options = {
		.config = setup->config,
		.set = (struct collector_set *)&setup->set,
		.interval_ns = arguments->interval_ns ? arguments->interval_ns :
			       is_console	      ? CONSOLE_INTERVAL_NS :
							setup->config->agent.interval_ns,
		.exporters = exporters,
		.n_exporters = n_exporters,
		.is_filter = is_console,
		.has_self = setup->config->agent.self_metrics && !is_console,
	};
	int err = agent_new(&options, &agent);

	if (err)
		return setup_exit_code(err);
	err = agent_run(agent);
	if (err)
		log_error("stopped by an error: %s", strerror(-err));
	return err ? EXIT_INTERNAL : EXIT_OK;
}

int command_run(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	const struct config_exporter *exporter;
	enum exit_code code = setup_open(arguments, arguments->words, &setup);
	/* Started by hand with nothing configured: somebody wants to see numbers. */
	bool is_console = arguments->is_console ||
			  (code == EXIT_OK && !setup.config->n_exporters && isatty(STDOUT_FILENO));

	if (code != EXIT_OK)
		return code;
	if (!is_console && setup.config->n_exporters)
		return run(arguments, &setup, setup.config->exporters, setup.config->n_exporters, false);
	if (!is_console && setup.config->is_export_off) {
		log_info("exporting is switched off: counting, but pushing nothing");
		return run(arguments, &setup, NULL, 0, false);
	}
	exporter = setup_add_exporter(&setup, is_console ? "console" : "otlp", NULL, arguments->rows);
	if (!exporter)
		return EXIT_INTERNAL;
	if (!is_console)
		log_info("no exporter is configured: pushing OTLP to http://localhost:4318");
	return run(arguments, &setup, exporter, 1, is_console);
}
