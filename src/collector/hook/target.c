/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/hook/target.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/descriptor.h"
#include "collector/hook/alternative.h"
#include "collector/program.h"
#include "util/array.h"
#include "util/cleanup.h"

#define USDT_ARGUMENTS 12 /* <sys/sdt.h> */

#if defined(__x86_64__)
#define MACHINE "x86_64-linux-gnu"
#else
#define MACHINE "aarch64-linux-gnu"
#endif
/* Where the linker and the shell look first is not asked: it differs between processes. */
#define PLACES "{/usr/local/lib,/lib/" MACHINE ",/usr/lib/" MACHINE ",/lib64,/usr/lib64,/lib,/usr/lib,/usr/local/bin," \
	       "/usr/bin,/usr/sbin}"

bool section_is(const char *section, const char *types)
{
	char type[64];

	snprintf(type, sizeof(type), " %.*s ", (int)strcspn(section, "/"), section);
	return strstr(types, type);
}

const char *target_of(const char *section)
{
	const char *slash = strchr(section, '/');

	return slash ? slash + 1 : "";
}

size_t target_offset(const char *target, char name[TARGET_BYTES])
{
	size_t length = *target >= '0' && *target <= '9' ? 0 : strcspn(target, "+");

	snprintf(name, TARGET_BYTES, "%.*s", (int)length, target);
	return target[length] ? strtoull(target + length + (target[length] == '+'), NULL, 0) : 0;
}

const char *target_split(const char *target, int n_after, char head[TARGET_BYTES])
{
	const char *end = target + strlen(target);

	for (; end > target; end--)
		if (*end == ':' && !n_after--)
			break;
	snprintf(head, TARGET_BYTES, "%.*s", (int)(end - target), target);
	return end > target ? end + 1 : NULL;
}

bool target_find_file(char path[TARGET_BYTES])
{
	char pattern[TARGET_BYTES + sizeof(PLACES) + 32];
	glob_t found = { 0 };
	bool is_found;

	if (strchr(path, '/'))
		return !access(path, F_OK);
	if (!*path || strpbrk(path, "*?[{\\"))
		return false;
	snprintf(pattern, sizeof(pattern), PLACES "/%s{,.so.[0-9]*}", path);
	is_found = !glob(pattern, GLOB_BRACE, NULL, &found);
	if (is_found)
		snprintf(path, TARGET_BYTES, "%s", found.gl_pathv[0]);
	globfree(&found);
	return is_found;
}

/* A note in the file has PROVIDER, NAME and the arguments, each of the three with a 0 at its end. */
int target_arguments(const char *target)
{
	char path[TARGET_BYTES], words[TARGET_BYTES];
	const char *rest = target_split(target, 1, path), *found;
	int n = snprintf(words, sizeof(words), "%s", rest ?: "") + 1, n_arguments = USDT_ARGUMENTS;
	_cleanup_(closep) int fd = rest && target_find_file(path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	struct stat status = { 0 };
	const char *bytes = fd < 0 || fstat(fd, &status) ? MAP_FAILED :
			    mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	*strchrnul(words, ':') = '\0';
	found = bytes == MAP_FAILED ? NULL : memmem(bytes, (size_t)status.st_size, words, (size_t)n);
	if (found) {
		n_arguments = found[n] != '\0';
		for (found += n; found < bytes + status.st_size && *found; found++)
			n_arguments += *found == ' ' && found[-1] != ','; /* of ARM: -4@[sp, 28] */
	}
	if (bytes != MAP_FAILED)
		munmap((void *)bytes, (size_t)status.st_size);
	return n_arguments;
}

static int retarget(struct program *program, const struct descriptor_program *described)
{
	const char *binary = described->binary;
	const char *target = described->interfaces.n ? described->interfaces.items->text :
				described->event ?: described->target ?: target_of(program->section);
	char *section, path[TARGET_BYTES];

	if (binary)
		target = target_split(target, section_is(program->section, " usdt "), path) ?: target;
	if (asprintf(&section, "%.*s/%s%s%s", (int)strcspn(program->section, "/"), program->section, binary ?: "",
		     binary ? ":" : "", target) < 0)
		return -ENOMEM;
	free(program->section);
	program->section = section;
	return 0;
}

int targets_set(struct programs *programs, const struct descriptor *descriptor)
{
	bool is_changed = false;
	int err = 0;

	array_for_each (program, programs->items, programs->n) {
		array_for_each (described, descriptor->programs, descriptor->n_programs) {
			bool is_placed = described->target || described->binary || described->event ||
					 described->interfaces.n;

			if (err || !is_placed || !program_is_called(program, described->name))
				continue;
			err = retarget(program, described);
			is_changed = true;
		}
	}
	return err || !is_changed ? err : alternatives_find(programs);
}
