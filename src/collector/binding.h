/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a collector is made of once its descriptor has been laid over its object: for each map that is
 * exported, which numbers of its values are which metrics and which members of its keys which attributes.
 * Only collector*.c include this.
 */

#include "collector/collector.h"
#include "collector/descriptor.h"
#include "collector/program.h"
#include "collector/shape.h"
#include "collector/source.h"
#include "collector/setting.h"
#include "metric/delta.h"

struct bpf_map;
struct bpf_object;

/* A member of a map's key, and the attribute that it becomes. */
struct binding_label {
	const struct label_type *type;
	char *attribute; /* its name; NULL: the member only fills a gap */
};

/* One exported map. Owns what is known of it: shapes, runs, rows and metrics. */
struct binding {
	const char *map; /* its name; the descriptor's string */
	unsigned int line; /* of the first section that exports it */
	struct shape key, value;
	struct binding_label *labels; /* of each field of the key; NULL: the map does not fit */
	struct source source;	      /* its runs are the binding's */
	struct delta delta;	      /* its metrics are the binding's; their user is a descriptor_metric */
	struct rows *rows;			    /* from the start on */
	bool is_broken;				    /* the last reading failed */
	const struct collector *collector;
};

/* For binding*.c: what they work on, and where complaints go. */
struct binder {
	struct collector *collector;
	struct diag *diag;
};

#define complain(binder, line, ...) diag_add((binder)->diag, (binder)->collector->conf_path, line, __VA_ARGS__)
#define complain_of_unknown(binder, line, what, word, items, n)                                                      \
	complain_of_none((binder)->diag, (binder)->collector->conf_path, line, what, word, items, n, sizeof(*(items)))
/* word is the name of none of the n items; each of them, item_bytes long, begins with a pointer to its name. */
void complain_of_none(struct diag *diag, const char *path, unsigned int line, const char *what, const char *word,
		      const void *items, size_t n, size_t item_bytes);

/* NULL: there is none. */
struct binding *binding_find(const struct collector *collector, const char *map);

/*
 * Lays the descriptor over the object. A mismatch goes to diag with the descriptor's line; it is left out, and
 * the rest goes on being checked. -ENOMEM.
 */
int bindings_make(struct collector *collector, struct diag *diag);
/* Settings, labels, attributes and programs, once the bindings are made. -ENOMEM. */
int bindings_check(struct collector *collector, struct diag *diag);
/* Before a collector's maps are let go. */
void bindings_done(struct collector *collector);

/*
 * binding-rows.c: the rows, from the start on.
 */

/* After loading, before attaching: the maps' file descriptors, and new rows for them. -errno. */
int bindings_open(struct collector *collector, const struct bpf_object *object);
/* After the iterators' first run: takes the baseline of what they alone count. -errno. */
int bindings_take_baseline(struct collector *collector);
/* Reads the map. On failure (-errno) its gauges are held, and the rows are not to be computed (is_broken). */
int binding_read(struct binding *binding);
/* Removes keys that have long not grown and whose owner is gone from the map. */
void binding_remove_gone(struct binding *binding);
/* Lets the rows and the map's memory go. */
void binding_close(struct binding *binding);
