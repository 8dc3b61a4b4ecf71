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
#include <stdio.h>

#include "util/cleanup.h"

struct cgroup {
	uint64_t id;
	char *path;	       /* "/system.slice/nginx.service"; "/" is the root */
	const char *attribute; /* "systemd.unit.name", "container.id" or "process.linux.cgroup" */
	char *value;
	uint32_t looked; /* kept by cgroup.c: when cgroups_is_gone() last looked for its directory */
	bool is_gone;	 /* … and did not find it */
};

struct cgroups;

/* The mount point of cgroup2 in a file like /proc/self/mountinfo (proc(5)), or NULL. To be freed. */
char *cgroups_find_root(FILE *mountinfo);
/* root: the mount point of cgroup2; NULL: found in /proc/self/mountinfo. -ENOMEM. */
int cgroups_new(const char *root, struct cgroups **ret_cgroups);
struct cgroups *cgroups_free(struct cgroups *cgroups);

/* Borrowed: a map from ids to values of at most 4096 bytes with a path in them. -1: none. */
void cgroups_set_names(struct cgroups *cgroups, int map_fd, uint32_t path_offset_bytes, uint32_t path_bytes);
/* Learns all that exist now. -ENOMEM. */
int cgroups_walk(struct cgroups *cgroups);
/* A collection begins: the tree may be walked again, once, for an id that is not known. */
void cgroups_begin(struct cgroups *cgroups);
/*
 * 1: nobody knows the id now, so it is named process.linux.cgroup="id:N"; a later collection may know it.
 * Valid until the next call. -ENOMEM.
 */
int cgroups_get(struct cgroups *cgroups, uint64_t id, const struct cgroup **ret_cgroup);
/* True once its directory no longer exists. An unknown id is gone only if the whole tree could be walked. */
bool cgroups_is_gone(struct cgroups *cgroups, uint64_t id);

/*
 * What a path means, as systemd's cg_path_get_unit() reads it: slices are passed over, the first component
 * that is a unit is the name. A container's 64-digit id takes precedence over the unit that it runs in.
 * Below user@UID.service a user makes cgroups, under any name. There an inner unit is named together with
 * its manager, "user@1000.service/nginx.service", and no id is a container's. Returns the attribute's name
 * and puts its value into text (size bytes; a longer one is cut).
 */
const char *cgroup_name(const char *path, char *text, size_t size);

DEFINE_CLEANUP(struct cgroups *, cgroups_free);
