/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A walk through all directories below one, a step at a time. Each step costs a few system calls at
 * most.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/cleanup.h"

struct walk;

/* NULL: no memory. */
struct walk *walk_new(const char *root);
void walk_free(struct walk *walk);
bool walk_is_over(const struct walk *walk);
/* Something could not be read, other than what went meanwhile. */
bool walk_is_partial(const struct walk *walk);
/*
 * True: *ret_id is the inode number of a directory, and *ret_path its path below the root, "" for
 * the root itself, valid until the next step. A path that ends in "/" is that of a directory above,
 * and its own would be too long. Not after the walk is over.
 */
bool walk_step(struct walk *walk, uint64_t *ret_id, const char **ret_path);

DEFINE_CLEANUP(struct walk *, walk_free);
