/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "collector/label/cgroup.h"
#include "util/array.h"

/* The root of all, not that of a namespace. */
static bool is_whole(const char *path)
{
	struct statfs found;
	struct stat status;

	return !statfs(path, &found) && found.f_type == CGROUP2_SUPER_MAGIC && !stat(path, &status) &&
	       status.st_ino == CGROUPS_ROOT_INODE;
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
	return root && !statfs(root, &found) && found.f_type == CGROUP2_SUPER_MAGIC ? TAKE_PTR(root) : NULL;
}

char *cgroups_find_above(const char *root, uint64_t id, const char *path)
{
	struct stat status;
	char full[PATH_MAX];

	for (const char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
		snprintf(full, sizeof(full), "%s%s", root, end);
		if (!stat(full, &status) && status.st_ino == id)
			return strndup(path, (size_t)(end - path));
	}
	return !stat(root, &status) && status.st_ino == id ? strdup(path) : NULL;
}
