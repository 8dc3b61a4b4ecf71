/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The target of a program: what follows the first "/" of its section, in the object or in the
 * descriptor.
 *
 *     kprobe/FUNCTION[+OFFSET]          uprobe/FILE:FUNCTION[+OFFSET], uprobe/FILE:0xOFFSET
 *     tp/CATEGORY/NAME                  usdt/FILE:PROVIDER:NAME
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct descriptor;
struct descriptor_program;
struct programs;

#define TARGET_BYTES 512

/* Is it of one of these types, each between blanks: " tp tracepoint "? */
bool section_is(const char *section, const char *types);
const char *target_of(const char *section);
/* The name of a function, "" if there is none, and the offset after it. */
size_t target_offset(const char *target, char name[TARGET_BYTES]);
/*
 * What follows the ":" that has n_after more of them after it, and what stands before it. NULL:
 * there is none.
 */
const char *target_split(const char *target, int n_after, char head[TARGET_BYTES]);
/*
 * A file or directory of tracefs, or NULL and errno; ENOENT: it is not there, as far as this
 * process may know.
 */
FILE *target_open_trace(const char *name);

/* Does it say where the program is attached? */
bool target_is_given(const struct descriptor_program *described);
/*
 * Gives the programs of an opened object the targets of the descriptor; their sections hold them
 * then, and their alternatives are to be found again. -ENOMEM.
 */
int targets_set(struct programs *programs, const struct descriptor *descriptor);
