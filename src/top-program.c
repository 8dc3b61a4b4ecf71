/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service's program has no screen: here it becomes the one that has, which is otherwise the
 * same.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "build-config.h"
#include "command/command.h"
#include "util/log.h"

#define NAME "bpfpush-top"

int command_top(const struct arguments *arguments)
{
	char path[PATH_MAX + sizeof(NAME)];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	/* In a build tree it lies next to this one. */
	while (n > 0 && path[n - 1] != '/')
		n--;
	memcpy(path + (n > 0 ? n : 0), NAME, sizeof(NAME));
	execv(path, arguments->all);
	execv(PROGRAM_DIR "/" NAME, arguments->all);
	log_error("bpfpush top: " PROGRAM_DIR "/" NAME ": %s: is bpfpush installed as a whole?", strerror(errno));
	return EXIT_UNAVAILABLE;
}
