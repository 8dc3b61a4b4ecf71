/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An object that outlives the process. Its maps, its attached programs and their links are kept
 * (util/kept.h), so the kernel goes on counting. The next process takes them over instead of
 * loading the object, if its file, its settings, its sizes, and the rights that a program might
 * need are the same: their hash is part of the names.
 *
 *     OBJECT.HASH16.m.MAP  .p.PROGRAM  .l.PROGRAM  .o    the last one holds the states of the
 *                                                        programs, and comes
 *                                                        last: with it, the object is whole
 *
 * Nothing has to be loaded then, so adopting needs no capability, except where the kernel needs one
 * to ask for a map's type (before 5.19). Iterators that run once are not run again.
 *
 * If anything is different, the object is loaded, and has a past: the old programs count on until
 * the new ones are attached, too. Then each old map is read a last time, and right after it the new
 * one, for the baseline. So what both count, counts once, and what is lost is what comes between
 * the two readings. What is kept of the past is dropped when the new state is saved; a process that
 * comes before that does the same once more.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kept;
struct object;
struct reader;

/*
 * Before it is loaded; its sizes are set. 0: is_adopted, and its rows are open. 1: nothing of it
 * was kept. -ESTALE: only what another file, other settings or sizes have left. Other -errno: what
 * was kept is not whole, and is dropped. Unless it returns 0, the object is to be loaded.
 */
int object_adopt(struct object *object, struct kept *kept);
/* Instead of object_adopt(): would that find it? */
bool object_is_kept(struct object *object, struct kept *kept);
/*
 * After its start: keeps it, unless a link has no descriptor of its own (USDT), or records of a
 * perf event array are counted, or it is kept already. -errno of kept_put() or memfd_create(): then
 * nothing of it is kept.
 */
int object_keep(struct object *object, struct kept *kept);

/*
 * How many descriptors that will be, at most, and about half of those that are then open. Before
 * the start.
 */
size_t object_count_kept(const struct object *object);

struct past {
	struct kept *kept;
	struct object *object; /* as it is now */
	uint64_t hash;	       /* as it was */
};

/*
 * Of a map with the same name, the reader of the past, on the heap, by that of now. base: of a flat
 * table, its table.base then. NULL: there is none that can be read in the same way.
 */
struct reader *past_open(const struct past *past, const char *map, const struct reader *now,
			 uint32_t base);
/* The descriptor of a map ("m.") or link ("l.") of the past, borrowed; or -1. */
int past_find(const struct past *past, const char *kind, const char *name);
