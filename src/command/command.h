/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The commands of bpfpush: one row and one file each. Exit codes as sysexits(3) has them, which the unit's
 * RestartPreventExitStatus= relies on.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agent/collector-set.h"
#include "command/arguments.h"
#include "config/config.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_USE = 64,	       /* the command line is wrong */
	EXIT_UNAVAILABLE = 69, /* this kernel cannot do it */
	EXIT_INTERNAL = 70,    /* out of memory and the like */
	EXIT_OUTPUT = 74,      /* the output could not be written */
	EXIT_RIGHTS = 77,
	EXIT_SETTINGS = 78, /* configuration, descriptors, objects */
};

int command_run(const struct arguments *arguments);
int command_check(const struct arguments *arguments);
int command_list(const struct arguments *arguments);
int command_once(const struct arguments *arguments);
int command_dump(const struct arguments *arguments);

/* What most commands begin with: the configuration and the collectors that it and names ask for. */
struct setup {
	struct config *config;
	struct collector_set set;
};

/*
 * Every mistake is printed to stderr, one a line. EXIT_OK, EXIT_SETTINGS after mistakes, EXIT_INTERNAL.
 * names: NULL-terminated, or NULL.
 */
enum exit_code setup_open(const struct arguments *arguments, const char *const *names, struct setup *ret_setup);
void setup_done(struct setup *setup);
/* What -errno of agent_new() or collector_set_start() ends with; a missing right or feature is explained. */
enum exit_code setup_exit_code(int err);

/*
 * An exporter that is not in the configuration: its defaults, and path and rows where they are not NULL and
 * it has such options. -ENOENT: no such type, -ENOMEM.
 */
int setup_make_exporter(const char *type, const char *path, const char *rows, struct config_exporter *ret_exporter);
void setup_free_exporter(struct config_exporter *exporter);
