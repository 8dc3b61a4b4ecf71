/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A way out. The agent knows only this; each exporter is one file with its ops and its table of options
 * at the bottom, one row in exporter_table[] and one section [exporter NAME] in the configuration.
 *
 * push() encodes at once (the batch is gone when it returns) and sends when it can: nothing here blocks
 * or delays the caller. What cannot be kept is counted in stats, never lost silently.
 */

#include <stdbool.h>
#include <stdint.h>

#include "metric/metric.h"
#include "util/setting-table.h"

struct sd_event;
struct exporter;

/* What an exporter tells about itself; the agent makes metrics of it (otel.sdk.exporter.*). */
struct exporter_stats {
	uint64_t points_exported;	   /* acknowledged by the receiver */
	uint64_t points_rejected;	   /* refused by the receiver, for good (partial success included) */
	uint64_t points_dropped_queue;	   /* pushed out of a full queue */
	uint64_t points_dropped_size;	   /* a single point larger than a request may be */
	uint64_t points_dropped_error;	   /* could not be encoded or written */
	uint64_t points_dropped_refused;   /* sent, and the kernel reports that nobody takes datagrams there */
	uint64_t points_unsupported;	   /* of a kind or size that the format has no words for */
	uint64_t name_collisions;	   /* series whose name was taken by another, and was added to */
	uint64_t points_inflight;	   /* gauge: encoded, not yet acknowledged */
	uint64_t requests;		   /* sent, retries included */
	uint64_t retries;
	uint64_t bytes_sent;		   /* of bodies, as sent */
	uint64_t queue_bytes;		   /* gauge */
	uint64_t last_ok_ns;		   /* Unix time, 0: never */
	bool is_failing;		   /* since the last answer */
};

/* Borrowed from the agent; outlives every exporter. */
struct exporter_context {
	struct sd_event *event;
	/* the resource: service.name, host.name, … */
	const struct attribute *resource;
	unsigned int n_resource;
	const char *version; /* of the agent */
	uint64_t interval_ns; /* from one batch to the next; the last one comes earlier */
	bool is_once;	     /* a single batch for a person: no refresh in place, no queue */
};

struct exporter_ops {
	const char *type; /* "otlp" */
	const struct setting_table *settings; /* of the structure that open() gets; may have no rows */
	/*
	 * Environment variables that rank below the file: sets what the section left at its default.
	 * is_set(key) tells whether the file gave key. NULL: none.
	 */
	int (*environment)(void *options, bool (*is_set)(void *user, const char *key), void *user,
			   struct diag *diag);
	/* What the table cannot check: combinations, files that must be readable. NULL: nothing. */
	int (*check)(const void *options, const char *path, unsigned int line, struct diag *diag);
	/* options is borrowed and outlives the exporter. 0 or -errno, having logged why. */
	int (*open)(struct exporter *exporter, const void *options);
	int (*push)(struct exporter *exporter, const struct batch *batch);
	/* Is there anything on its way? For the end: the agent turns the loop until none is, or time is up. */
	bool (*is_idle)(const struct exporter *exporter);
	void (*close)(struct exporter *exporter);
};

struct exporter {
	const char *name; /* of its section */
	const struct exporter_ops *ops;
	const struct exporter_context *context;
	void *state; /* of ops */
	struct exporter_stats stats;
};

extern const struct exporter_ops *const exporter_table[]; /* ended by NULL */

const struct exporter_ops *exporter_find(const char *type);
int exporter_open(const char *name, const struct exporter_ops *ops, const void *options,
		  const struct exporter_context *context, struct exporter **ret_exporter);
int exporter_push(struct exporter *exporter, const struct batch *batch);
/* Counts points that a full queue pushed out, and says so unless *is_told already; nothing where n_points is 0. */
void exporter_drop_queued(struct exporter *exporter, size_t n_points, bool *is_told);
bool exporter_is_idle(const struct exporter *exporter);
struct exporter *exporter_free(struct exporter *exporter);

DEFINE_CLEANUP(struct exporter *, exporter_free);
