/* SPDX-License-Identifier: Apache-2.0 */
#include "command/setup.h"

#include <errno.h>
#include <string.h>

#include "agent/scope.h"
#include "command/ask.h"
#include "util/array.h"
#include "util/duration.h"
#include "util/log.h"

#define WAIT_NS (2 * NS_PER_S) /* for so long, a person is told what is going on */

static void log_warnings(struct config *config)
{
	log_lines(LOG_LEVEL_WARNING, buf_text(&config->warnings.text));
	diag_done(&config->warnings);
}

void setup_set_log_level(const struct arguments *arguments, const struct config *config)
{
	log_set_level((enum log_level)(arguments->log_level >= 0 ? arguments->log_level :
				       config->agent.log_level));
}

int setup_read(const struct arguments *arguments, struct diag *diag, struct config **ret_config)
{
	const char *first = arguments->collector_directory;
	_cleanup_(freep) char *directory = first ? strdup(first) : NULL;
	int err = config_read(arguments->config_path, NULL, diag, ret_config);

	if (err)
		return err;
	if (first) {
		/* It comes ahead of the configuration's. */
		struct setting_list *list = &(*ret_config)->agent.collector_directories;

		if (!directory || !array_add(&list->items, &list->n_items, sizeof(*list->items)))
			return -ENOMEM;
		memmove(list->items + 1, list->items, (list->n_items - 1) * sizeof(*list->items));
		list->items[0] = TAKE_PTR(directory);
	}
	setup_set_log_level(arguments, *ret_config);
	if (arguments->name == COMMAND_CHECK ||
	    (arguments->name == COMMAND_RUN && log_is_journal()))
		config_warn_of_output(*ret_config);
	log_warnings(*ret_config);
	return 0;
}

enum exit_code setup_open(const struct arguments *arguments, char *const *names,
			  struct setup *ret_setup)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	enum exit_code mistake = EXIT_SETTINGS;
	struct setup setup = { 0 };
	int err = setup_read(arguments, &diag, &setup.config);

	if (!err && arguments->on_config)
		arguments->on_config(arguments, setup.config);
	if (!err && arguments->is_alone)
		setup.config->agent.names.units.own = scope_name();
	if (!err)
		setup.config->agent.names.is_selective = arguments->is_alone ||
							 arguments->where.n_items;
	/* A command is counted alone by its unit, so its probes are told apart by that, too. */
	for (size_t i = 0; i < arguments->probes.n_items && !err; i++)
		err = config_add_probe(setup.config, arguments->probes.items[i],
				       arguments->is_alone, &diag);
	err = err ?:
	      collector_set_open(setup.config, (const char *const *)names, agent_boot_ns(), &diag,
				 &setup.set);
	if (!err && !diag.n_errors) { /* else the set is not whole */
		err = ask_collectors(arguments, names, &setup.set, &diag, &setup.question);
		mistake = diag.n_errors ? EXIT_USE : mistake;
	}
	err = err ?: buf_error(&diag.text);
	if (!err && !diag.n_errors && !setup.set.n_shown)
		diag_add(&diag, "bpfpush", 0, "no collector is enabled, so nothing would be counted; enable one in [agent] "
					      "collectors or a [collector NAME] section");
	/* The mistakes are not all, and some are perhaps no mistakes, if memory ran out. */
	if (err == -ENOMEM || (err && !diag.n_errors)) {
		log_error("cannot start: %s", strerror(-err));
		setup_done(&setup);
		return EXIT_INTERNAL;
	}
	if (diag.n_errors) {
		log_lines(LOG_LEVEL_ERROR, buf_text(&diag.text));
		if (log_is_journal()) /* with an event that counts them */
			log_event(LOG_LEVEL_ERROR, LOG_ID_CONFIG_REJECTED, NULL,
				  "%u mistake%s in the configuration and the collectors", diag.n_errors, plural(diag.n_errors));
		setup_done(&setup);
		return mistake;
	}
	*ret_setup = setup;
	return EXIT_OK;
}

void setup_done(struct setup *setup)
{
	agent_free(setup->agent);
	scope_free(setup->scope);
	question_done(&setup->question);
	collector_set_done(&setup->set);
	config_free(setup->config);
	*setup = (struct setup){ 0 };
}

enum exit_code setup_exit_code(const struct setup *setup, int err)
{
	/* For root, EACCES means that the verifier refused a program. */
	bool lacks_rights = err == -EPERM || (err == -EACCES && geteuid());

	if (err == -ECANCELED)
		return EXIT_OUTPUT;
	/* These pass, so the service is started again. */
	if (err == -ENOMEM || err == -EMFILE || err == -ENFILE) {
		log_error("cannot start: %s", strerror(-err));
		return EXIT_INTERNAL;
	}
	if (!setup->set.is_refused)
		log_event(LOG_LEVEL_ERROR, LOG_ID_CANNOT_RUN, NULL, "not started: no collector runs, so nothing can be counted");
	return lacks_rights ? EXIT_RIGHTS : EXIT_UNAVAILABLE;
}

int setup_replace_exporters(struct setup *setup, const char *type,
			    const struct arguments *arguments)
{
	const struct exporter_ops *ops = type ? exporter_find(type) : NULL;
	const struct assignment wanted[] = {
		{ "path", arguments->output_path },
		{ "limit", arguments->limit },
		{ "sort", arguments->sort },
		{ "histogram", arguments->is_histogram ? "yes" : NULL },
	};
	struct assignment settings[ARRAY_SIZE(wanted)];
	struct config_section section = { .name = type, .is_enabled = true,
					  .given.items = settings };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	int err = 0;

	config_free_exporters(setup->config);
	for (size_t i = 0; ops && i < ARRAY_SIZE(wanted); i++)
		if (wanted[i].value && setting_table_find(ops->settings, wanted[i].key))
			settings[section.given.n++] = wanted[i];
	if (ops)
		err = config_add_exporter(setup->config, &section, ops, &diag);
	log_warnings(setup->config);
	return err;
}

enum exit_code setup_count(const struct arguments *arguments, struct setup *setup, const char *type)
{
	struct agent_options *options = &setup->counting;
	uint64_t duration_ns = arguments->duration_ns;
	int err;

	if (setup_replace_exporters(setup, type, arguments))
		return EXIT_INTERNAL;
	options->config = setup->config;
	options->set = &setup->set;
	options->is_once = true;
	options->is_filter = true;
	agent_hold_pipe(arguments->command);
	if (arguments->is_alone) {
		agent_block_signals(); /* none ends us before the cgroup is removed */
		err = scope_new(&setup->scope);
		if (err)
			return err == -EACCES || err == -EPERM || err == -EROFS ? EXIT_RIGHTS :
			       EXIT_UNAVAILABLE;
		options->scope = setup->scope;
	}
	err = agent_new(options, &setup->agent);
	if (err)
		return setup_exit_code(setup, err);
	if (!duration_ns && !arguments->command && !arguments->interval_ns &&
	    arguments->name != COMMAND_EVENTS)
		duration_ns = (arguments->name & (COMMAND_LIST | COMMAND_DUMP) ? 1 : 10) * NS_PER_S;
	if (duration_ns >= WAIT_NS && !arguments->command && !arguments->interval_ns &&
	    isatty(STDERR_FILENO)) {
		agent_block_signals(); /* from now on, the end of the wait */
		fprintf(stderr, "counting for %g s; Ctrl-C ends it sooner\n", (double)duration_ns / NS_PER_S);
	}
	err = agent_once(setup->agent, duration_ns, arguments->command, &setup->status);
	if (err < 0)
		return err == -EIO ? EXIT_OUTPUT : EXIT_INTERNAL;
	return (enum exit_code)err;
}
