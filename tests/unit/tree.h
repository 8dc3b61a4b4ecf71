/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A directory for one test, with files of its own; gone at the end of the scope. */

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "util/cleanup.h"

struct tree {
	char path[64];
};

static inline int tree_remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline void tree_done(struct tree *tree)
{
	nftw(tree->path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void tree_init(struct tree *tree)
{
	snprintf(tree->path, sizeof(tree->path), "/tmp/bpfpush-test-XXXXXX");
	assert_non_null(mkdtemp(tree->path));
}

/* The path of a file in the tree, in one of four buffers that take turns. */
static inline const char *tree_path(const struct tree *tree, const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int turn;
	char *path = paths[turn++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", tree->path, name);
	return path;
}

static inline void tree_make_parents(const char *path)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		mkdir(part, 0755);
	}
}

static inline void tree_write_bytes(const struct tree *tree, const char *name, const void *data, size_t size)
{
	const char *path = tree_path(tree, name);
	_cleanup_(fclosep) FILE *f = NULL;

	tree_make_parents(path);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
}

static inline void tree_write(const struct tree *tree, const char *name, const char *text)
{
	tree_write_bytes(tree, name, text, strlen(text));
}

static inline void tree_link(const struct tree *tree, const char *name, const char *target)
{
	const char *path = tree_path(tree, name);

	tree_make_parents(path);
	assert_ok(symlink(target, path));
}
