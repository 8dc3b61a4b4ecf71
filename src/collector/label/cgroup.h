/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Cgroup ids to names. The id that programs take in the kernel is that of the kernfs node, which on
 * 64-bit machines is the inode number of the cgroup's directory. So a walk of the cgroup2 tree
 * names all cgroups that exist. A BPF program tells of those that come and go.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/cleanup.h"

struct cgroups;
struct store_tail;
struct store;
struct stored;
struct unit_choice;

/*
 * root: the mount point of cgroup2; NULL: found in /proc/self/mounts. choice is borrowed. -ENOMEM.
 */
int cgroups_new(const char *root, const struct unit_choice *choice, struct cgroups **ret_cgroups);
void cgroups_free(struct cgroups *cgroups);

/*
 * Takes names from a ring buffer whose records are an id (u64) and a path. lost_fd: of an array
 * with one number, of the records that it had no room for; it can be mapped. Both are borrowed.
 * -errno.
 */
int cgroups_listen(struct cgroups *cgroups, int ring_fd, int lost_fd);
/*
 * Takes what a ring holds whose writers will end: that of a process before. Before the first
 * cgroups_catch_up().
 */
void cgroups_hear_out(struct cgroups *cgroups, int ring_fd);
/* Readable when it is time for cgroups_catch_up(); -1: never. */
int cgroups_wake_fd(const struct cgroups *cgroups);
/* Reads what the ring holds. */
void cgroups_catch_up(struct cgroups *cgroups);
/*
 * What one record says: the cgroup was made; with path "", it is gone. A path that ends in "/" is
 * that of a cgroup above, whose name it has until a walk finds its own. parent: the id of the
 * cgroup that it is in; 0: not known.
 */
void cgroups_tell(struct cgroups *cgroups, uint64_t id, uint64_t parent, const char *path);

/* Learns all that exist now, as far as it may go in one collection. -ENOMEM. */
int cgroups_walk(struct cgroups *cgroups);
/* A collection begins: catches up, may go on with a walk, and forgets what is long gone. */
void cgroups_begin(struct cgroups *cgroups);

/* Is it the topmost cgroup of its unit? Outside of units, each cgroup is. */
enum cgroup_place { CGROUP_UNKNOWN, /* no walk has met it since it was restored */
		    CGROUP_TOP,
		    CGROUP_INNER };

/* An attribute and its value, and the path below the root; valid until the next call. */
struct cgroup_unit {
	const char *attribute, *text; /* text NULL: nobody wants the unit */
	const char *path; /* NULL: not kept, or not known */
	enum cgroup_place place;
	bool is_cut; /* the name is that of a cgroup above, and may become another one */
};
/* 1: nobody knows the id now, so its unit is "unknown"; a later collection may know it. -ENOMEM. */
int cgroups_get(struct cgroups *cgroups, uint64_t id, struct cgroup_unit *ret_unit);
/* Before the first walk: paths are kept too, which needs more memory. */
void cgroups_keep_paths(struct cgroups *cgroups);
/*
 * The maps that are kept filled (label/watch.h), to be changed; those that are new are filled by a
 * walk.
 */
struct watches *cgroups_watches(struct cgroups *cgroups);
void cgroups_walk_again(struct cgroups *cgroups);
/* Why names cannot be found here, or not all, and what to do; "": nothing is wrong. */
const char *cgroups_complaint(struct cgroups *cgroups);
/*
 * A later process is not told again: what the ring tells is recorded there at once, and what an
 * earlier process has recorded there is known. Borrowed.
 */
void cgroups_record(struct cgroups *cgroups, struct store_tail *told);
/*
 * For a later process. Those that are known already stay as they are. A walk finds out which are
 * gone. has_other_choice: the configuration has changed what units become. -ENOMEM, -EINVAL.
 */
void cgroups_save(const struct cgroups *cgroups, struct store *out);
int cgroups_restore(struct cgroups *cgroups, struct stored *in, bool has_other_choice);
/* How many are known to exist. */
size_t cgroups_count(const struct cgroups *cgroups);
/* True once it no longer exists. An unknown id is gone only if the whole tree could be walked. */
bool cgroups_is_gone(struct cgroups *cgroups, uint64_t id);

DEFINE_CLEANUP(struct cgroups *, cgroups_free);
