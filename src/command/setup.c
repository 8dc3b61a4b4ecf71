/* SPDX-License-Identifier: Apache-2.0 */
#include "command/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "util/log.h"
#include "util/plural.h"

extern char **environ;

static const int log_levels[] = { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* --collector-directory goes before the configuration's. */
static int prepend_directory(struct config *config, const char *directory)
{
	struct setting_list *list = &config->agent.collector_directories;
	char **items = reallocarray(list->items, list->n_items + 1, sizeof(*items));
	char *copy = strdup(directory);

	if (items)
		list->items = items;
	if (!items || !copy) {
		free(copy);
		return -ENOMEM;
	}
	memmove(items + 1, items, list->n_items * sizeof(*items));
	items[0] = copy;
	list->n_items++;
	return 0;
}

/*
 * Plain lines for a person or a script; in the journal a message each, and an event that counts
 * them.
 */
static void report_mistakes(struct diag *diag)
{
	const char *lines = buf_text(&diag->text);

	if (!log_is_journal()) {
		fputs(lines, stderr);
		return;
	}
	log_lines(LOG_LEVEL_ERROR, NULL, lines);
	log_event(LOG_LEVEL_ERROR, LOG_ID_CONFIG_REJECTED, NULL, "not started: %u mistake%s in the configuration and the collectors",
		  diag->n_errors, plural(diag->n_errors));
}

enum exit_code setup_open(const struct arguments *arguments, char *const *names, struct setup *ret_setup)
{
	struct config_source source = { .path = arguments->config_path, .environment = (const char *const *)environ };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct setup setup = { 0 };
	int err = config_read(&source, &diag, &setup.config);

	if (!err && arguments->collector_directory)
		err = prepend_directory(setup.config, arguments->collector_directory);
	if (!err) {
		log_set_level(arguments->log_level >= 0 ? (enum log_level)arguments->log_level :
							  (enum log_level)log_levels[setup.config->agent.log_level]);
		if (setup.config->warnings.n_errors)
			log_lines(LOG_LEVEL_WARNING, NULL, buf_text(&setup.config->warnings.text));
		err = collector_set_open(setup.config, (const char *const *)names, agent_boot_ns(), &diag, &setup.set);
	}
	if (!err && !diag.n_errors && !setup.set.n_shown)
		diag_add(&diag, "bpfpush", 0, "no collector is enabled, so nothing would be counted; enable one in [agent] "
					      "collectors or a [collector NAME] section");
	if (diag.n_errors) {
		report_mistakes(&diag);
		setup_done(&setup);
		return EXIT_SETTINGS;
	}
	if (err) {
		log_error("cannot start: %s", strerror(-err));
		setup_done(&setup);
		return EXIT_INTERNAL;
	}
	*ret_setup = setup;
	return EXIT_OK;
}

void setup_done(struct setup *setup)
{
	collector_set_done(&setup->set);
	config_free(setup->config);
	*setup = (struct setup){ 0 };
}

enum exit_code setup_exit_code(int err)
{
	if (!err)
		return EXIT_OK;
	if (err == -ECANCELED)
		return EXIT_OUTPUT;
	if (access("/sys/kernel/btf/vmlinux", F_OK)) {
		log_error("this kernel has no type information (/sys/kernel/btf/vmlinux): use one built with "
			  "CONFIG_DEBUG_INFO_BTF, like the kernels of Debian, Fedora and RHEL");
		return EXIT_UNAVAILABLE;
	}
	/* For root, EACCES means that the verifier refused a program. */
	if (err == -EPERM || (err == -EACCES && geteuid()))
		return EXIT_RIGHTS;
	/* These pass, so the service is started again. */
	if (err == -ENOMEM || err == -EMFILE || err == -ENFILE) {
		log_error("cannot start: %s", strerror(-err));
		return EXIT_INTERNAL;
	}
	log_error("no collector runs, so nothing can be counted");
	return EXIT_UNAVAILABLE;
}

/* A setting that this type of exporter does not have is left out. */
static int set_option(const struct config_exporter *exporter, const char *key, const char *value)
{
	const struct exporter_ops *ops = exporter->ops;
	const struct assignment setting = { key, value, "command line", 0 };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	if (!value || !setting_table_find(ops->settings, key))
		return 0;
	return setting_table_set(ops->settings, exporter->options, &setting, &diag);
}

/* No file mentions an exporter that the command line makes. */
static bool is_never_set(void *user, const char *key)
{
	return false;
}

int setup_make_exporter(const char *type, const char *path, const char *rows, struct config_exporter *ret_exporter)
{
	struct config_exporter exporter = { .name = type, .ops = exporter_find(type), .path = "command line" };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	int err;

	if (!exporter.ops)
		return -ENOENT;
	err = setting_table_new(exporter.ops->settings, &exporter.options);
	if (err)
		return err;
	if ( exporter.ops->environment)
		err = exporter.ops->environment(exporter.options, is_never_set, NULL, &diag);
	if (!err && diag.n_errors)
		log_lines(LOG_LEVEL_WARNING, NULL, buf_text(&diag.text));
	if (!err)
		err = set_option(&exporter, "path", path);
	if (!err)
		err = set_option(&exporter, "rows", rows);
	if (err) {
		setup_free_exporter(&exporter);
		return err;
	}
	*ret_exporter = exporter;
	return 0;
}

void setup_free_exporter(struct config_exporter *exporter)
{
	if (exporter->ops)
		setting_table_free(exporter->ops->settings, exporter->options);
	exporter->options = NULL;
}
