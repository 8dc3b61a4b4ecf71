/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/table/sweep.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/duration.h"

/*
 * From pass to pass; a bit less than ten seconds, so that a pass belongs to each reading at that
 * interval.
 */
#define PASS_NS (19 * NS_PER_S / 2)
/* From look to look whether the grace period is over. */
#define GRACE_NS (50 * NS_PER_MS)

/* What pieces take, measured, and rounded up. */
#define LOOK_NS	  5	/* at a place or row */
/* whether an owner is gone: nearly all are cgroups, which are found in memory */
#define ASK_NS	  1000
#define FREE_NS	  50	/* for each column of a place */

/* From a hash map, within a collection, which blocks the loop. */
#define DELETED_MAX 16384

/*
 * When has every BPF program ended that runs now? The kernel answers with
 * membarrier(MEMBARRIER_CMD_GLOBAL), which waits for some milliseconds, so a thread asks. Where the
 * kernel refuses, time has to do.
 */

/* No program runs for so long. */
#define REFUSED_NS (10 * NS_PER_S)

static uint64_t wanted; /* the last ticket */
static _Atomic uint64_t reached;
static atomic_bool is_running, is_refused;

static void *wait_for_programs(void *goal)
{
	/* With one CPU the kernel answers at once, though a program may have been preempted. */
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 ||
	    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		is_refused = true;
	else
		reached = (uintptr_t)goal;
	is_running = false;
	return NULL;
}

/* One thread at a time; all that began before it are over after it. */
static void ask_kernel(void)
{
	pthread_t thread;

	if (is_running || is_refused)
		return;
	is_running = true;
	if (pthread_create(&thread, NULL, wait_for_programs, (void *)(uintptr_t)wanted)) {
		is_refused = true;
		is_running = false;
	} else {
		pthread_detach(thread);
	}
}

static bool grace_is_over(const struct grace *grace, uint64_t now_ns)
{
	if (reached < grace->ticket)
		ask_kernel();
	return reached >= grace->ticket || (is_refused && now_ns >= grace->begin_ns + REFUSED_NS);
}

static bool is_gone(const struct sweep_owner *owner, uint32_t row, struct sweep_turn *turn)
{
	turn->left_ns -= ASK_NS;
	return owner->is_gone(owner->user, row);
}

/* These three return true once they are through. */

static bool retire_places(struct sweep *sweep, struct reader *reader,
			  const struct sweep_owner *owner,
			 struct sweep_turn *turn)
{
	struct table *table = &reader->table;

	for (; reader->is_table && sweep->place < table->n_places; sweep->place++) {
		uint32_t row = table->place_rows[sweep->place];

		if (turn->left_ns <= 0)
			return false;
		turn->left_ns -= LOOK_NS;
		/* An earlier process may have left retired ones. */
		if (!row || (!table_is_retired(table, sweep->place) && !is_gone(owner, row, turn)))
			continue;
		table_retire(table, sweep->place);
		sweep->n_retired++;
	}
	return true;
}

/*
 * A key of the hash map is deleted in the next collection, if that is the last in which it may not
 * grow.
 */
static bool doom_rows(struct sweep *sweep, struct reader *reader, struct rows *rows,
			const struct sweep_owner *owner, struct sweep_turn *turn)
{
	bool is_hash = !reader->records && !(reader_traits(reader->type) & READER_ARRAY);

	for (; sweep->row < rows->n; sweep->row++) {
		struct row *record = rows_at(rows, sweep->row);
		bool is_kept = record->stay == ROWS_KEPT;
		bool may_go = is_kept ||
			      (is_hash && record->is_in_hash &&
			       record->idle + 1 >= READER_IDLE_READINGS);

		if (turn->left_ns <= 0)
			return false;
		turn->left_ns -= LOOK_NS;
		if (!may_go || !rows_is_live(rows, sweep->row) || !is_gone(owner, sweep->row, turn))
			continue;
		if (is_kept)
			record->stay = ROWS_ONCE;
		else
			sweep->has_doomed = record->is_doomed = true;
	}
	return true;
}

void sweep_delete(struct sweep *sweep, struct reader *reader, struct rows *rows)
{
	uint32_t n = 0;

	for (uint32_t row = 1; sweep->has_doomed && row < rows->n; row++) {
		struct row *record = rows_at(rows, row);

		if (!rows_is_live(rows, row) || !record->is_doomed)
			continue;
		if (n == DELETED_MAX) /* the rest in the next collection */
			return;
		record->is_doomed = false;
		if (record->idle < READER_IDLE_READINGS)
			continue;
		reader_remove(reader, rows, row);
		n++;
	}
	sweep->has_doomed = false;
}

static bool take_out(struct sweep *sweep, struct reader *reader, struct rows *rows,
		     const struct sweep_owner *owner, struct sweep_turn *turn)
{
	struct table *table = &reader->table;
	struct row *record;

	for (; sweep->place < table->n_places; sweep->place++) {
		if (turn->left_ns <= 0)
			return false;
		turn->left_ns -= LOOK_NS;
		if (!table_is_retired(table, sweep->place))
			continue;
		turn->left_ns -= FREE_NS * table->columns;
		record = rows_at(rows, table->place_rows[sweep->place]);
		if (!is_gone(owner, table->place_rows[sweep->place], turn))
			record->stay = ROWS_KEPT;
		record->is_doomed = false; /* the last state has this place in its row */
		table_take_out(table, rows, sweep->place);
	}
	return true;
}

static bool clear_places(struct sweep *sweep, struct table *table, struct sweep_turn *turn)
{
	for (; sweep->place < table->n_places; sweep->place++) {
		if (turn->left_ns <= 0)
			return false;
		turn->left_ns -= LOOK_NS;
		if (!table_is_out(table, sweep->place))
			continue;
		turn->left_ns -= FREE_NS * table->columns;
		table_clear(table, sweep->place);
	}
	return true;
}

static bool begin_pass(struct sweep *sweep, struct reader *reader, const struct sweep_turn *turn)
{
	if (sweep->begin_ns && turn->now_ns < sweep->begin_ns + PASS_NS)
		return false;
	*sweep = (struct sweep){ .phase = SWEEP_RETIRE, .begin_ns = turn->now_ns,
				 .place = 1, .row = 1, .has_doomed = sweep->has_doomed };
	return true;
}

uint64_t sweep_go_on(struct sweep *sweep, struct reader *reader, struct rows *rows,
		     const struct sweep_owner *owner, struct sweep_turn *turn)
{
	if (sweep->phase == SWEEP_IDLE && !begin_pass(sweep, reader, turn))
		return SWEEP_DONE;
	if (sweep->phase == SWEEP_RETIRE) {
		if (!retire_places(sweep, reader, owner, turn) ||
		    !doom_rows(sweep, reader, rows, owner, turn))
			return 0;
		sweep->phase = sweep->n_retired ? SWEEP_GRACE : SWEEP_IDLE;
		sweep->place = 1;
		if (sweep->phase == SWEEP_IDLE)
			return SWEEP_DONE;
		sweep->grace = (struct grace){ ++wanted, turn->now_ns };
		ask_kernel();
		return GRACE_NS;
	}
	if (sweep->phase == SWEEP_GRACE && !grace_is_over(&sweep->grace, turn->now_ns))
		return GRACE_NS;
	if (sweep->phase <= SWEEP_TAKE_OUT) {
		sweep->phase = SWEEP_TAKE_OUT;
		if (!take_out(sweep, reader, rows, owner, turn))
			return 0;
		sweep->phase = SWEEP_CLEAR;
		sweep->place = 1;
		sweep->out_ns = turn->now_ns;
	}
	if (turn->saved_ns <= sweep->out_ns)
		return SWEEP_DONE;
	if (!clear_places(sweep, &reader->table, turn))
		return 0;
	sweep->phase = SWEEP_IDLE;
	return 0; /* a pass may be due */
}
