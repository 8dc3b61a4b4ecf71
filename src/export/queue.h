/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests that wait to be sent, oldest first, bounded in bytes and in number. Those of one batch
 * are a window, and have its time. When a bound is passed, the oldest request is dropped, since the
 * newest numbers are the most useful. The request that is being sent is never dropped. The caller
 * learns how many points were lost.
 *
 * All queues share one budget of memory. One queue may use all of it; when it is spent, the one
 * that uses most gives way. A window that began in an empty queue is not dropped. So a receiver
 * that is away costs other receivers nothing; each exporter may use memory for one window more.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "export/points.h"
#include "util/cleanup.h"

/* The mark of an item that is being sent, or whose fate is in doubt. 0: it only waits. */
#define QUEUE_SENT UINT8_MAX

struct queue_item {
	TAILQ_ENTRY(queue_item) link;
	uint8_t *data; /* NULL: only in the spool, see queue_load() */
	/* the next of those that own data together, in a ring; itself: it does alone */
	struct queue_item *sharer;
	size_t size;
	size_t n_points;
	/* NULL, or set to QUEUE_SENT, or to what became of it when it leaves; the caller's */
	uint8_t *mark;
	uint64_t time_ns;	/* of its window */
	/* refused: not to be sent, but to be merged with the next window (backlog.h) */
	bool is_held;
	/* For otlp/aside.c: since when others go first, or 0; how often it was wanted later. */
	uint64_t aside_ns;
	unsigned int n_deferred;
	bool is_doubtful;	/* the receiver may have it: to be repeated as it is */
	bool is_chosen;		/* for backlog.c */
	/* For otlp/cut.c: which part of a request that was cut; how often it was refused alone. */
	uint8_t part, n_refused;
	bool is_damaged;	/* cannot be read from the spool */
	unsigned int n_sent;	/* times; this and the next belong to the sender */
	uint64_t first_sent_ns; /* by the clock of the sender */
	uint64_t place;		/* in the spool, where its mark is then; 0: it is only in memory */
	uint64_t next_place;	/* for spool.c */
};

struct spool;

struct queue_budget {
	uint64_t limit_bytes; /* in memory */
	SLIST_HEAD(, queue) queues;
};

struct queue {
	SLIST_ENTRY(queue) link;
	struct queue_budget *budget; /* NULL: memory has no bound */
	TAILQ_HEAD(queue_items, queue_item) items;
	/*
	 * For a sender that keeps requests until they are confirmed: the first request that was not
	 * sent; NULL: none. queue_step() moves it on and queue_rewind() back; queue_confirm() ends
	 * the requests before it.
	 */
	struct queue_item *waiting;
	bool is_begun; /* waiting is being sent, or a part of it was: it is not dropped */
	size_t n_items, size_bytes;
	size_t n_most;	 /* items since it was empty */
	size_t n_held;	 /* items */
	size_t n_points; /* in all items */
	size_t limit_items;
	size_t limit_bytes; /* of all, what is in the spool included */
	uint64_t time_ns; /* of the window that queue_put() is for */
	/* nothing was there when it began: it is to be sent now, so nothing of it is dropped */
	bool is_fresh;
	/*
	 * Of totals: one window stays for each such time, since newer ones say the same. 0: all
	 * stay.
	 */
	uint64_t slot_ns;
	uint64_t age_ns; /* older windows are merged; 0: none */
	struct spool *spool;  /* NULL: none. Borrowed */
	size_t spooled_bytes; /* of size_bytes; the rest is in memory */
};

/* The budget outlives the queue, until queue_done(). */
void queue_init(struct queue *queue, size_t limit_items, struct queue_budget *budget);
/* What is put from now on is of another window. */
void queue_begin_window(struct queue *queue, uint64_t time_ns);
/*
 * Takes data over, also on failure, and gives back what is allocated beyond size. The bounds hold
 * only after queue_trim(). -ENOMEM.
 */
int queue_put(struct queue *queue, uint8_t *data, size_t size, size_t n_points);
/* Would the budget be spent with so many bytes more, and does this queue use most of it? */
bool queue_is_near(const struct queue *queue, uint64_t more_bytes);
/* Then what is in the spool does not help. */
static inline bool queue_is_short(const struct queue *queue)
{
	return queue_is_near(queue, 0);
}
/* Puts what an item of another queue holds. -ENOMEM. */
int queue_share(struct queue *queue, struct queue_item *of);
bool queue_is_over(const struct queue *queue);
/* Drops what is too much; how many points. */
size_t queue_trim(struct queue *queue);
/*
 * Marks the next request that is neither held nor put aside as being sent; the queue still owns it.
 * NULL: there is none, or busy.
 */
struct queue_item *queue_begin(struct queue *queue);
/*
 * The request that was begun is freed, unless fate is POINTS_PUSHED: then it stays for another
 * attempt.
 */
void queue_end(struct queue *queue, enum points fate);
/* The request that was begun stays, but is not sent again as it is. */
void queue_hold(struct queue *queue);
/* The waiting request was sent as a whole. */
void queue_step(struct queue *queue);
/* All requests are to be sent again, from the oldest on. */
void queue_rewind(struct queue *queue);
/* Frees the requests that were sent; the number of their points. */
size_t queue_confirm(struct queue *queue);
/*
 * Takes an item out, whose mark stays: what it said is in others now. Not the one that was begun.
 */
void queue_remove(struct queue *queue, struct queue_item *item);
/*
 * Takes the n_items items of a window out as a whole. False: some have been sent or dropped, so the
 * rest stays.
 */
bool queue_take_back(struct queue *queue, uint64_t time_ns, size_t n_items);
/* Unless one was begun: what is next is the oldest that is neither held nor put aside. */
void queue_aim(struct queue *queue);
/* Nothing has become of what is left: marks stay. */
void queue_done(struct queue *queue);

/*
 * Its data is in memory then, until it was sent, or queue_unload(). -errno; and is_damaged, if it
 * never will be.
 */
int queue_load(struct queue *queue, struct queue_item *item);
void queue_unload(struct queue *queue, struct queue_item *item);
/* The mark of an item, as it is to be saved. */
static inline uint8_t queue_mark(const struct queue *queue, const struct queue_item *item)
{
	return item->is_doubtful || (queue->is_begun && item == queue->waiting) ? QUEUE_SENT : 0;
}

/*
 * For spool.c: the item is at next_place now; it is loaded, and is to be written again; one that
 * was there before.
 */
void queue_spool(struct queue *queue, struct queue_item *item);
void queue_unspool(struct queue *queue, struct queue_item *item);
int queue_put_spooled(struct queue *queue, const struct queue_item *item);
