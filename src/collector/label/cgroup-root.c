/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "collector/label/cgroup-root.h"
#include "util/array.h"

/* The root of all, not that of a namespace. */
static bool is_whole(const char *path)
{
	struct statfs found;
	struct stat status;

	return !statfs(path, &found) && found.f_type == CGROUP2_SUPER_MAGIC &&
	       !stat(path, &status) && status.st_ino == CGROUPS_ROOT_INODE;
}

char *cgroups_find_root(FILE *mounts)
{
	_cleanup_(freep) char *first = NULL;
	const struct mntent *mount;

	while (mounts && (mount = getmntent(mounts))) {
		if (strcmp(mount->mnt_type, "cgroup2"))
			continue;
		if (is_whole(mount->mnt_dir))
			return strdup(mount->mnt_dir);
		first = first ?: strdup(mount->mnt_dir);
	}
	return TAKE_PTR(first);
}

char *cgroups_own_root(void)
{
	/* Where a container has the process ids of the machine, and not its cgroups. */
	static const char *const of_machine[] = { "/proc/1/root/sys/fs/cgroup", "/proc/1/root/sys/fs/cgroup/unified" };
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/mounts", "re");
	_cleanup_(freep) char *root = cgroups_find_root(f);
	struct statfs found;

	for (size_t i = 0; i < ARRAY_SIZE(of_machine) && !(root && is_whole(root)); i++)
		if (is_whole(of_machine[i])) {
			free(root);
			root = strdup(of_machine[i]);
		}
	/* Something else may be mounted on top of it. */
	return root && !statfs(root, &found) && found.f_type == CGROUP2_SUPER_MAGIC ?
	       TAKE_PTR(root) : NULL;
}

/*
 * The numbers of the initial namespaces are those of include/linux/proc_ns.h, the same in every
 * kernel.
 */
static const struct {
	const char *path;
	ino_t initial;
	const char *hidden;
	bool is_of_cgroups; /* the machine's may be mounted all the same */
	bool is_of_services; /* those of systemd, too: to be said only after others */
} namespaces[] = {
	{ "/proc/self/ns/cgroup", 0xEFFFFFFB,
	  "not all units and containers outside of it have their names (--cgroupns=host)", .is_of_cgroups = true },
	{ "/proc/self/ns/pid", 0xEFFFFFFC,
	  "CPU time, page faults and I/O of a process outside of it are counted when it ends, and with per_process it seems to "
	  "have ended (--pid=host)" },
	{ "/proc/self/ns/uts", 0xEFFFFFFE, "host.name is its own name (--uts=host)", .is_of_services = true },
};

/*
 * What the namespaces of this process hide of the machine, in one sentence, with the options of
 * podman and docker that cure it; nothing, if they hide nothing. is_part: only a part of all
 * cgroups can be seen. Network namespaces have no number that is known, and do not hide names.
 */
static void complain_of_namespaces(bool is_part, struct buf *out)
{
	const char *before = "the container in which bpfpush runs hides a part of the machine: ";
	struct stat status;

	array_for_each (row, namespaces, ARRAY_SIZE(namespaces)) {
		if ((row->is_of_cgroups && !is_part) || (row->is_of_services && !out->size))
			continue;
		if (stat(row->path, &status) || status.st_ino == row->initial)
			continue;
		buf_printf(out, "%s%s", before, row->hidden);
		before = "; ";
	}
}

int cgroup_root_init(struct cgroup_root *root, const char *path)
{
	struct stat status;

	root->path = path ? strdup(path) : cgroups_own_root();
	if (path && !root->path)
		return -ENOMEM;
	root->is_part = root->path && !stat(root->path, &status) &&
			status.st_ino != CGROUPS_ROOT_INODE;
	complain_of_namespaces(root->is_part, &root->hidden);
	return 0;
}

void cgroup_root_done(struct cgroup_root *root)
{
	buf_done(&root->hidden);
	free(root->above);
	free(root->path);
}

/*
 * length: of the path of the cgroup with this id, from the root of all. Is it here as well, below
 * our own root?
 */
static char *find_above(const struct cgroup_root *root, uint64_t id, const char *path,
			size_t length)
{
	struct stat status;
	char full[PATH_MAX];

	for (size_t i = 1; i <= length; i++) {
		if (i < length && path[i] != '/')
			continue;
		snprintf(full, sizeof(full), "%s%.*s", root->path, (int)(length - i), path + i);
		if (!stat(full, &status) && status.st_ino == id)
			return strndup(path, i);
	}
	return NULL;
}

void cgroup_root_learn(struct cgroup_root *root, uint64_t id, uint64_t parent, const char *path)
{
	if (!root->is_part || root->above || *path != '/')
		return;
	/* Where a cgroup is gone, the one that it was in may still be there. */
	root->above = find_above(root, id, path, strlen(path)) ?:
		      find_above(root, parent, path, (size_t)(strrchr(path, '/') - path));
}

const char *cgroup_root_below(const struct cgroup_root *root, const char *path)
{
	size_t n = root->above ? strlen(root->above) : 0;

	if (!n)
		return path;
	if (strncmp(path, root->above, n) || path[n] != '/')
		return NULL;
	return path[n + 1] ? path + n : CGROUPS_PART_ROOT;
}

const char *cgroup_root_complaint(struct cgroup_root *root)
{
	if (root->path)
		return buf_text(&root->hidden);
	return "no cgroup2 tree is mounted, so numbers do not show units and containers: mount it (mount -t cgroup2 cgroup2 "
	       "/sys/fs/cgroup) or, where cgroup v1 is in use, start the machine with systemd.unified_cgroup_hierarchy=1";
}
