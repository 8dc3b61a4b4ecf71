/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the agent knows about exporters. Each exporter has a struct exporter_ops at the bottom of
 * its file, a row in exporter_table[] and a section [exporter NAME] in the configuration.
 *
 * An exporter encodes a batch at once, since the batch is gone when push() returns, and sends when
 * it can: nothing here blocks or delays the caller. Points that are lost are counted.
 */

#include <stdbool.h>
#include <stdint.h>

#include "export/queue.h"
#include "export/spool/spool.h"
#include "metric/metric.h"
#include "metric/signal.h"
#include "util/log.h"
#include "util/setting-table.h"
#include "util/store.h"

struct sd_event;
struct exporter;

/* The attribute error.type of each fate (queue.h); NULL: none. */
extern const char *const points_error_type[N_POINTS];

/*
 * What an exporter and its sender count themselves; the agent exports it (otel.sdk.exporter.*,
 * bpfpush.exporter.*).
 */
struct exporter_stats {
	uint64_t points[N_POINTS]; /* only exporter_account() changes them */
	uint64_t requests;	   /* sent, retries included */
	uint64_t retries;
	uint64_t bytes_sent; /* of payload, as sent */
	/*
	 * Deltas that a receiver may have taken without an answer; what their sums and counts of
	 * values add up to.
	 */
	uint64_t doubtful_points, doubtful_values;
	/* the last attempt failed; only exporter_fail() and exporter_works() change it */
	bool is_failing;
	char problem[640];   /* why, in words, maybe with what follows from it after "; " */
	unsigned int n_changes; /* of these two, and deliveries */
	/* CLOCK_BOOTTIME */
	uint64_t delivered_ns; /* the last delivery; 0: none yet */
	uint64_t failing_ns;   /* since when it fails; 0: it does not */
	uint64_t asked_ns;     /* since when a receiver owes an answer; 0: none does */
};

/* The data that an exporter holds. */
struct exporter_waiting {
	uint64_t n_points; /* encoded, with their fate unknown */
	uint64_t n_bytes;  /* encoded, and kept to be sent */
	bool is_sending;   /* the event loop continues to send; if false, the next push does */
};

/* Borrowed from the agent; outlives every exporter. */
struct exporter_context {
	struct sd_event *event;
	const struct attribute *resource; /* service.name, host.name, … */
	unsigned int n_resource;
	const char *version; /* of the agent */
	struct queue_budget *queue_budget; /* of all of them; NULL: no bound */
	struct queue_budget *events_budget; /* likewise, of those of events */
	/* all that get the same batches, in this order, ended by NULL; NULL: unknown */
	struct exporter *const *opened;
	uint64_t interval_ns; /* from one batch to the next; the last batch comes earlier */
	/* Saves the state of all, with what the queues hold now; NULL: it is not kept. */
	void (*save)(void *user);
	void *save_user;
	bool is_once;	      /* there is one batch, or few, for a person: no refresh, no queue */
	bool opens_later;     /* a file that cannot be opened now is opened later, with a batch */
	bool is_trial;	      /* only probe(), without a batch: failures are not logged */
};

struct exporter_ops {
	const char *type; /* "otlp" */
	/* Which signals are wanted with these options. NULL: metrics. */
	enum signals (*signals)(const void *options);
	/* exporters of other signals with the same options, ended by NULL */
	const struct exporter_ops *others[SIGNALS];
	/* which signals take() gets; 0: push() gets metrics */
	enum signals takes;
	/* the value of otel.component.type; NULL: type, as OpenTelemetry has no word for it */
	const char *component;
	/* of the structure that open() gets; may have no rows */
	const struct setting_table *settings;
	/*
	 * Reads environment variables into settings that are not given in the file. NULL: there are
	 * no such variables.
	 */
	int (*environment)(void *options, const struct assignments *given, struct diag *diag);
	/* Checks what the table cannot: combinations, files that must be readable. May be NULL. */
	void (*check)(const void *options, const struct assignments *given, struct diag *diag);
	size_t state_bytes; /* of exporter.state, all 0 before open() */
	/*
	 * options is borrowed and outlives the exporter. 0 or -errno: then it has undone all, and
	 * said why by exporter_fail() if that says more than the errno.
	 */
	int (*open)(struct exporter *exporter, const void *options);
	/* As exporter_encode(); what it puts into the queue, send() begins to send. */
	int (*push)(struct exporter *exporter, const struct batch *batch);
	/*
	 * Puts requests with queue_put() that say the same as these n of the queue, the oldest
	 * first, in fewer points, which it counts as pushed. -errno: what it put is not to be used.
	 * NULL: windows are not merged.
	 */
	int (*merge)(struct exporter *exporter, struct queue_item *const *items, size_t n);
	/*
	 * Tries the receiver with nothing to deliver, and is called again after each turn of the
	 * loop until it returns something else than 0. 1: it works. -errno: it does not.
	 * In both cases, stats.problem says why. NULL: it does not send.
	 */
	int (*probe)(struct exporter *exporter);
	/*
	 * Takes one, which counts as a point, and is valid during the call. It may be written when
	 * flush() is called, or later.
	 */
	void (*take)(struct exporter *exporter, const struct event *event);
	void (*flush)(struct exporter *exporter);
	/* After push(); NULL: push() has written all. */
	void (*send)(struct exporter *exporter, const struct batch *batch);
	/*
	 * For an exporter that does not use the queue; NULL: what is in the queue, and n_doubtful.
	 */
	struct exporter_waiting (*waiting)(const struct exporter *exporter);
	void (*close)(struct exporter *exporter);
};

struct exporter {
	const char *name; /* of its section */
	const struct exporter_ops *ops;
	const struct exporter_context *context;
	const void *options; /* of ops */
	void *state; /* of ops */
	const char *proxy; /* that it goes through, without its password; of ops; NULL: none */
	struct exporter_stats stats;
	/* of stats.points, in the agent's own series; a later process counts the rest */
	uint64_t reported[N_POINTS];
	struct queue queue;    /* of an exporter that sends: open() gives it its limits */
	/* Of exporters that send: a hash of what decides how requests look; others are not sent. */
	uint64_t format;
	struct spool spool;    /* is used if queue.spool is set */
	uint64_t position;     /* of ops: how far it is, for a later process */
	/* the window of this batch was begun by the exporter that encodes for both */
	bool has_window;
	size_t n_doubtful;     /* points that have left the queue, with their fate unknown */
	/* grows when something may have been lost: what did not change is to be sent again */
	unsigned int n_losses;
	/* why points met this fate, as said last (a hash), and when; only for exporter.c */
	uint64_t told[N_POINTS], told_ns[N_POINTS];
	unsigned int n_minute; /* changes since minute_ns, logged or not */
	uint64_t minute_ns, reminded_ns; /* CLOCK_BOOTTIME; only for exporter.c */
};

extern const struct exporter_ops *const exporter_table[]; /* ended by NULL */

const struct exporter_ops *exporter_find(const char *type);
/* What it counts: "point", "event" or "span". */
const char *exporter_item(const struct exporter *exporter);
/* Which signals an exporter with these options sends. */
enum signals exporter_signals(const struct exporter_ops *ops, const void *options);
/* -errno */
int exporter_open(const char *name, const struct exporter_ops *ops, const void *options,
		  const struct exporter_context *context, struct exporter **ret_exporter);
/*
 * Encodes batch. 0: each point that the exporter took on was written, waits, or
 * met a fate that the format or a limit explains (too large, unsupported, queue full). -errno: some
 * were dropped because memory ran out or the output failed. They are counted and the error is
 * logged, so the caller need not do anything; the next push goes on.
 */
int exporter_encode(struct exporter *exporter, const struct batch *batch);
/* Begins to send what was encoded; no datagram and no request leaves before. */
void exporter_send(struct exporter *exporter, const struct batch *batch);
/*
 * log_event() with "exporter NAME: " before the message, and the name in the field that
 * systemd/bpfpush.catalog shows.
 */
#define exporter_log(exporter, level, id, format, ...)                                      \
	log_event(level, id,                                                                \
		  (const struct log_field[]){ { "BPFPUSH_EXPORTER", (exporter)->name },     \
					      { NULL, NULL } },                             \
		  "exporter %s: " format, (exporter)->name, ##__VA_ARGS__)
/*
 * It fails now. Logged with the name, unless it fails already with the same message. So is a
 * failure that lasts, once an hour; of many changes in a minute, only the first are.
 */
#define exporter_fail(exporter, level, id, ...) \
	exporter_fail_until(exporter, level, id, 0, __VA_ARGS__)
/*
 * Like exporter_fail(); the log says " in 4 s" after the message. A new delay_ns is not a new
 * message. 0: no time.
 */
void exporter_fail_until(struct exporter *exporter, enum log_level level, const char *id,
			 uint64_t delay_ns, const char *format, ...) _printf_(5, 6);
/*
 * Asked before each message about a receiver, which must not fill the log when it comes and goes: a
 * few are logged in a minute, and then how many more there were.
 */
bool exporter_may_log(struct exporter *exporter);
/* Once an hour, that it still fails. To be called with each batch. */
void exporter_remind(struct exporter *exporter);
/* How much of stats.problem says why. */
int exporter_problem_bytes(const struct exporter *exporter);
/* It works now. Logged with the name, if it did not before. */
#define exporter_works(exporter, ...)								\
	(exporter_recovers(exporter) ?								\
		 exporter_log(exporter, LOG_LEVEL_INFO, LOG_ID_EXPORT_RECOVERED, __VA_ARGS__) :	\
		 (void)0)
/* did it fail before, and is that to be logged? */
bool exporter_recovers(struct exporter *exporter);
#define exporter_delivers(exporter)	\
	exporter_works(exporter, "delivers%s", (exporter)->stats.delivered_ns ? " again" : "")
/* A receiver is to answer now (a connection, a request, an end), or has done so. */
void exporter_asks(struct exporter *exporter, bool is_asking);
/*
 * Only this changes stats.points. Points that are lost are counted by exporter_drop(), or here if
 * it has been said why in another way.
 */
void exporter_account(struct exporter *exporter, enum points fate, uint64_t n);
/*
 * Like exporter_account(), for points that are lost. Logs why and what to do: the first time, and
 * then once an hour, or when the reason is another one. Its word "points" becomes that of what
 * the exporter counts.
 */
void exporter_drop(struct exporter *exporter, enum points fate, uint64_t n, const char *why);
/* For points that were not sent. */
void exporter_drop_no_memory(struct exporter *exporter, uint64_t n);
/*
 * Puts a request with n_points points, counted as pushed already, into the exporter's queue, in the
 * window of the batch at hand. Takes data over, as queue_put() does. Counts the points that are
 * lost to a lack of memory. -ENOMEM. user: a struct exporter; the function is a put() of pack.h.
 */
int exporter_enqueue(void *user, uint8_t *data, size_t size, size_t n_points);
/*
 * Like exporter_enqueue(), for the data of another exporter's item; NULL: that one had no memory
 * for it.
 */
int exporter_share(struct exporter *exporter, struct queue_item *of, size_t n_points);
/*
 * For open(), of one with merge(): what waits is also on disk, unless limit_bytes is 0. format: as
 * in spool.h.
 */
void exporter_set_spool(struct exporter *exporter, uint64_t limit_bytes, uint32_t format);
/*
 * Writes to the spool what is not in it, if there is one. What that cannot take stays in memory.
 * Only right before the state is saved (exporter_save()).
 */
void exporter_spool(struct exporter *exporter);
/*
 * Merges what has waited for long (backlog.h), and drops what there is still no room for, which is
 * logged once.
 */
void exporter_tidy(struct exporter *exporter, bool is_last);
struct exporter_waiting exporter_waiting(const struct exporter *exporter);
/*
 * What waits, for a later process. A request that leaves the queue afterwards is marked in what was
 * saved: the later process counts it as what became of it, but as delivered if only a part was. One
 * that was being sent is in doubt then, and those of another format count as not sent. is_same: so
 * are the settings; if not, how it fares is not taken over.
 */
void exporter_save(struct exporter *exporter, struct store *out);
void exporter_restore(struct exporter *exporter, struct stored *in, bool is_same);
/* Says what waited in one that the configuration does not have any more. */
void exporter_report_gone(const char *name, struct stored *in);
/* Does the event loop have nothing left to send? At the end, the agent waits for this. */
bool exporter_is_idle(const struct exporter *exporter);
/*
 * What waits was split or merged between two batches: the state is saved before any of it is sent,
 * since the copy that a later process would read still has it as it was. Or events wait that the
 * copy does not have.
 */
void exporter_save_now(struct exporter *exporter);
struct exporter *exporter_free(struct exporter *exporter);
