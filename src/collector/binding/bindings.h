/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bindings of a collector, from the descriptor to the end. */

#include "collector/binding/binding.h"
#include "metric/state.h"

/*
 * Lays the descriptor over the object. A mismatch goes to .diag with the descriptor's line; it is
 * left out, and the rest goes on being checked. -ENOMEM.
 */
int bindings_make(struct collector *collector);
/* Settings, labels, attributes and programs, once the bindings are made. */
void bindings_check(struct collector *collector);
/* Before a collector's maps are let go. */
void bindings_done(struct collector *collector);

/*
 * rows.c: the rows, from the start on.
 */

/* After loading, before attaching: the maps' file descriptors, and new rows for them. -errno. */
int bindings_open(struct collector *collector, const struct bpf_object *object);
/*
 * Reads the map, the first time for the baseline. On failure (-errno) its gauges are held, and the
 * rows are not to be computed (is_broken).
 */
int binding_read(struct binding *binding, bool is_walk_broken);
/* Gives the growth to the series; then deletes keys from the map (sweep_delete()). */
int binding_compute(struct binding *binding, uint64_t previous_ns);
/*
 * Removes keys whose owner is gone from the map. Returns when there is more to do (table/sweep.h).
 */
uint64_t binding_sweep(struct binding *binding, struct sweep_turn *turn);
/* Lets the rows and the map's memory go. */
void binding_close(struct binding *binding);
/* Its rows, for a process that adopts the map. */
void binding_save(const struct binding *binding, struct store *out);
/*
 * The rows go on: the next reading is not for the baseline, or it is and what past holds then is
 * growth. past is owned; NULL: the map is adopted. -ESTALE: they are of another shape; -EINVAL;
 * -ENOMEM: there are none.
 */
int binding_restore(struct binding *binding, uint64_t shape, struct stored *in,
		    const struct restored *restored, struct reader *past);
