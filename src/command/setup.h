/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What most commands begin with: the configuration, and the collectors that it or the command line
 * asks for.
 */

#include "agent/collector-set.h"
#include "command/arguments.h"
#include "command/command.h"
#include "config/config.h"

struct setup {
	struct config *config;
	struct collector_set set;
};

/*
 * names: the collectors that the command line names, ended by NULL. Every mistake is printed to
 * stderr, one a line. EXIT_OK, EXIT_SETTINGS after mistakes, EXIT_INTERNAL.
 */
enum exit_code setup_open(const struct arguments *arguments, char *const *names, struct setup *ret_setup);
/* As setup_open() does. */
void setup_set_log_level(const struct arguments *arguments, const struct config *config);
void setup_done(struct setup *setup);
/*
 * The exit code for -errno of agent_new(); a missing privilege or feature is explained in the log.
 */
enum exit_code setup_exit_code(int err);

/*
 * Adds an exporter that the configuration does not have: its defaults and the environment, with
 * path and rows if they are not NULL and it has such settings. NULL: no memory.
 */
const struct config_exporter *setup_add_exporter(struct setup *setup, const char *type, const char *path,
						 const char *rows);
