/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command line after the command's name. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTION_SET(option) (1u << (option))

enum option_name { OPT_CONFIG,
		   OPT_DIRECTORY,
		   OPT_LOG_LEVEL,
		   OPT_CONSOLE,
		   OPT_INTERVAL,
		   OPT_FORMAT,
		   OPT_OUTPUT,
		   OPT_FOR,
		   OPT_JSON,
		   OPT_CONNECT,
		   OPT_ROWS,
		   OPT_HELP,
		   OPT_VERSION };

#define OPTIONS_ALL                                                                                          \
	(OPTION_SET(OPT_CONFIG) | OPTION_SET(OPT_DIRECTORY) | OPTION_SET(OPT_LOG_LEVEL) |                    \
	 OPTION_SET(OPT_HELP) | OPTION_SET(OPT_VERSION))

struct arguments {
	/* NULL: not given. */
	char *config_path;
	char *collector_directory;
	char *format;
	char *output_path;
	char *rows; /* a whole number */
	uint64_t interval_ns; /* 0: the configuration's */
	uint64_t duration_ns; /* 0: not given */
	int log_level;	      /* enum log_level, or -1 */
	bool is_console, is_json, is_connect, is_help, is_version;
	char **words; /* the other words before "--", ended by NULL */
	size_t n_words;
	char **all;	/* with the program's name, to start it again */
	char **command; /* the words after "--", or NULL */
};

/*
 * argv[0] is the command's name; options is a set of OPTION_SET() that it knows. -EINVAL after a
 * message to stderr. Nothing else is checked after is_help or is_version. argv is borrowed and
 * reordered.
 */
int arguments_parse(const char *command, unsigned int options, int argc, char **argv, struct arguments *arguments);
void arguments_done(struct arguments *arguments);
void arguments_print_options(unsigned int options, FILE *f);
