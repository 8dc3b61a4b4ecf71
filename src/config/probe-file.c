/* SPDX-License-Identifier: Apache-2.0 */
#include "config/probe-internal.h"

#include <ctype.h>
#include <string.h>

#include "collector/hook/file.h"
#include "util/array.h"

void probe_look_at_marks(struct probe *probe)
{
	struct mark *marks;
	char entries[16];
	size_t n;

	if (!file_find_marks(probe->target, &marks, &n) && n)
		probe->n_arguments = MARK_ARGUMENTS;
	array_for_each (mark, marks, n) {
		if ((int)mark->n_arguments < probe->n_arguments)
			probe->n_arguments = (int)mark->n_arguments;
		for (unsigned int i = 0; (int)i < probe->n_arguments; i++) {
			const char *operand;
			size_t length = mark_operand(mark, i, &operand);

			if (!mark->arguments[i].bytes)
				snprintf(probe->unreadable[i], sizeof(probe->unreadable[i]), "%.*s",
					 (int)length, operand);
		}
	}
	snprintf(entries, sizeof(entries), "%zu", n);
	if (n)
		probe_write_param(probe, "mark_places_entries", entries);
	array_free(&marks, &n);
}

/* libc, libc.so.6, libc-2.31.so, but not libc++.so */
bool probe_is_of_libc(const struct probe *probe)
{
	char path[TARGET_BYTES], *base;

	target_split(probe->target, 0, path);
	base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	return !strncmp(base, "libc", 4) &&
	       (strchr(".", base[4]) || (base[4] == '-' && isdigit((unsigned char)base[5])));
}
