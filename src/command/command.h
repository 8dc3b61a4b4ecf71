/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The commands of bpfpush: one row and one file each. Exit codes as sysexits(3) has them, which the
 * unit's RestartPreventExitStatus= relies on.
 */

#include "command/arguments.h"

enum exit_code {
	EXIT_OK = 0,
	/* status: the service runs, and something fails; check --connect: a receiver */
	EXIT_FAILING = 1,
	EXIT_NOT_RUNNING = 3, /* status: no answer */
	EXIT_USE = 64,	       /* the command line is wrong */
	EXIT_UNAVAILABLE = 69, /* this kernel cannot do it */
	EXIT_INTERNAL = 70,    /* out of memory and the like */
	EXIT_OUTPUT = 74,      /* the output could not be written */
	EXIT_RIGHTS = 77,
	EXIT_SETTINGS = 78, /* configuration, descriptors, objects */
};

int command_run(const struct arguments *arguments);
/* Puts drop-ins of the unit in their place. */
int command_allow(const struct arguments *arguments);
int command_check(const struct arguments *arguments);
/* check, and then the service's own opinion, in status.c. */
int command_reload(const struct arguments *arguments);
int command_list(const struct arguments *arguments);
int command_events(const struct arguments *arguments);
int command_once(const struct arguments *arguments);
/* src/report/ has the page. */
int command_report(const struct arguments *arguments);
int command_status(const struct arguments *arguments);
int command_top(const struct arguments *arguments);
int command_dump(const struct arguments *arguments);
