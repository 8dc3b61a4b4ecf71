/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Maps that are kept filled with the cgroups whose path fits a pattern. */

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch {
	struct watch *next;
	const char *map; /* its name; the descriptor's string */
	regex_t *patterns;
	size_t n_patterns;
	int fd;		 /* borrowed; of a hash map by cgroup id, or of cgroup storage */
	bool is_storage; /* it loses its cgroups by itself */
	bool is_full;	 /* it had no room for a cgroup … */
	bool has_told;	 /* … which has been said */
};

/* A cgroup is there, or with path NULL it is gone. root: where cgroups are mounted. */
void watches_tell(struct watch *first, const char *root, uint64_t id, const char *path);
void watches_remove(struct watch **first, const struct watch *watch);
