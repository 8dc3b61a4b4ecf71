/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The series of a metric: found or made by their attributes, charged to a budget, and ended when
 * nothing feeds them any more.
 *
 * Several sources may feed one series (two cgroups of one unit, many keys of a table, a counter of
 * the agent's own): each adds its growth, so the total never falls when a source ends. Without room
 * in the budget, numbers go to an overflow series with the attributes otel.metric.overflow=true
 * (OpenTelemetry SDK specification, "Cardinality limits") and bpfpush.overflow.reason, so none is
 * lost. The overflow series themselves need no room.
 *
 * The rhythm of one collection:  series_begin(), any number of series_add_*(), series_end().
 */

#include "metric/metric.h"

/*
 * The caller sets all other members of *metric before; what they point to, and the budget, outlives
 * the series. NULL: without limit.
 */
void metric_init_series(struct metric *metric, struct budget *budget);
void metric_done_series(struct metric *metric);

/*
 * The series of metric with these attributes (sorted here), made if it is new: its start_ns is then
 * start_ns, the time of the collection before. The caller becomes one of its sources. -ENOMEM.
 */
int series_get(struct metric *metric, struct attributes *attributes, uint64_t start_ns,
	       struct series **ret_series);
/* An overflow series of metric, for numbers that a source counted without a key: OVERFLOW_TABLE. */
int series_get_overflow(struct metric *metric, enum overflow reason, uint64_t start_ns,
			struct series **ret_series);
/* One more source feeds it. */
void series_take(struct series *series);
/*
 * What an earlier process knew of a series, which goes on: its total and its start. reason: of an
 * overflow series, else OVERFLOWS. The caller becomes a source. *ret_series is NULL if the budget
 * has no room for it. -ENOMEM.
 */
int series_restore(struct metric *metric, struct attributes *attributes, enum overflow reason,
		   uint64_t start_ns, const struct numbers *total, struct series **ret_series);
/*
 * The caller no longer feeds it. A series that nothing feeds makes room for others at once. Takes
 * NULL.
 */
void series_put(struct series *series);

/* Adds a sum, and a count for each bucket that the metric has. */
void numbers_add(const struct metric *metric, struct numbers *numbers, uint64_t sum,
		 const uint64_t *bucket);
void series_begin(struct metric *metric); /* forgets deltas; gauges that are not held begin at 0 */
/* sum: to total and delta; gauge: to the value */
void series_add(struct series *series, uint64_t grown);
/* grown by */
void series_add_histogram(struct series *series, uint64_t sum, const uint64_t *bucket);
/* Settles is_present and is_ended, forgets what had ended before, and ends is_held. */
void series_end(struct metric *metric);
