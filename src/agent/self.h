/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The agent's numbers about itself, exported like all others: what its programs cost and miss, how
 * full its maps are, and the fate of its points.
 */

#include "agent/collector-set.h"
#include "export/exporter.h"

struct self;

/*
 * Everything is borrowed and outlives it. is_brief: only what programs have missed, and only of those that have.
 * -ENOMEM.
 */
int self_new(struct collector_set *set, struct exporter *const *exporters, size_t n_exporters, bool is_brief,
	     struct self **ret_self);
struct self *self_free(struct self *self);

/*
 * collection_ns: how long the collectors' part of this collection took. previous_ns: Unix time of
 * the collection before, or of the start.
 */
void self_collect(struct self *self, uint64_t collection_ns, uint64_t previous_ns);
/*
 * Ends all series; the next collection begins new ones, which hold what has grown since the last.
 */
void self_restart(struct self *self);
struct metric *self_metrics(struct self *self, size_t *ret_n);

DEFINE_CLEANUP(struct self *, self_free);
