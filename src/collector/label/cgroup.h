/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Cgroup ids to names. The id that the kernel side takes is the kernfs node's, which on 64-bit machines
 * is the inode number of the cgroup's directory; so a walk of the cgroup2 tree names all that exist. One
 * that is gone before the walk is named by a map that a BPF program fills when cgroups are made.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct cgroup {
	uint64_t id;
	char *path;	       /* "/system.slice/nginx.service"; "/" is the root */
	const char *attribute; /* "systemd.unit.name", "container.id" or "process.linux.cgroup" */
	char *value;
	uint32_t looked; /* kept by cgroup.c: when cgroups_is_gone() last looked for its directory */
	bool is_gone;	 /* … and found none */
};

struct cgroups;

/* root: the mount point of cgroup2; NULL: found in /proc/self/mountinfo. -ENOMEM. */
int cgroups_new(const char *root, struct cgroups **ret_cgroups);
struct cgroups *cgroups_free(struct cgroups *cgroups);

/* Borrowed: map id -> value with a path in it. -1: none. */
void cgroups_set_names(struct cgroups *cgroups, int map_fd, uint32_t value_bytes, uint32_t path_offset_bytes);
/* Learns all that exist now. -ENOMEM. */
int cgroups_walk(struct cgroups *cgroups);
/* A collection begins: the tree may be walked again, once, for an id that is not known. */
void cgroups_begin(struct cgroups *cgroups);
/* An id that nobody knows is named process.linux.cgroup="id:N". Valid until cgroups_begin(). -ENOMEM. */
int cgroups_get(struct cgroups *cgroups, uint64_t id, const struct cgroup **ret_cgroup);
/* True once its directory is no longer there. */
bool cgroups_is_gone(struct cgroups *cgroups, uint64_t id);

/*
 * What a path means, as systemd's cg_path_get_unit() reads it: slices are passed over, the first component
 * that is a unit is the name; inside user@UID.service the user's own unit is; a container's 64-digit id
 * goes before the scope that it runs in. Returns the attribute's name and sets *ret_value into text (size
 * bytes; a longer path is cut).
 */
const char *cgroup_name(const char *path, char *text, size_t size);

DEFINE_CLEANUP(struct cgroups *, cgroups_free);
