/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/exporter.h"

/*
 * The options of an exporter, in the way of the configuration: table, environment, check. words: KEY=VALUE, ended by
 * NULL, are cut in two.
 */
static inline void *read_options(const struct exporter_ops *ops, char **words)
{
	void *options = calloc(1, ops->settings->size_bytes);
	struct assignments given = { .path = "argument" };
	struct assignment settings[64];
	struct diag diag = DIAG_INIT;

	if (!options || setting_table_init(ops->settings, options) < 0)
		abort();
	given.items = settings;
	for (; words[given.n]; given.n++) {
		char *equals = strchr(words[given.n], '=');

		*equals = '\0';
		settings[given.n] = (struct assignment){ words[given.n], equals + 1, "argument", 0 };
		if (given.n + 1 == ARRAY_SIZE(settings) ||
		    setting_table_set(ops->settings, options, &settings[given.n], &diag) < 0)
			abort();
	}
	ops->environment(options, &given, &diag);
	ops->check(options, &given, &diag);
	if (diag.n_errors) {
		fputs(buf_text(&diag.text), stderr);
		exit(2);
	}
	diag_done(&diag);
	return options;
}
