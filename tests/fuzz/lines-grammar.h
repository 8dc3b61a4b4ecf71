/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The lines of StatsD and Graphite as a receiver reads them, and stricter: nothing but what every receiver of the
 * dialect takes for the same. Written from the formats, with none of the renderer's code.
 *
 *     line     = name ":" value "|" type ["|@" rate]       StatsD; dogstatsd's tags stand behind all of it
 *     line     = name " " ["-"] value " " time             Graphite
 *     name     = level *("." level) tags
 *     value    = whole ["." digits]                        no sign, no exponent; of a counter: whole
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/lines/dialect.h"

#define GRAMMAR_TAGS_MAX 64

struct grammar_text {
	const char *at; /* no NUL behind it */
	size_t size;
};

enum grammar_type { GRAMMAR_COUNTER,
		    GRAMMAR_GAUGE,
		    GRAMMAR_TIMER,
		    GRAMMAR_DISTRIBUTION,
		    GRAMMAR_PLAIN }; /* Graphite's, which have no type */

struct grammar_line {
	struct grammar_text path;
	struct grammar_tag {
		struct grammar_text name, value;
	} tags[GRAMMAR_TAGS_MAX]; /* in the order of the line */
	unsigned int n_tags;
	bool is_negative;
	struct grammar_text value; /* behind its sign */
	enum grammar_type type;
	struct grammar_text rate; /* of size 0: none */
	uint64_t time_s;	  /* GRAMMAR_PLAIN */
};

/* NULL; or what is wrong with the line, which has no newline. */
const char *grammar_parse(enum dialect_id dialect, struct grammar_text text, struct grammar_line *ret_line);
/* What stands before the first byte of stop, cut off from *text together with it; all of it where there is none. */
struct grammar_text grammar_cut(struct grammar_text *text, char stop);
bool grammar_is(struct grammar_text text, const char *what);
