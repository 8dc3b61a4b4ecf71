/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"
#include "config/internal.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "util/array.h"
#include "util/trust.h"

static int add_path(struct setting_list *paths, const char *directory, const char *name)
{
	char **path = array_add(&paths->items, &paths->n_items, sizeof(*path));

	return path && asprintf(path, "%s/%s", directory, name) >= 0 ? 0 : -ENOMEM;
}

int config_is_file(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 5 && !strcmp(entry->d_name + length - 5, ".conf");
}

/* Adds a drop-in, unless one of a stronger root has that name and masks it. */
static int add_drop_in(struct setting_list *paths, size_t first, const char *directory,
		       const char *name)
{
	while (first < paths->n_items && strcmp(basename(paths->items[first]), name))
		first++;
	return first < paths->n_items ? 0 : add_path(paths, directory, name);
}

/* Those before first in paths are not drop-ins. */
static int add_drop_ins(struct setting_list *paths, size_t first, const char *root,
			struct diag *diag)
{
	char parent[PATH_MAX], directory[PATH_MAX + 16];
	_cleanup_(freep) struct dirent **entries = NULL;
	int n, r = 0;

	snprintf(parent, sizeof(parent), "%s/bpfpush", root);
	snprintf(directory, sizeof(directory), "%s/bpfpush.conf.d", parent);
	n = scandir(directory, &entries, config_is_file, NULL);
	if (n < 0 && errno == ENOMEM)
		return -ENOMEM;
	if (n < 0 && errno != ENOENT)
		diag_add(diag, directory, 0, "cannot be read: %s", strerror(errno));
	/* Only a directory that files are taken from: /run/bpfpush is the service's own. */
	if (n > 0)
		trust_check_directory(directory, diag);
	if (n > 0 || (first && !strncmp(paths->items[0], parent, strlen(parent))))
		trust_check_directory(parent, diag);
	for (int i = 0; i < n; i++) {
		if (r >= 0)
			r = add_drop_in(paths, first, directory, entries[i]->d_name);
		free(entries[i]);
	}
	return r;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(basename(*(char *const *)left), basename(*(char *const *)right));
}

int config_files_find(const char *const *roots, struct diag *diag, struct setting_list *paths)
{
	struct stat status;
	size_t first;
	int r = 0;

	/* The strongest that exists; if it cannot be read, that is reported when it is opened. */
	for (const char *const *root = roots; *root && r >= 0; root++) {
		r = add_path(paths, *root, "bpfpush/bpfpush.conf");
		if (r < 0 || lstat(paths->items[0], &status) == 0 || errno != ENOENT)
			break;
		free(paths->items[--paths->n_items]);
	}
	first = paths->n_items;
	for (; *roots && r >= 0; roots++)
		r = add_drop_ins(paths, first, *roots, diag);
	if (paths->n_items)
		qsort(paths->items + first, paths->n_items - first, sizeof(*paths->items),
		      compare_names);
	return r;
}
