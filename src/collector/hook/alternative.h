/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which programs of an object are alternatives for one hook.
 *
 * Programs named HOOK__VARIANT are alternatives: the first that the kernel accepts is used, in the
 * order of sections, and within a section in the order of the object. Programs named
 * HOOK__VARIANT__PART form one alternative together: all of them are used. A program without "__"
 * in its name is a hook of its own. A variant whose programs have different sections counts as the
 * last of these sections in the order.
 *
 * Names alone do not decide. Two programs are alternatives only if they see the same event: the
 * same tracepoint, or the same end (entry or return) of the same function. Iterators are
 * alternatives by their names alone. If two variants of a HOOK see different events, or if HOOK is
 * a type of section (kprobe__vfs_read), each program is a hook of its own.
 */

#include <stdbool.h>

struct programs;

/*
 * Sets hook, variant, type, rank and is_doubtful of all programs, by their names and sections; also
 * again.
 */
void alternatives_find(struct programs *programs);
/*
 * Sets the ranks for this kernel. is_preemptible: can programs at the tracepoint of this section be
 * preempted? It is asked only about hooks that have an alternative which cannot.
 */
void alternatives_rank(struct programs *programs, bool (*is_preemptible)(const char *section));
