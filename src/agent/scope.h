/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A cgroup for one command and what it starts, below the cgroup that we are in, so that what it
 * does is told apart from all else. It is named by scope_name(), and so is all below it (struct
 * unit_choice).
 */

struct scope;

/* One name for the whole process; without characters that mean something in a pattern. */
const char *scope_name(void);
/*
 * -EOPNOTSUPP: no cgroup2 tree is mounted here; -errno of making a cgroup in it. The reason is
 * logged.
 */
int scope_new(struct scope **ret_scope);
/* Moves the calling process there. -errno. For a child after vfork(). */
int scope_enter(const struct scope *scope);
/* What is left in it goes to the cgroup above, and it is removed. Takes NULL. */
void scope_remove(struct scope *scope);
struct scope *scope_free(struct scope *scope);
