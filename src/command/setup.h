/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What most commands begin with: the configuration, and the collectors that it or the command line
 * asks for.
 */

#include "agent/agent.h"
#include "command/command.h"
#include "view/question.h"

struct setup {
	struct config *config;
	struct collector_set set;
	struct question question; /* of the command line */
	struct scope *scope;	  /* of a command that is counted alone, from setup_count() on */
	struct agent *agent;	  /* likewise */
	int status;		  /* after setup_count(): of the command */
	/* for setup_count(): the interval, whether it has self, the view; else zeros */
	struct agent_options counting;
};

/*
 * names: the collectors that the command line names, ended by NULL; for a command that takes a
 * question, metrics, too. Every mistake is printed to stderr, one a line. EXIT_OK; EXIT_SETTINGS
 * after mistakes, EXIT_USE after those of options; EXIT_INTERNAL.
 */
enum exit_code setup_open(const struct arguments *arguments, char *const *names,
			  struct setup *ret_setup);
/*
 * Only the configuration, with what the command line adds. Every mistake goes to diag. -ENOMEM,
 * -EINVAL.
 */
int setup_read(const struct arguments *arguments, struct diag *diag, struct config **ret_config);
/* As setup_open() does. */
void setup_set_log_level(const struct arguments *arguments, const struct config *config);
void setup_done(struct setup *setup);
/*
 * The exit code for -errno of agent_new(); a missing privilege or feature is explained in the log.
 */
enum exit_code setup_exit_code(const struct setup *setup, int err);

/*
 * In place of the configuration's exporters: one of this type with its defaults and the
 * environment, and with what the arguments say of path, limit, sort and histogram, where it has
 * such settings. type NULL: none. -ENOMEM.
 */
int setup_replace_exporters(struct setup *setup, const char *type,
			    const struct arguments *arguments);

/*
 * setup_replace_exporters(), and then counts for as long as the arguments say, or while their
 * command runs, and pushes once. Without either, 10 seconds for a person who reads the numbers, one
 * for list and dump, and with --interval until a signal. 126 or 127 if the command cannot be run.
 */
enum exit_code setup_count(const struct arguments *arguments, struct setup *setup,
			   const char *type);
