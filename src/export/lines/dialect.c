/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/dialect.h"

#include <stddef.h>

#define UNTAGGED "{host}.{unit}.{metric}.{attributes}"
#define TAGGED	 "{metric}"

const struct dialect dialect_table[DIALECTS] = {
	[DIALECT_PLAIN] = { "plain", UNTAGGED },
	/*
	 * etsy's statsd drops or changes everything else by itself, and would so make two names
	 * one.
	 */
	[DIALECT_GRAPHITE] = { "graphite", TAGGED, "_-.", '=', ';', ";" },
	[DIALECT_DOGSTATSD] = { "dogstatsd", TAGGED, "_-./:", ':', ',', "|#", .is_tags_last = true },
	[DIALECT_INFLUX] = { "influx", TAGGED, "_-./", '=', ',', "," },
	[DIALECT_DOTTED] = { "dotted", UNTAGGED, .is_graphite = true },
	[DIALECT_TAGGED] = { "tagged", TAGGED, "_-.:@+", '=', ';', ";", .is_graphite = true },
};

const char *const dialect_statsd_names[] = { "plain", "graphite", "dogstatsd", "influx", NULL };
const char *const dialect_graphite_names[] = { "dotted", "tagged", NULL };
