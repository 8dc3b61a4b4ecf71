/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a collector is made of once its descriptor has been laid over its object: for each map that is
 * exported, which numbers of its values are which metrics and which members of its keys which attributes.
 * Only collector*.c include this.
 */

#include "collector/collector.h"
#include "collector/descriptor.h"
#include "collector/shape.h"
#include "collector/source.h"
#include "collector/flat/sweep.h"
#include "collector/label/key.h"
#include "metric/delta.h"
#include "metric/snapshot.h"

/* One exported map. Owns what is known of it: shapes, runs, rows and metrics. */
struct binding {
	const char *map; /* its name; the descriptor's string */
	const struct descriptor_metric *first; /* the first section that exports it */
	struct shape key, value;
	struct key_label *labels; /* of each field of the key; NULL: the map does not fit */
	const struct field *bucket;   /* of the key: which bucket a value counts in; NULL: none says it */
	struct source source;	      /* its runs are the binding's */
	struct delta delta;	      /* its metrics are the binding's; their user is a descriptor_metric */
	struct source *past;	      /* to be read once more, before source is read first (adopt/adopt.h); or NULL */
	struct rows *rows;			    /* from the start on */
	struct sweep sweep;
	uint64_t now_ns; /* of the sweep's turn */
	uint64_t expire_ns; /* a key that does not grow for so long ends; 0: none */
	struct brief *brief;			    /* brief processes of the last reading that are told apart */
	size_t n_brief;
	bool is_broken;				    /* the last reading failed */
	bool has_baseline;			    /* a reading was whole */
	bool has_zero;				    /* one of its metrics has */
	const struct collector *collector;
};

/* For binding*.c: of the descriptor's line. */
#define complain(collector, line, ...) diag_add((collector)->diag, (collector)->conf_path, line, __VA_ARGS__)
#define complain_of_unknown(collector, line, what, word, items, n)                                                   \
	diag_add_unknown((collector)->diag, (collector)->conf_path, line, what, word, items, n)

/* NULL: there is none. */
struct binding *binding_find(const struct collector *collector, const char *map);
/* The sum of the section [metric place]; NULL: it has none. */
const struct delta_metric *binding_find_sum(const struct collector *collector, const char *place);
/* The same as binding_find() among all collectors that share the object. */
struct binding *binding_of(const struct object *object, const char *map);

/* The key ("label") or the value ("metric") has no such member. */
void binding_complain_of_member(const struct binding *binding, const char *section, unsigned int line,
				const char *member);
/* The object has no such map. A flat table is one. */
void collector_complain_of_map(const struct collector *collector, unsigned int line, const char *map);

/*
 * Lays the descriptor over the object. A mismatch goes to .diag with the descriptor's line; it is left out, and
 * the rest goes on being checked. -ENOMEM.
 */
int bindings_make(struct collector *collector);
/* Settings, labels, attributes and programs, once the bindings are made. */
void bindings_check(struct collector *collector);
/* Before a collector's maps are let go. */
void bindings_done(struct collector *collector);

/*
 * binding-rows.c: the rows, from the start on.
 */

/* After loading, before attaching: the maps' file descriptors, and new rows for them. -errno. */
int bindings_open(struct collector *collector, const struct bpf_object *object);
/*
 * Reads the map, the first time for the baseline. On failure (-errno) its gauges are held, and the rows are not to be
 * computed (is_broken).
 */
int binding_read(struct binding *binding, bool is_walk_broken);
/* Gives the growth to the series; then deletes keys from the map (sweep_delete()). */
int binding_compute(struct binding *binding, uint64_t previous_ns);
/* Removes keys whose owner is gone from the map. Returns when there is more to do (flat/sweep.h). */
uint64_t binding_sweep(struct binding *binding, struct sweep_turn *turn);
/* Lets the rows and the map's memory go. */
void binding_close(struct binding *binding);
/* Its rows, for a process that adopts the map. */
void binding_save(const struct binding *binding, struct store *out);
/*
 * The rows go on: the next reading is not for the baseline, or it is and what past holds then is growth. past is owned;
 * NULL: the map is adopted. -ESTALE: they are of another shape; -EINVAL; -ENOMEM: there are none.
 */
int binding_restore(struct binding *binding, uint64_t shape, struct stored *in, const struct restored *restored,
		    struct source *past);

/*
 * collector.c
 */

/*
 * What the object's collectors say of its programs; with is_start also which they want now: PROGRAM_WAITING, or
 * PROGRAM_OFF.
 */
void programs_choose(struct object *object, bool is_start);

/*
 * size.c: how large the object's maps are.
 */

/* Gives an opened object's maps their sizes, for object->units. Returns the bytes that the tables will take. */
uint64_t sizes_set(const struct object *object, struct bpf_object *bpf);
