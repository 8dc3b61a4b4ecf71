/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the agent knows, in memory that outlives the process: the time of the last batch, the totals
 * of all series, how far each row was read, the names of cgroups, and what waits to be sent. The
 * kernel's maps go on counting, so a later process continues where this one was, whatever ended it.
 *
 * There are two copies of it, which take turns, and two sets of names: each copy says which one it
 * needs, and how much of it. The number of a copy is written last, so a whole one is always there.
 * A process can be killed anywhere:
 *
 * - While it reads and computes, and while exporters encode and queue: nothing has left the
 *   process, and the maps still hold everything. The later process reads the same growth again, and
 *   more. (Exporters that write a file or a terminal write at once: a line then overlaps the next
 *   one, whose totals are right.)
 * - While it saves: the older copy is whole, and the same holds. New names are added after those
 *   that it needs, or all are written to the other set.
 * - After that, requests leave. One that has left is marked in the copy, with the instruction that
 *   forgets it. In between, a request may be sent twice: OTLP says so, for Graphite it is the same
 *   point, and of StatsD's datagrams it is at most one, the one in whose send() the process is
 *   killed.
 * - While it retires places or takes them out (collector/table/sweep.h): the older copy does not
 *   list them, so they are read as before.
 * - While it clears places: the copy lists them, and no row has their numbers. The later process
 *   clears the rest.
 * - While it deletes keys from hash maps, before it saves: the older copy has what they held, and
 *   their rows end (table/sweep.h says for which keys this is not exact).
 * - While it hears of new cgroups: their names are appended to the copy at once.
 * - While it restores: what has been done to maps is done again; the copy stays as it is, except
 *   for marks.
 *
 * What is read is checked like any input. The state of a version with another format is left out.
 */

struct agent;
struct kept;
struct state;

/*
 * Before the collectors start. NULL, if kept is NULL or without memory: then all below do nothing.
 */
struct state *state_new(struct kept *kept);
struct state *state_free(struct state *state);
/* After the start, before the first reading, with all metrics in the batch. */
void state_restore(struct state *state, struct agent *agent);
/*
 * When exporters have encoded a batch, and before they send; also between two batches, when one of
 * them has changed what waits.
 */
void state_save(struct state *state, struct agent *agent);
/* All series are about to start again. */
void state_forget_series(struct state *state);
