/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/watch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "util/cleanup.h"

static void put_cgroup(struct watch *watch, const char *root, uint64_t id, const char *path)
{
	const uint64_t yes = 1; /* little endian, so it is 1 in fewer bytes, too */
	_cleanup_(closep) int directory = -1;
	char full[PATH_MAX];
	struct stat status;

	if (watch->is_storage) {
		snprintf(full, sizeof(full), "%s%s", root, path);
		directory = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Not one above, nor a later one. */
		if (directory >= 0 && !fstat(directory, &status) && status.st_ino == id)
			(void)bpf_map_update_elem(watch->fd, &directory, &yes, BPF_ANY);
	} else if (bpf_map_update_elem(watch->fd, &id, &yes, BPF_ANY) == -E2BIG) {
		watch->is_full = true;
	}
}

void watches_tell(const struct watches *watches, const char *root, uint64_t id, const char *path)
{
	struct watch *watch;

	LIST_FOREACH(watch, watches, others) {
		if (path && patterns_fit(&watch->patterns, path, NULL, 0))
			put_cgroup(watch, root, id, path);
		if (!path && !watch->is_storage)
			(void)bpf_map_delete_elem(watch->fd, &id);
	}
}
