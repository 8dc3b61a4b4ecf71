/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's types, read once for all objects. libbpf (1.1) looks through all of them, more than a
 * hundred thousand, for each type of each object that it relocates (CO-RE), and without CAP_SYS_ADMIN it
 * must be given them as a file, which it parses once an object. So the few that objects name, and what
 * they consist of, are written to a file in memory, which libbpf is given instead (btf_custom_path).
 *
 * An object is left out, and goes the long way, where the short one might tell something else: where it
 * asks for the ids of the kernel's types, matches types as a whole, names what is neither structure, union
 * nor enum, or names what the kernel itself lacks and a module may have.
 */

#include <stdbool.h>

#include "util/cleanup.h"

struct kernel_types;

/* -ENOMEM. */
int kernel_types_new(struct kernel_types **ret_types);
struct kernel_types *kernel_types_free(struct kernel_types *types);

/* Notes what the object at path relocates against. -errno: it has no such information. */
int kernel_types_want(struct kernel_types *types, const char *path);
/*
 * After the last kernel_types_want(). While the types live, libbpf is given them too where it would read all
 * of the kernel's again. -errno: the kernel's types cannot be read; nothing is left of them.
 */
int kernel_types_read(struct kernel_types *types);
/* What to open the object at path with: valid until the types are freed. NULL: the long way. */
const char *kernel_types_path(const struct kernel_types *types, const char *path);

DEFINE_CLEANUP(struct kernel_types *, kernel_types_free);
