/* SPDX-License-Identifier: Apache-2.0 */
#include "config/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/array.h"
#include "util/trust.h"

static const char *base_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* Inserts a path before the one at place at. */
static int add_path(struct config_files *files, size_t at, const char *directory, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	if (!array_add(&files->paths, &files->n, sizeof(path))) {
		free(path);
		return -ENOMEM;
	}
	memmove(files->paths + at + 1, files->paths + at, (files->n - 1 - at) * sizeof(path));
	files->paths[at] = path;
	return 0;
}

/*
 * The strongest one that exists; one that cannot be read exists, and is reported when it is opened.
 */
static int add_main(struct config_files *files, const char *const *roots)
{
	struct stat status;
	int r = 0;

	for (; *roots && r >= 0; roots++) {
		r = add_path(files, 0, *roots, "bpfpush/bpfpush.conf");
		if (r < 0 || lstat(files->paths[files->n - 1], &status) == 0 || errno != ENOENT)
			break;
		free(files->paths[--files->n]);
	}
	return r;
}

int config_is_file(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 5 && !strcmp(entry->d_name + length - 5, ".conf");
}

/* Adds a drop-in at its place by name, unless one of a stronger root has that name and masks it. */
static int add_drop_in(struct config_files *files, size_t first, const char *directory, const char *name)
{
	size_t at = first;

	while (at < files->n && strcmp(base_name(files->paths[at]), name) < 0)
		at++;
	if (at < files->n && !strcmp(base_name(files->paths[at]), name))
		return 0;
	return add_path(files, at, directory, name);
}

/* Those before first in files are not drop-ins. */
static int add_drop_ins(struct config_files *files, size_t first, const char *root, struct diag *diag)
{
	_cleanup_(freep) char *directory = NULL;
	struct dirent **entries = NULL;
	char *slash;
	int n, err, r = 0;

	if (asprintf(&directory, "%s/bpfpush/bpfpush.conf.d", root) < 0)
		return TAKE_PTR(directory), -ENOMEM;
	n = scandir(directory, &entries, config_is_file, NULL);
	err = n < 0 ? errno : 0;
	/* Only a directory that files are taken from: /run/bpfpush is the service's own. */
	if (n > 0)
		trust_check_directory(directory, diag);
	slash = strrchr(directory, '/');
	*slash = '\0';
	if (n > 0 || (first && !strncmp(files->paths[0], directory, (size_t)(slash - directory))))
		trust_check_directory(directory, diag);
	*slash = '/';
	if (err && err != ENOENT)
		diag_add(diag, directory, 0, "cannot be read: %s", strerror(err));
	if (err)
		return err == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < n; i++) {
		if (r >= 0)
			r = add_drop_in(files, first, directory, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int config_files_find(const char *const *roots, struct diag *diag, struct config_files *ret_files)
{
	_cleanup_(config_files_done) struct config_files files = { 0 };
	int r = add_main(&files, roots);
	size_t first = files.n;

	for (; *roots && r >= 0; roots++)
		r = add_drop_ins(&files, first, *roots, diag);
	if (r < 0)
		return r;
	*ret_files = files;
	files = (struct config_files){ 0 };
	return 0;
}

void config_files_done(struct config_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->paths[i]);
	free(files->paths);
	*files = (struct config_files){ 0 };
}

int config_file_open(const char *path, bool is_named, struct diag *diag, FILE **ret_f)
{
	_cleanup_(closep) int fd = -1;
	struct stat status;

	*ret_f = NULL;
	/* O_NONBLOCK: do not wait for the writer of a FIFO that somebody put there. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (is_named ? 0 : O_NONBLOCK));
	if (fd < 0 || fstat(fd, &status) < 0) {
		int r = -errno;

		diag_add(diag, path, 0, "cannot be read: %s", strerror(-r));
		return r == -ENOENT || r == -ENOMEM ? r : 0;
	}
	if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3))
		return 0;
	if (S_ISDIR(status.st_mode) || (!is_named && !S_ISREG(status.st_mode))) {
		diag_add(diag, path, 0, "is %s, not a file", S_ISDIR(status.st_mode) ? "a directory" : "a device or pipe");
		return 0;
	}
	if (S_ISREG(status.st_mode))
		trust_check(fd, path, diag);
	*ret_f = fdopen(fd, "r");
	if (!*ret_f)
		return -ENOMEM;
	TAKE_FD(fd);
	return 0;
}
