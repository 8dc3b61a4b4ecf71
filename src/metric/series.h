/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The series of a metric: found or made by their attributes, limited in number, and ended when
 * nothing feeds them any more.
 *
 * Several sources may feed one series (two cgroups of one unit, many slots of a table, a counter of
 * the agent's own): each adds its growth, so the total never falls when a source ends. Over the
 * limit, numbers go to one series with the single attribute otel.metric.overflow=true
 * (OpenTelemetry SDK specification, "Cardinality limits"), so none is lost.
 *
 * The rhythm of one collection:  series_begin(), any number of series_add_*(), series_end().
 */

#include "metric/metric.h"

#define SERIES_LIMIT_DEFAULT 2000

/* The caller sets all other members of *metric before; what they point to outlives the series. */
void metric_init_series(struct metric *metric, size_t limit);
void metric_done_series(struct metric *metric);

/*
 * The series of metric with these attributes (sorted here), made if it is new: its start_ns is then
 * start_ns, the time of the collection before. The caller becomes one of its sources. -ENOMEM.
 */
int series_get(struct metric *metric, struct attributes *attributes, uint64_t start_ns,
	       struct series **ret_series);
/* Is there room for one more series besides the overflow series? */
bool series_has_room(const struct metric *metric);
/* The overflow series of metric, for numbers that a source counted without a key. */
int series_get_overflow(struct metric *metric, uint64_t start_ns, struct series **ret_series);
/* The caller feeds it no longer. Takes NULL. */
void series_put(struct series *series);

void series_begin(struct metric *metric); /* forgets deltas; gauges that are not held begin at 0 */
void series_add(struct series *series, uint64_t grown); /* sum: to total and delta; gauge: to the value */
void series_add_histogram(struct series *series, uint64_t sum, const uint64_t *bucket); /* grown by */
void series_end(struct metric *metric); /* settles is_present; frees series that have ended; ends is_held */
