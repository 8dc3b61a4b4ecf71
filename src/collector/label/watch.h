/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Maps that are kept filled with the cgroups whose path fits a pattern. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "collector/label/rule.h"

struct watch {
	LIST_ENTRY(watch) others;
	const char *map; /* its name; the descriptor's string */
	struct patterns patterns;
	/* borrowed; of a hash map by cgroup id, or of cgroup storage; -1: not yet */
	int fd;
	bool is_storage; /* it loses its cgroups by itself */
	bool is_full;	 /* it had no room for a cgroup … */
	bool has_told;	 /* … which has been said */
};

LIST_HEAD(watches, watch);

/* A cgroup is there, or with path NULL it is gone. root: where cgroups are mounted. */
void watches_tell(const struct watches *watches, const char *root, uint64_t id, const char *path);
