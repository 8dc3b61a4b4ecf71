/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The differences between the line formats of StatsD and Graphite, as a table:
 *
 *     plain      path:5|c                               every StatsD server
 *     graphite   path;tag=value;tag=value:5|c           etsy's statsd, Graphite's tags
 *     dogstatsd  path:5|c|#tag:value,tag:value          Datadog, statsd_exporter, the Collector
 *     influx     path,tag=value,tag=value:5|c           telegraf, statsd_exporter
 *     dotted     path 5 1700000000                      carbon and whatever reads its plaintext
 *                                                       protocol
 *     tagged     path;tag=value;tag=value 5 1700000000  the same, with Graphite's tags
 *
 * In a path, letters, digits, "_" and "-" stay, and the dots between levels. In a tag's value, a
 * byte stays unless it has a meaning of its own for some receiver, or in the path of a file for
 * receivers that name files after series. Every other UTF-8 character becomes "_". docs/statsd.md
 * says what receivers do to names.
 */

#include <stdbool.h>

struct dialect {
	const char *name;
	const char *default_template;
	/* of a tag's value, besides letters, digits, "_", "-" and "."; NULL: no tags */
	const char *value_keeps;
	char tag_equals, tag_next;
	const char *tag_first;
	bool is_tags_last; /* after the value, not after the path */
	bool is_graphite;  /* "value time", not ":value|type" */
};

enum dialect_id { DIALECT_PLAIN,
		  DIALECT_GRAPHITE,
		  DIALECT_DOGSTATSD,
		  DIALECT_INFLUX,
		  DIALECT_DOTTED,
		  DIALECT_TAGGED,
		  DIALECTS };

extern const struct dialect dialect_table[DIALECTS];
/* The choices of dialect = for either exporter, ended by NULL, in the order of the table. */
extern const char *const dialect_statsd_names[], *const dialect_graphite_names[];
