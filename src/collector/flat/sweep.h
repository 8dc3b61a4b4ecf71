/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Removes the keys of one map whose owners are gone, in pieces that are short enough for the loop.
 *
 * A place of a table is removed in two steps, so that nothing is lost and nothing counts for the next key. In the
 * first, programs cease to find it. When none can be writing there any more, the second frees it. A key that comes
 * back meanwhile gets another place. From a hash map, a key that did not grow in the last two readings is deleted at
 * once.
 */

#include "collector/source.h"

#define SWEEP_DONE UINT64_MAX

enum sweep_phase { SWEEP_IDLE, SWEEP_REMOVE, SWEEP_GRACE, SWEEP_FREE };

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
	bool is_narrowing; /* see flat_narrow() */
	uint64_t begin_ns; /* of the last pass */
	struct grace grace;
};

/* What one turn of the loop may do; several sweeps share it. */
struct sweep_turn {
	uint64_t now_ns;
	int64_t left_ns; /* of the time for it, by what each piece usually takes */
};

struct sweep_owner {
	bool (*is_gone)(void *user, uint32_t row);
	void *user;
};

/*
 * Not before what the last reading found has been made use of. Returns in how many ns there is more to do: 0 in the
 * next turn, SWEEP_DONE after the next reading.
 */
uint64_t sweep_go_on(struct sweep *sweep, struct source *source, struct rows *rows, const struct sweep_owner *owner,
		     struct sweep_turn *turn);
