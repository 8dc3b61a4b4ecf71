/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A way out. The agent knows only this; each exporter is one file with its ops and its table of options
 * at the bottom, one row in exporter_table[] and one section [exporter NAME] in the configuration.
 *
 * push() encodes at once (the batch is gone when it returns) and sends when it can: nothing here blocks
 * or delays the caller. Points that cannot be kept are counted, never lost silently.
 */

#include <stdbool.h>
#include <stdint.h>

#include "metric/metric.h"
#include "util/setting-table.h"

struct sd_event;
struct queue;
struct exporter;

/*
 * What becomes of points. Each point that an exporter takes on from a batch is counted as pushed, and once more when
 * its fate is known. Until then it waits. So at all times between calls
 *     pushed = delivered + rejected + all that were dropped + waiting
 */
enum points {
	POINTS_PUSHED,
	POINTS_DELIVERED,	   /* taken by the receiver */
	POINTS_REJECTED,	   /* refused by the receiver, for good (partial success included) */
	POINTS_QUEUE_FULL,	   /* dropped: others needed the room */
	POINTS_TOO_LARGE,	   /* dropped: a single point larger than a request or datagram may be */
	POINTS_NOT_SENT,	   /* dropped: could not be encoded or written, or were tried for too long */
	POINTS_CONNECTION_REFUSED, /* dropped: sent, and the kernel reports that nobody takes datagrams there */
	POINTS_UNSUPPORTED,	   /* dropped: of a kind or size that the format has no words for */
	N_POINTS
};

extern const char *const points_error_type[N_POINTS]; /* the attribute error.type; NULL: none */

/* What an exporter tells about itself; the agent makes metrics of it (otel.sdk.exporter.*). */
struct exporter_stats {
	uint64_t points[N_POINTS]; /* only exporter_account() changes them */
	uint64_t requests;	   /* sent, retries included */
	uint64_t retries;
	uint64_t bytes_sent; /* of bodies, as sent */
	bool is_failing;     /* since the last answer */
};

/* What an exporter holds. */
struct exporter_waiting {
	uint64_t n_points; /* encoded, fate unknown */
	uint64_t n_bytes;  /* encoded, not sent */
	bool is_sending;   /* turning the loop takes them further; without it, only the next push does */
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
	/* As exporter_push(). */
	int (*push)(struct exporter *exporter, const struct batch *batch);
	struct exporter_waiting (*waiting)(const struct exporter *exporter);
	void (*close)(struct exporter *exporter);
};

struct exporter {
	const char *name; /* of its section */
	const struct exporter_ops *ops;
	const struct exporter_context *context;
	void *state; /* of ops */
	struct exporter_stats stats;
	bool has_told_full; /* of its queue */
};

extern const struct exporter_ops *const exporter_table[]; /* ended by NULL */

const struct exporter_ops *exporter_find(const char *type);
int exporter_open(const char *name, const struct exporter_ops *ops, const void *options,
		  const struct exporter_context *context, struct exporter **ret_exporter);
/*
 * Encodes batch, which the exporter may not keep, and begins to send. 0: all points that the exporter took on are sent,
 * wait or were counted as what they met. -errno: for want of memory, or because the output refuses them, some were
 * dropped; they are counted and the error is logged, so that the caller has nothing to do. The next push goes on.
 */
int exporter_push(struct exporter *exporter, const struct batch *batch);
/* The only way to change stats.points. */
void exporter_account(struct exporter *exporter, enum points fate, uint64_t n);
/*
 * Puts one request with n_points points, counted as pushed already, into the exporter's queue. Takes data over, also on
 * failure. Points for which there was no room or no memory are counted; a queue that is full is logged once, until
 * it has been empty. 0; 1: older requests had to go; -ENOMEM.
 */
int exporter_enqueue(struct exporter *exporter, struct queue *queue, uint8_t *data, size_t size, size_t n_points);
struct exporter_waiting exporter_waiting(const struct exporter *exporter);
/* Is nothing on its way? For the end: the agent turns the loop until this is so, or time is up. */
bool exporter_is_idle(const struct exporter *exporter);
struct exporter *exporter_free(struct exporter *exporter);

DEFINE_CLEANUP(struct exporter *, exporter_free);
