/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/label/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/array.h"

#define OPEN_MAX   64 /* directories at a time */
#define PATH_BYTES 4096

/* Where to go on in a directory that had to be closed. */
struct place {
	uint64_t id;
	long at;
	size_t length;
};

struct walk {
	DIR *dirs[OPEN_MAX]; /* from the root down to where it is */
	size_t lengths[OPEN_MAX]; /* of their paths */
	unsigned int depth;
	struct place *closed; /* between the last two of them */
	size_t n_closed;
	long from; /* where the last one of dirs was opened again; or 0 */
	bool is_partial;
	char path[PATH_BYTES];
};

/* The last directory makes room for one below it. */
static bool close_last(struct walk *walk)
{
	DIR *dir = walk->dirs[walk->depth - 1];
	struct place place = { .at = telldir(dir), .length = walk->lengths[walk->depth - 1] };
	struct stat status;

	/* Names of a directory that have the same place would be met again and again. */
	if (place.at <= walk->from || fstat(dirfd(dir), &status))
		return false;
	place.id = status.st_ino;
	if (array_append(&walk->closed, &walk->n_closed, &place))
		return false;
	closedir(dir);
	walk->depth--;
	return true;
}

/* Goes down into a directory, without following a link. */
static void enter_directory(struct walk *walk, int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		walk->is_partial |= errno != ENOENT || !walk->depth;
		closep(&fd);
	} else if (walk->depth == OPEN_MAX && !close_last(walk)) {
		walk->is_partial = true;
		closedir(dir);
	} else {
		walk->from = 0;
		walk->lengths[walk->depth] = strlen(walk->path);
		walk->dirs[walk->depth++] = dir;
	}
}

/* Goes up from the last directory, of which nothing is left to be read. */
static void leave_directory(struct walk *walk)
{
	DIR *dir = walk->dirs[--walk->depth], *parent = NULL;
	struct place place;
	struct stat status;
	int fd;

	if (walk->n_closed) {
		place = walk->closed[--walk->n_closed];
		array_shrink(&walk->closed, walk->n_closed + 1, walk->n_closed, sizeof(place));
		fd = openat(dirfd(dir), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		parent = fd < 0 || fstat(fd, &status) || status.st_ino != place.id ? NULL :
			 fdopendir(fd);
		if (parent) {
			seekdir(parent, place.at);
			walk->from = place.at;
			walk->lengths[walk->depth] = place.length;
			walk->dirs[walk->depth++] = parent;
		} else {
			walk->is_partial = true;
			array_free(&walk->closed, &walk->n_closed);
			closep(&fd);
		}
	}
	closedir(dir);
}

struct walk *walk_new(const char *root)
{
	struct walk *walk = calloc(1, sizeof(*walk));

	if (walk)
		enter_directory(walk, AT_FDCWD, root);
	return walk;
}

void walk_free(struct walk *walk)
{
	if (!walk)
		return;
	while (walk->depth)
		closedir(walk->dirs[--walk->depth]);
	array_free(&walk->closed, &walk->n_closed);
	free(walk);
}

bool walk_is_over(const struct walk *walk)
{
	return !walk->depth;
}

bool walk_is_partial(const struct walk *walk)
{
	return walk->is_partial;
}

/* For a directory in the last one. */
static void extend_path(struct walk *walk, size_t length, const char *name)
{
	bool has_room = length + strlen(name) + sizeof("//") <= sizeof(walk->path);

	if (!length || walk->path[length - 1] != '/')
		snprintf(walk->path + length, sizeof(walk->path) - length, "/%s",
			 has_room ? name : "");
}

bool walk_step(struct walk *walk, uint64_t *ret_id, const char **ret_path)
{
	DIR *dir = walk->dirs[walk->depth - 1];
	size_t length = walk->lengths[walk->depth - 1];
	const struct dirent *entry;
	struct stat status;

	errno = 0;
	entry = readdir(dir);
	walk->path[length] = '\0';
	if (!entry) {
		walk->is_partial |= errno != 0;
		leave_directory(walk);
		return false;
	}
	if (!strcmp(entry->d_name, ".")) {
		*ret_path = walk->path;
		*ret_id = fstat(dirfd(dir), &status) ? 0 : status.st_ino;
		walk->is_partial |= !*ret_id;
		return *ret_id;
	}
	if (entry->d_type == DT_DIR && strcmp(entry->d_name, "..") != 0) {
		extend_path(walk, length, entry->d_name);
		enter_directory(walk, dirfd(dir), entry->d_name);
	}
	return false;
}
