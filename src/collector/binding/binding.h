/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an exported map is once the descriptor has been laid over the object: which numbers of its
 * values are which metrics, and which members of its keys which attributes. Only the files of
 * collector/ include this.
 */

#include "collector/parts.h"
#include "collector/shape.h"
#include "collector/table/sweep.h"
#include "collector/reader/reader.h"
#include "metric/delta.h"

/* One exported map. Owns what is known of it: shapes, runs, rows and metrics. */
struct binding {
	const char *map; /* its name; the descriptor's string */
	const struct descriptor_metric *first; /* the first section that exports it */
	struct shape key, value;
	struct key_label *labels; /* of each field of the key; NULL: the map does not fit */
	struct event_source *event; /* NULL: its records are not events */
	/* of the key: which bucket a value counts in; NULL: none says it */
	const struct field *bucket;
	struct reader reader;	      /* its runs are the binding's */
	/* its metrics are the binding's; their user is a descriptor_metric */
	struct delta delta;
	/* to be read once more, before reader reads first (adopt/adopt.h); or NULL */
	struct reader *past;
	struct rows *rows;			    /* from the start on */
	struct sweep sweep;
	uint64_t now_ns; /* of the sweep's turn */
	uint64_t expire_ns; /* a key that does not grow for so long ends; 0: none */
	/* brief processes of the last reading that are told apart */
	struct brief *brief;
	size_t n_brief;
	bool is_broken;				    /* the last reading failed */
	bool has_baseline;			    /* a reading was whole */
	bool has_zero;				    /* one of its metrics has */
	const struct collector *collector;
};

/* Of the descriptor's line. */
#define complain(collector, line, ...) \
	diag_add((collector)->diag, (collector)->conf_path, line, __VA_ARGS__)
#define complain_of_unknown(collector, line, what, word, items, n)	\
	diag_add_unknown((collector)->diag, (collector)->conf_path, line, what, word, items, n)

/* Has the map a section [event MAP] or [span MAP]? */
bool binding_is_of_event(const struct binding *binding);

/* NULL: there is none. */
struct binding *binding_find(const struct collector *collector, const char *map);
/* The sum of the section [metric place]; NULL: it has none. */
const struct delta_metric *binding_find_sum(const struct collector *collector, const char *place);
/* The same as binding_find() among all collectors that share the object. */
struct binding *binding_of(const struct object *object, const char *map);

/* The key ("label") or the value ("metric") has no such member. */
void binding_complain_of_member(const struct binding *binding, const char *section,
				unsigned int line, const char *member);
/* The object has no such map. A flat table is one. */
void collector_complain_of_map(const struct collector *collector, unsigned int line,
			       const char *map);
