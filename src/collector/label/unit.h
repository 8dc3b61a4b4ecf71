/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "util/setting-table.h"

/*
 * The meaning of a cgroup's path. A table of layouts (unit.c) says of each component, from the root
 * on, which program made it, what it is, and what may be believed below it: nothing below a
 * container, a guest or a unit, as those that are inside can choose names there. So the outermost
 * container, guest or unit is the name. A guest without a unit is its path. Below user@UID.service
 * a unit is named together with its manager, "user@1000.service/nginx.service". Below the service
 * of a container runtime, the container takes precedence. A path that ends in "/" is that of a
 * cgroup above, which gives its name to one whose own path is not known. Returns the attribute's
 * name and puts its value into text (size bytes; a longer one is cut).
 */
const char *unit_name(const char *path, char *text, size_t size);
/* Does a path end in "/", and is not the root's? */
bool unit_is_from_above(const char *path);

/*
 * Patterns of names, as in fnmatch(3), except that a backslash is a plain character and "*" matches
 * "/" too.
 */
struct unit_choice {
	struct setting_list include; /* empty: all */
	struct setting_list exclude;
	struct setting_list fold;
	/*
	 * A cgroup that is called so is a unit, with all below it, whatever else is chosen. NULL:
	 * none. Borrowed.
	 */
	const char *own;
};

/*
 * The unit of a cgroup's path, by the choice: the attribute and its text, to be freed; text NULL:
 * it is not wanted. The choice's own one is its bare name as process.linux.cgroup, which no other
 * cgroup is. -ENOMEM.
 */
int unit_of_path(const struct unit_choice *choice, const char *path, const char **ret_attribute,
		 char **ret_text);
/* Is it not within another cgroup that has the same name before it is chosen or folded? */
bool unit_is_top(const struct unit_choice *choice, const char *path);
/*
 * What the unit is called: its own name, or the first pattern of fold that it matches. NULL: it is
 * not wanted.
 */
const char *unit_choose(const struct unit_choice *choice, const char *name);
