/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The data model: a metric says what numbers mean, a series is one metric with one set of
 * attributes.
 *
 * Numbers stay as the kernel counted them, in 64-bit integers ("raw"), or are a whole multiple of
 * that (delta.h). Only an encoder converts them to the metric's unit: value = raw / divisor.
 * Nothing is rounded before that.
 *
 * A series carries both, its total since start_ns and its delta since the last collection, so that
 * an exporter needs no state of its own (OTLP data model, "Temporality"):
 *     cumulative point:  total over (series->start_ns, batch->time_ns]
 *     delta point:       delta over (batch->previous_ns, batch->time_ns]
 *     gauge:             total.sum as of batch->time_ns; of an updowncounter, a cumulative point
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric/attribute.h"
#include "metric/loss.h"
#include "util/index.h"
#include "util/setting-table.h"

enum metric_kind { METRIC_SUM,
		   METRIC_GAUGE,
		   METRIC_HISTOGRAM };

extern const char *const metric_kinds[]; /* "sum", "gauge", "histogram" */

#define HISTOGRAM_BUCKETS_MAX 1024

/*
 * The buckets of a histogram are those of OpenTelemetry's base-2 exponential histogram at one
 * scale:
 *     bucket[0]      values of exactly 0
 *     bucket[i]      values in (base^k, base^(k+1)], k = offset + i - 1, base = 2^(2^-scale), in
 *                    the metric's unit
 * or have explicit bounds:
 *     bucket[i]      raw values above bounds[i-1].upper, and not above bounds[i].upper
 * The last one also holds all larger values.
 */
struct histogram_bound {
	uint64_t upper;
	uint64_t key; /* the last number that says this bucket in a key (delta.h) */
};

struct histogram_layout {
	int32_t scale;
	int32_t offset;
	uint32_t n_buckets;
	bool has_no_sum;	/* it is not known: no exporter shows one */
	const struct histogram_bound *bounds; /* n_buckets - 1, rising; NULL: exponential */
	/*
	 * How many an explicit histogram has: up to first, first + step, … and the last of these;
	 * 0: each one.
	 */
	uint32_t n_explicit, first, step;
};

bool histogram_layouts_equal(const struct histogram_layout *left,
			     const struct histogram_layout *right);

/* Why numbers are in an overflow series: the attribute bpfpush.overflow.reason says it. */
enum overflow { OVERFLOW_TABLE,	 /* "table": the kernel's table had no place for their keys */
		OVERFLOW_SERIES, /* "series": the budget had no room for their series */
		OVERFLOWS };

/*
 * What the process may hold: a number of series of all collectors together, and a number of bytes
 * for series and the kernel's tables. The set of collectors owns it; metrics and collectors charge
 * it.
 */
struct budget {
	uint64_t limit_series, limit_bytes; /* 0: none */
	uint64_t n_series;		    /* that something feeds; without the overflow series */
	/* of all series in memory, with what exporters keep with them */
	uint64_t series_bytes;
	uint64_t table_bytes;		    /* of the kernel's tables */
};

/* For one series more. */
static inline bool budget_has_room(const struct budget *budget)
{
	return (!budget->limit_series || budget->n_series < budget->limit_series) &&
	       (!budget->limit_bytes ||
		budget->series_bytes + budget->table_bytes < budget->limit_bytes);
}

struct metric {
	const char *scope;	 /* the collector's name; a part of the identity */
	const char *name;	 /* OpenTelemetry name, dotted */
	const char *unit;	 /* UCUM: "s", "By", "{call}" */
	const char *description; /* one line, or "" */
	enum metric_kind kind;
	uint64_t divisor; /* 1: whole numbers; 1000000000: nanoseconds shown as seconds */
	/* a gauge whose series add up: OTLP's updowncounter; to all others it is a gauge */
	bool is_updown;
	struct histogram_layout layout; /* of a sum or gauge: no buckets */
	bool is_disabled; /* what is counted makes no series */
	struct setting_list dropped; /* attributes that are left out before a series is made */
	uint64_t limit_explicit; /* the most buckets of an explicit histogram; 0: any number */

	/* The series, kept by series.c; read by encoders through metric_for_each_series(). */
	struct series **series;
	size_t n_series;
	struct series *overflow[OVERFLOWS]; /* each one of series, or NULL */
	struct budget *budget;		    /* which they are charged to */
	struct index index;		    /* of series, by the hash of their attributes */
	/*
	 * Set for one collection: a map that feeds this gauge could not be read, so it stays as it
	 * was.
	 */
	bool is_held;
	/* the series whose sum its bounds did not allow at the last collection; of report.c */
	const void *unfit;
	bool is_judged;	   /* no sum is looked at any more; likewise */
	struct loss loss; /* of the program that missed most of those that feed it */
};

struct numbers {
	/* sum: the number; gauge: an int64_t in two's complement; histogram: of all values */
	uint64_t sum;
	uint64_t count;	  /* histogram: of values, always equal to the sum of bucket[] */
	uint64_t *bucket; /* histogram: layout.n_buckets of them, else NULL */
};

/* What a configuration may say of a metric. */
extern const struct setting_table metric_settings;

/*
 * Data that an encoder keeps with a series, such as the encoded form of its attributes. There is
 * one for each owner. The owner is an address: one of the encoder's if the data serves all
 * exporters, or the exporter's if its settings matter. Made by series_cache_new(), freed with the
 * series. The owner must outlive the series, because an address that is used again would find the
 * cache.
 */
struct series_cache {
	struct series_cache *next;
	const void *owner;
	size_t size;
	uint8_t data[];
};

struct series {
	struct metric *metric;
	const struct attribute *attributes; /* sorted by name */
	unsigned int n_attributes;
	bool is_provisional; /* its attributes may be known better later; kept by delta.c */
	/* has a point in this batch: fed now, or changed since the last collection */
	bool is_present;
	bool is_ended;	 /* had its last point in the batch before; forgotten after this one */
	unsigned int n_sources;
	uint32_t number, named_at; /* kept by state.c */
	uint64_t start_ns; /* Unix time, ns: of the collection before the first number was seen */
	struct numbers total;
	struct numbers delta;
	size_t size_bytes; /* with its caches */
	uint64_t hash;
	struct series_cache *caches;
};

static inline bool series_is_overflow(const struct series *series)
{
	struct series *const *overflow = series->metric->overflow;

	return series == overflow[OVERFLOW_TABLE] || series == overflow[OVERFLOW_SERIES];
}

/* The attribute that says whose its numbers are, or NULL. */
const struct attribute *series_owner(const struct series *series);

/* NULL: owner has none yet. */
static inline struct series_cache *series_cache(const struct series *series, const void *owner)
{
	struct series_cache *cache = series->caches;

	while (cache && cache->owner != owner)
		cache = cache->next;
	return cache;
}

/* Holds a copy of data, or zeros if data is NULL. owner must have none yet. NULL: no memory. */
struct series_cache *series_cache_new(struct series *series, const void *owner, const void *data,
				      size_t size);

/* One collection of everything; valid only while the exporters are called. */
struct batch {
	uint64_t time_ns;     /* Unix time, ns */
	uint64_t previous_ns; /* of the collection before; at the first one, of the start */
	struct metric **metrics;
	size_t n_metrics;
	bool is_last; /* the last batch: data that waits to be joined or paced is sent now */
};

#define metric_for_each_series(series_, metric_)                                                   \
	for (size_t index_ = 0;                                                                    \
	     index_ < (metric_)->n_series && ((series_) = (metric_)->series[index_], 1); index_++) \
		if (!(series_)->is_present) {                                                      \
		} else

#define batch_for_each_metric(metric_, batch_)                                            \
	for (size_t metric_index_ = 0; metric_index_ < (batch_)->n_metrics &&             \
				       ((metric_) = (batch_)->metrics[metric_index_], 1); \
	     metric_index_++)
