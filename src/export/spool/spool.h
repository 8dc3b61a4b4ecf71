/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The requests of a queue on disk, so that they outlive the machine, and do not take memory. It is
 * a log in segments:
 *
 *     transaction   the requests of a batch, or those that a merge has made, and a commit that says
 *                   which requests of before they replace. It counts with its commit, which is
 *                   there twice, since without it a batch is lost.
 *     marks         what became of a request since the last commit, in its head, in place
 *     segments      go when nothing in them waits, the oldest first. When the log takes more room
 *                   than it may, or one is damaged, what waits in the oldest is written again.
 *
 * A process can be killed anywhere. If its state was kept (agent/state.h), that says which
 * transaction was the last: later ones are cut, since their growth is read again. So nothing is
 * given up until the state has been saved: what a commit replaces is marked, and segments go, with
 * the next one. Without a state, all transactions count.
 *
 * Nothing is synced: what a process has written survives its end, and the kernel writes it to the
 * disk in its own time, up to half a minute later. A machine that loses power may lose that; what
 * is left is whole or cut.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/points.h"

struct spool {
	const char *name;     /* of the exporter. Borrowed */
	const char *path;     /* of the directory that its own is in. Borrowed */
	uint32_t format;      /* of requests: others are of no use to it */
	uint64_t limit_bytes; /* on disk */
	/* The last transaction that counts: before it is open, what a state says, or UINT64_MAX. */
	uint64_t transaction;
	uint64_t n_damaged; /* records, gaps between them, and segments that could not be read */
	struct spool_found {
		uint64_t n_damaged;	    /* records and gaps */
		uint64_t n_lost, n_foreign; /* points in them; points in another format */
		uint64_t n_unkept;	    /* points for which there was no memory */
		uint64_t n_unknown;	    /* gaps whose number of points is not known */
		/* segments; of the first of them, its number, and why */
		uint64_t n_unread;
		uint32_t unread;
		int unread_error;
	} found; /* by spool_open() */
	int error; /* of the last spool_commit(); for the owner */

	/* Internal. */
	int directory;	       /* -1: not open */
	int tail;	       /* the last segment */
	uint64_t n_logged;     /* points of all requests that were ever written */
	struct segment {
		uint32_t number;
		uint64_t size, live_bytes;
		bool is_damaged; /* for a person to look at */
		bool is_to_go; /* and those before it: what waits there is to be written again */
	} *segments;
	size_t n_segments;
	struct replaced {
		uint64_t place;
		size_t size;
	/* of which the first n_committed were in the last commit, or in the state if that failed */
	} *replaced;
	size_t n_replaced, n_committed;
};

/* The mark of a request that others replace. */
#define SPOOL_REPLACED N_POINTS

#define SPOOL_INIT { .transaction = UINT64_MAX, .directory = -1, .tail = -1 }

/* The size bytes at a place, for free(). -EBADMSG: they are damaged, which is counted. */
int spool_read(struct spool *spool, uint64_t place, size_t size, uint8_t **ret_data);
/*
 * As queue_item.mark. If the disk cannot be written, the mark is missing: a later process may send
 * it again.
 */
void spool_mark(struct spool *spool, uint64_t place, uint8_t mark);
uint64_t spool_bytes(const struct spool *spool); /* on disk */
/* With the next commit, it has ended, or others say what it does. */
void spool_replace(struct spool *spool, uint64_t place, size_t size);
void spool_close(struct spool *spool);
/* Closes one whose files are gone, to be opened again. */
void spool_leave(struct spool *spool);

/* For the files of the spool. */

/* The segment of a place, or NULL. */
struct segment *spool_segment(struct spool *spool, uint64_t place);
/* A new one becomes the tail. -errno */
int spool_begin_segment(struct spool *spool, uint32_t number);

static inline struct segment *spool_tail(struct spool *spool)
{
	return &spool->segments[spool->n_segments - 1];
}
