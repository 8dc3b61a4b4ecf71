/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "command/setup.h"
#include "util/kept.h"
#include "util/log.h"
#include "util/rights.h"

#define AGAIN (-1) /* instead of an exit code: with a new configuration */

/* Of what a reload needs to know; and what the first start has made of it. */
struct run {
	const struct arguments *arguments;
	struct setup setup;
	struct kept *kept;
};

static enum agent_reload reload_configuration(void *user)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	const struct run *run = user;
	enum exit_code code = setup_open(run->arguments, run->arguments->words, &setup);
	/* The capabilities that an exec gives back: root's. */
	bool regains_rights = !geteuid() && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0,
		is_restarted;
	struct sockaddr_un address;

	if (code != EXIT_OK) {
		setup_set_log_level(run->arguments, run->setup.config);
		log_error("the configuration is not reloaded: the old one goes on");
		return RELOAD_NONE;
	}
	if (regains_rights || (!rights_permitted() && collector_set_is_kept(&setup.set, run->kept)))
		return RELOAD_EXEC;
	is_restarted = kept_manager(&address);
	log_warning("the new configuration takes rights that are given up: %s", is_restarted ?
		    "ending, to be started again with them" : "the old one goes on");
	return is_restarted ? RELOAD_RESTART : RELOAD_NONE;
}

static int run_agent(struct run *run)
{
	_cleanup_(agent_freep) struct agent *agent = NULL;
	const struct config_agent *config = &run->setup.config->agent;
	struct agent_options options = {
		.config = run->setup.config,
		.set = &run->setup.set,
		.kept = run->kept,
		.interval_ns = run->arguments->interval_ns ?: config->interval_ns,
		.count = run->arguments->count,
		.reload = isatty(STDERR_FILENO) ? NULL : reload_configuration,
		.user = run,
		.has_self = config->self_metrics,
	};
	bool is_heir = run->kept && kept_has(run->kept, ""); /* before the new state is kept, too */
	int r = agent_new(&options, &agent);

	/*
	 * An earlier process had the rights. The manager gives them to the next one, or then says
	 * what is missing.
	 */
	if (r == -EPERM && is_heir) {
		kept_drop(run->kept, "");
		return EXIT_INTERNAL;
	}
	if (r)
		return setup_exit_code(&run->setup, r);
	r = agent_run(agent);
	if (r >= 0)
		return r ? AGAIN : EXIT_OK;
	log_error("stopped by an error: %s", strerror(-r));
	return EXIT_INTERNAL;
}

/* Of all exporters. */
static enum signals pushed_signals(const struct config *config)
{
	enum signals signals = 0;

	array_for_each (exporter, config->exporters, config->n_exporters)
		signals |= exporter_signals(exporter->ops, exporter->options);
	return signals;
}

static void warn_of_events(const struct config *config, const struct collector_set *set)
{
	enum signals pushed = pushed_signals(config);

	for (size_t i = 0; i < set->n_shown; i++) {
		const char *name = set->items[i]->name;
		enum signals lost = collector_signals(set->items[i]) &
				    ~(pushed | SIGNAL_METRICS);

		if (lost)
			log_warning("collector %s has %s, and no exporter has them among its signals; \"bpfpush events %s\" shows them",
				    name, signal_words(lost)->name, name);
	}
}

/* What takes no metrics replaces the exporter that there is by default. */
static void warn_of_metrics(const struct config *config, const struct collector_set *set)
{
	size_t n_metrics = 0;

	if (pushed_signals(config) & SIGNAL_METRICS)
		return;
	for (size_t i = 0; i < set->n_shown; i++)
		n_metrics += set->items[i]->n_metrics;
	if (n_metrics && config->n_exporters)
		log_warning("metrics are counted, but not pushed: no exporter has them among its signals; add metrics to signals, or an exporter of another type");
}

static int run_setup(struct run *run)
{
	const struct config *config = run->setup.config;
	bool is_default = !config->n_exporters && !config->is_export_off;

	if (config->is_export_off)
		log_info("exporting is switched off: counting, but pushing nothing");
	if (is_default && setup_replace_exporters(&run->setup, "otlp", run->arguments))
		return EXIT_INTERNAL;
	if (is_default)
		log_info("no exporter is configured: pushing OTLP to http://localhost:4318");
	warn_of_events(config, &run->setup.set);
	warn_of_metrics(config, &run->setup.set);
	return run_agent(run);
}

int command_run(const struct arguments *arguments)
{
	struct run this = { .arguments = arguments };
	bool is_top = false;
	int code = kept_new(&this.kept) ? EXIT_INTERNAL : AGAIN;

	agent_block_signals();
	while (code == AGAIN) {
		code = setup_open(arguments, arguments->words, &this.setup);
		/* Started by hand with nothing configured: the screen instead. */
		is_top = code == EXIT_OK && !this.setup.config->n_exporters &&
			 isatty(STDOUT_FILENO);
		if (code == EXIT_OK && !is_top)
			code = run_setup(&this);
		setup_done(&this.setup);
		if (code == AGAIN)
			log_warning("goes on in the same process, because it cannot start again: %s",
				    strerror(-kept_exec(this.kept, arguments->all)));
	}
	if (is_top)
		code = command_top(arguments);
	kept_free(this.kept);
	return code;
}
