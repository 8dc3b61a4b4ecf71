/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Cgroup ids to names. The id that programs take in the kernel is that of the kernfs node, which on
 * 64-bit machines is the inode number of the cgroup's directory. So a walk of the cgroup2 tree
 * names all cgroups that exist. For one that is gone before the walk, a BPF program records the
 * name in a map when the cgroup is created.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util/cleanup.h"

#define CGROUP_TEXT_BYTES 4096 /* room for any path, and for what it means */

struct cgroups;

/* The mount point of cgroup2 in a file like /proc/self/mounts (fstab(5)), or NULL. To be freed. */
char *cgroups_find_root(FILE *mountinfo);
/* root: the mount point of cgroup2; NULL: found in /proc/self/mounts. -ENOMEM. */
int cgroups_new(const char *root, struct cgroups **ret_cgroups);
struct cgroups *cgroups_free(struct cgroups *cgroups);

/* Borrowed: a map from ids to values of at most CGROUP_TEXT_BYTES with a path in them. -1: none. */
void cgroups_set_names(struct cgroups *cgroups, int map_fd, uint32_t path_offset_bytes, uint32_t path_bytes);
/* Learns all that exist now. -ENOMEM. */
int cgroups_walk(struct cgroups *cgroups);
/* A collection begins: the tree may be walked again, once, for an id that is not known. */
void cgroups_begin(struct cgroups *cgroups);
/*
 * The path below the mount point, "/" for the root; valid until the next call. 1: nobody knows the id now, and
 * the path is NULL; a later collection may know it. -ENOMEM.
 */
int cgroups_get(struct cgroups *cgroups, uint64_t id, const char **ret_path);
/* True once its directory no longer exists. An unknown id is gone only if the whole tree could be walked. */
bool cgroups_is_gone(struct cgroups *cgroups, uint64_t id);

/*
 * The meaning of a path, as in systemd's cg_path_get_unit(): slices are skipped, and the first
 * component that is a unit is the name. A container's 64-digit id takes precedence over the unit in
 * which it runs. Below user@UID.service, a user can make cgroups with any name. So a unit there is
 * named together with its manager, "user@1000.service/nginx.service", and no id counts as a
 * container's. Returns the attribute's name and puts its value into text (size bytes; a longer one
 * is cut).
 */
const char *cgroup_name(const char *path, char *text, size_t size);

DEFINE_CLEANUP(struct cgroups *, cgroups_free);
