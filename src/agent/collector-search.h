/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds out which collectors are wanted, and where their files are. collector-set.h has the rules.
 */

#include "config/config.h"

#define COLLECTOR_NAME_BYTES 63
#define INFRASTRUCTURE	     "cgroup" /* the collector that is added to whatever runs */

struct collector_search {
	/* in the order of the search; the last one is the installed one */
	const char **directories;
	size_t n_directories;
	struct wanted_collector {
		char *name;
		/* what asks for it: a section's file, a directory, or "bpfpush" */
		const char *path;
		unsigned int line;
	} *wanted; /* each name once */
	size_t n_wanted;
	bool is_named; /* by the command line, and so without those of the configuration */
	char *tree; /* the build tree's bpf/, or NULL */
};

/*
 * names: of the command line, ended by NULL, or NULL: collectors, or metrics (question_is_named()),
 * which mean those that have them. Wrong directories and sections go to diag. -ENOMEM.
 */
int collector_search(const struct config *config, const char *const *names, struct diag *diag,
		     struct collector_search *ret_search);
void collector_search_done(struct collector_search *search);
/* path: NULL where no file or directory asks for it. -ENOMEM. */
int collector_search_add(struct collector_search *search, const char *name, const char *path,
			 unsigned int line);
/*
 * The directory of a collector. One file of it is enough, because opening it reports what is
 * missing. NULL: there is none.
 */
const char *collector_search_find(const struct collector_search *search, const char *name);
/*
 * Adds the collectors of all directories, on or off, to all, which is zero; path is the directory
 * of each. -ENOMEM.
 */
int collector_search_all(const struct collector_search *search, struct collector_search *all);
/* collector: one that collector_search_all() has found. NULL: its descriptor cannot be read. */
struct descriptor *collector_search_describe(const struct wanted_collector *collector);
/* Does a collector of the directories have the metric, whether or not it is wanted? */
bool collector_search_has_metric(const struct collector_search *search, const char *metric);
/*
 * Reports that no directory has a collector of this name, or such a metric, and suggests the
 * nearest name.
 */
void collector_search_report(const struct collector_search *search,
			     const struct wanted_collector *wanted, struct diag *diag);
/* Is it on although nothing names it? */
bool collector_is_default(const struct collector_search *search, const struct config *config,
			  const char *name);
/* Does the configuration say "enabled = no"? */
bool collector_is_disabled(const struct config *config, const char *name);
