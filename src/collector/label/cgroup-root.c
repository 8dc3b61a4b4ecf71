/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/magic.h>
#include <mntent.h>
#include <string.h>
#include <sys/vfs.h>

#include "collector/label/cgroup.h"

char *cgroups_find_root(FILE *mounts)
{
	const struct mntent *mount;

	while (mounts && (mount = getmntent(mounts)))
		if (!strcmp(mount->mnt_type, "cgroup2"))
			return strdup(mount->mnt_dir);
	return NULL;
}

char *cgroups_own_root(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/mounts", "re");
	_cleanup_(freep) char *root = cgroups_find_root(f);
	struct statfs found;

	/* Something else may be mounted on top of it. */
	return root && !statfs(root, &found) && found.f_type == CGROUP2_SUPER_MAGIC ? TAKE_PTR(root) : NULL;
}
