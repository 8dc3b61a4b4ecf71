/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The agent's numbers about itself, on the same way out as all others: what its programs cost and miss,
 * how full its maps are, what became of the points. Each is a place in memory that somebody else counts
 * in; at a collection its growth goes to a series.
 */

#include "agent/collector-set.h"
#include "export/exporter.h"

struct self;

/* Everything is borrowed and outlives it. now_ns: Unix time, the series' start. -ENOMEM. */
int self_new(struct collector_set *set, struct exporter *const *exporters, size_t n_exporters, uint64_t now_ns,
	     struct self **ret_self);
struct self *self_free(struct self *self);

/* collection_ns: how long the collectors' part of this collection took. */
void self_collect(struct self *self, uint64_t collection_ns);
struct metric **self_metrics(struct self *self, size_t *ret_n);

DEFINE_CLEANUP(struct self *, self_free);
