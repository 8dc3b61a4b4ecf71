/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the tree of all cgroups is, or the part of it that this process can see. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "util/buf.h"

#define CGROUPS_ROOT_INODE 1 /* of the root of all cgroups (kernfs); a namespace has another root */
/* the path of the root that is seen, where that is not the root of all */
#define CGROUPS_PART_ROOT  "/."

/*
 * The mount point of cgroup2 in a file like /proc/self/mounts (fstab(5)), that of the root of all
 * if it is there. NULL: there is none. To be freed.
 */
char *cgroups_find_root(FILE *mounts);
/* The same for this process, if it is still there. */
char *cgroups_own_root(void);

struct cgroup_root {
	char *path; /* the mount point; NULL: nothing is mounted */
	bool is_part; /* that is not the root of all, but that of a namespace … */
	/* … whose path this is, in which the kernel's paths begin; NULL: not yet known */
	char *above;
	struct buf hidden; /* what namespaces hide, for people */
};

/* path: NULL: that of this process. -ENOMEM. */
int cgroup_root_init(struct cgroup_root *root, const char *path);
void cgroup_root_done(struct cgroup_root *root);
/*
 * For a part: learns where it is from the path of the cgroup with this id, or of the one that it is
 * in.
 */
void cgroup_root_learn(struct cgroup_root *root, uint64_t id, uint64_t parent, const char *path);
/*
 * The kernel's paths begin at the root of all, and those of a walk at our root. NULL: the path is
 * not below our root. Before it is known where that is, the path itself.
 */
const char *cgroup_root_below(const struct cgroup_root *root, const char *path);
/* Why names cannot be found here, or not all, and what to do; "": nothing is wrong. */
const char *cgroup_root_complaint(struct cgroup_root *root);
