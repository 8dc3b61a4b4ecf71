/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which programs of an object are alternatives for one hook.
 *
 * Programs named HOOK__VARIANT are alternatives: the first in the order of sections (and of the object, in
 * the same section) that the kernel takes is used. Programs named HOOK__VARIANT__PART are one alternative
 * together: all of them are used. A program without "__" in its name is a hook of its own.
 *
 * Names alone do not decide. Two programs can only stand for each other if they see the same event: the same
 * tracepoint, or the same function at the same end of it. Where two variants of a HOOK see different ones,
 * or HOOK is a type of section (kprobe__vfs_read), each program is a hook of its own.
 */

#include <stdbool.h>

struct programs;

/* Sets hook, variant, rank and is_doubtful of all programs, by their names and sections. -ENOMEM. */
int alternatives_find(struct programs *programs);
