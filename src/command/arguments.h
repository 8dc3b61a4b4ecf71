/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command line after the command's name. */

#include "util/setting-table.h"

/* One bit for each. */
enum command_name {
	COMMAND_RUN = 1,
	COMMAND_STATUS = 2,
	COMMAND_ONCE = 4,
	COMMAND_CHECK = 8,
	COMMAND_LIST = 16,
	COMMAND_DUMP = 32,
	COMMAND_TOP = 64,
	COMMAND_REPORT = 128,
	COMMAND_ALLOW = 256,
	COMMAND_RELOAD = 512,
	COMMAND_EVENTS = 1024,
	COMMAND_ASKS = COMMAND_ONCE | COMMAND_TOP,
	/* for a while */
	COMMAND_COUNTS = COMMAND_ONCE | COMMAND_LIST | COMMAND_DUMP | COMMAND_REPORT,
	COMMAND_PROBES = COMMAND_RUN | COMMAND_COUNTS | COMMAND_TOP | COMMAND_EVENTS,
	/* what a command does, alone */
	COMMAND_ALONE = COMMAND_ONCE | COMMAND_REPORT | COMMAND_EVENTS,
	COMMAND_ALL = ~0,
};

struct config;

struct arguments {
	/* NULL: not given. */
	char *config_path;
	char *collector_directory;
	char *output_path;
	char *points_path;
	char *limit; /* a whole number */
	char *sort;
	char *duration_calls; /* of --duration */
	struct setting_list probes, by, where;
	struct setting_list settings; /* COLLECTOR.KEY=VALUE */
	uint64_t interval_ns; /* 0: the configuration's, or of once: none */
	uint64_t duration_ns; /* 0: not given */
	uint64_t count;	      /* of intervals; 0: not given */
	int format;	      /* table, json, bpftrace-json */
	int log_level;	      /* enum log_level, or -1 */
	bool is_per_process, is_whole_machine, is_all, is_histogram, is_heatmap;
	bool is_json, is_available, is_connect, is_help, is_version;
	enum command_name name;
	char **words; /* the other words before "--", ended by NULL; the list is owned */
	size_t n_words;
	char **all;	/* with the program's name, to start it again */
	/* Called when the configuration is read; NULL: nothing. */
	void (*on_config)(const struct arguments *arguments, const struct config *config);
	char **command; /* the words after "--", or NULL */
	bool is_alone;	/* only what the command does is counted */
};

/*
 * argv[0] is the command's name. -EINVAL after a message to stderr. Nothing else is checked after
 * is_help or is_version. argv is borrowed.
 */
int arguments_parse(enum command_name command, int argc, char **argv, struct arguments *arguments);
void arguments_done(struct arguments *arguments);
void arguments_print_options(enum command_name command, FILE *f);
