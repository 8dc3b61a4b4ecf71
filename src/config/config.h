/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The configuration: bpfpush.conf, its drop-ins, and below them the standard OTEL_* variables. The
 * result is one plain structure, and a message with path and line for each mistake.
 *
 * The main file is the first bpfpush/bpfpush.conf in /etc, /run and /usr/lib. The drop-ins are
 * bpfpush/bpfpush.conf.d/NAME.conf in all three, sorted by NAME. If two have the same name, /etc
 * masks /run, and /run masks /usr/lib. A link to /dev/null disables a drop-in. A later setting
 * replaces an earlier one. Lists grow, and an empty value clears them. Except for list items, a key
 * may appear only once per file.
 *
 * Sections: [agent], [resource], [collector NAME], [probe NAME], [metric NAME],
 * [exporter NAME]. Sections and keys that begin
 * with "x-" are ignored, so that other programs can use them.
 */

#include <dirent.h>

#include "collector/label/label.h"
#include "config/resource.h"
#include "export/exporter.h"
#include "util/diag.h"
#include "util/log.h"

#define CONFIG_FILES_MAX 64

/* [collector NAME] or [exporter NAME], of all files together. */
struct config_section {
	const char *kind; /* "collector", "exporter" */
	const char *name;
	bool is_enabled;  /* "enabled = no" leaves it out */
	/*
	 * All but "enabled"; later ones replace earlier ones. Its place is where the section stands
	 * last, for messages; path NULL: on the command line.
	 */
	struct assignments given;
};

struct config_exporter {
	const char *name;
	const struct exporter_ops *ops;
	void *options;	  /* of ops, filled */
	char *names[SIGNALS]; /* of ops and its others */
	/* of its section, or the variable of the environment with line 0, or NULL */
	const char *path;
	unsigned int line;
};

/*
 * What sends one signal of an exporter, and others after it, and its name in *ret_name. NULL: the
 * exporter does not send that signal, or sends it with one before.
 */
const struct exporter_ops *config_exporter_ops(const struct config_exporter *exporter,
					       enum signals signal, const char **ret_name);

struct config_agent {
	uint64_t interval_ns;	      /* from collection to collection, start to start */
	int log_level;		      /* enum log_level */
	uint64_t series_limit;	      /* of all collectors together */
	uint64_t units;		      /* that tables have room for */
	uint64_t memory_limit_bytes;  /* of tables and series; 0: by the machine's memory */
	uint64_t queue_bytes;	      /* of what waits to be sent, of all exporters together */
	uint64_t shutdown_timeout_ns; /* for the last push */
	/*
	 * Searched in this order, before the standard places; the first collector of a name counts.
	 */
	struct setting_list collector_directories;
	struct setting_list collectors; /* names to run; empty: the seven that are on by default */
	struct label_choice names;
	bool self_metrics;	       /* export bpfpush's own */
	/* a hook that cannot be attached makes the start fail; collectors may choose otherwise */
	bool is_strict;
};

struct config {
	struct config_agent agent;
	struct resource resource;
	struct config_section *sections; /* as read, disabled ones too */
	size_t n_sections;
	struct config_exporter *exporters; /* those that are enabled */
	size_t n_exporters;
	/*
	 * Nothing is to be exported: OTEL_SDK_DISABLED=true, OTEL_METRICS_EXPORTER=none, all are
	 * enabled = no.
	 */
	bool is_export_off;
	/*
	 * Ignored OTEL_* variables and doubtful exporters, a line each; nothing is refused for
	 * them.
	 */
	struct diag warnings;
	/* in the order of reading; the strings above are borrowed from them */
	struct ini_file **files;
	size_t n_files;
};

extern const struct setting_table config_agent_settings;

/*
 * Reads all of it, and the environment. Mistakes go to diag; *ret_config is set all the same when
 * memory allows, so that a check can go on to the collectors. -ENOMEM, or -ENOENT where path is
 * absent (in diag too).
 *
 * path: --config FILE: this one alone, no drop-ins; NULL: the standard places. roots: those, the
 * strongest first, ended by NULL; NULL: the build's sysconfdir (/etc), /run and /usr/lib. For
 * tests, which have their os-release there too.
 */
int config_read(const char *path, const char *const *roots, struct diag *diag,
		struct config **ret_config);
/* For scandir(3): is it NAME.conf, and not hidden, as an editor's files are? */
int config_is_file(const struct dirent *entry);
/* The section of this kind and name, or NULL. */
const struct config_section *config_find_section(const struct config *config, const char *kind,
						 const char *name);
/*
 * Adds a [probe] section as the command line has it, "[MEASURE] HOOK [by VALUE, VALUE] [show VALUE]
 * [only CONDITION]", and names it after its hook. Its line is 0. is_by_unit: also by unit. Mistakes
 * go to diag. -ENOMEM.
 */
int config_add_probe(struct config *config, const char *text, bool is_by_unit, struct diag *diag);
/*
 * Where a file sets key of [agent] to a text that contains word: its path and line, the last one if
 * there are several. NULL: nowhere, so it is from the command line or a default.
 */
const char *config_find_place(const struct config *config, const char *key, const char *word,
			      unsigned int *ret_line);
/*
 * Adds an exporter, unless its section is not enabled, and checks it. The section's name and path
 * are borrowed, its settings are not kept. Mistakes go to diag. -ENOMEM.
 */
int config_add_exporter(struct config *config, const struct config_section *section,
			const struct exporter_ops *ops, struct diag *diag);
/* Warns of exporters that fill the journal if a service has them. */
void config_warn_of_output(struct config *config);
void config_free_exporters(struct config *config);
struct config *config_free(struct config *config);

DEFINE_CLEANUP(struct config *, config_free);
