/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Removes the keys of one map whose owners are gone, in pieces that are short enough for the loop.
 *
 * A place of a table is removed in three steps, so that nothing is lost and nothing counts for the
 * next key, wherever the process is killed. In the first, programs cease to find it. When none can
 * be writing there any more, the second takes its numbers out of its row. When a saved state lists
 * the place, and its row without these numbers, the third makes it vacant. A key that comes back
 * meanwhile gets another place.
 *
 * A key of a hash map that did not grow in the last two readings is deleted in a collection,
 * between the reading and the state. The last state has all that the key held, so its row just ends
 * in a process that comes after a kill. Only a key that comes back between its deletion and that
 * process, and by then counts no less than before, would count too little: one that expires, and
 * not one whose owner is gone.
 */

#include "collector/reader/reader.h"

#define SWEEP_DONE UINT64_MAX

enum sweep_phase { SWEEP_IDLE, SWEEP_RETIRE, SWEEP_GRACE, SWEEP_TAKE_OUT, SWEEP_CLEAR };

/* Since when to wait for programs, and for which answer of the kernel. */
struct grace {
	uint64_t ticket;
	uint64_t begin_ns;
};

/* Begins as zeroes; kept by sweep.c. */
struct sweep {
	enum sweep_phase phase;
	uint32_t place, row; /* where the next turn goes on */
	uint32_t n_retired;
	bool has_doomed; /* rows whose keys the next collection deletes */
	uint64_t begin_ns; /* of the last pass */
	uint64_t out_ns;   /* when the last place was taken out */
	struct grace grace;
};

/* What one turn of the loop may do; several sweeps share it. */
struct sweep_turn {
	/* the state is of that time, or a later one; on the same clock */
	uint64_t now_ns, saved_ns;
	int64_t left_ns; /* of the time for it, by what each piece usually takes */
};

struct sweep_owner {
	bool (*is_gone)(void *user, uint32_t row);
	void *user;
};

/*
 * Not before what the last reading found has been made use of. Returns in how many ns there is more
 * to do: 0 in the next turn, SWEEP_DONE after the next reading.
 */
uint64_t sweep_go_on(struct sweep *sweep, struct reader *reader, struct rows *rows,
		     const struct sweep_owner *owner, struct sweep_turn *turn);
/*
 * Deletes keys from the hash map, in a collection: after the growth of rows is known, and before
 * the state is saved.
 */
void sweep_delete(struct sweep *sweep, struct reader *reader, struct rows *rows);
