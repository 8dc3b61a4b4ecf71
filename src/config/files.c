/* SPDX-License-Identifier: Apache-2.0 */
#include "config/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const char *base_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

static bool has_name(const struct config_files *files, const char *name)
{
	for (size_t i = 0; i < files->n; i++)
		if (!strcmp(base_name(files->paths[i]), name))
			return true;
	return false;
}

static int add_path(struct config_files *files, const char *directory, const char *name)
{
	char **paths = reallocarray(files->paths, files->n + 1, sizeof(*paths));
	size_t size = strlen(directory) + strlen(name) + 2;

	if (!paths)
		return -ENOMEM;
	files->paths = paths;
	paths[files->n] = malloc(size);
	if (!paths[files->n])
		return -ENOMEM;
	snprintf(paths[files->n++], size, "%s/%s", directory, name);
	return 0;
}

static bool is_drop_in(const char *name)
{
	size_t length = strlen(name);

	return name[0] != '.' && length > 5 && !strcmp(name + length - 5, ".conf");
}

static int add_drop_ins(struct config_files *files, const char *root, struct diag *diag)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT;
	const struct dirent *entry;
	DIR *directory;
	int r = 0;

	buf_printf(&path, "%s/bpfpush/bpfpush.conf.d", root);
	if (buf_error(&path))
		return buf_error(&path);
	directory = opendir(buf_text(&path));
	if (!directory) {
		if (errno != ENOENT)
			diag_add(diag, buf_text(&path), 0, "cannot be read: %s", strerror(errno));
		return errno == ENOMEM ? -ENOMEM : 0;
	}
	while (r >= 0 && (entry = readdir(directory)))
		if (is_drop_in(entry->d_name) && !has_name(files, entry->d_name))
			r = add_path(files, buf_text(&path), entry->d_name);
	closedir(directory);
	return r;
}

static int add_main(struct config_files *files, const char *const *roots)
{
	struct stat status;
	int r = 0;

	for (; *roots && r >= 0; roots++) {
		r = add_path(files, *roots, "bpfpush/bpfpush.conf");
		/* One that cannot be read counts: its mistake is told when it is opened. */
		if (r < 0 || lstat(files->paths[files->n - 1], &status) == 0 || errno != ENOENT)
			break;
		free(files->paths[--files->n]);
	}
	return r;
}

static int compare_names(const void *one, const void *other)
{
	return strcmp(base_name(*(char *const *)one), base_name(*(char *const *)other));
}

int config_files_find(const char *const *roots, struct diag *diag, struct config_files *ret_files)
{
	_cleanup_(config_files_done) struct config_files main_file = { 0 }, files = { 0 };
	char **paths;
	int r;

	r = add_main(&main_file, roots);
	for (; *roots && r >= 0; roots++)
		r = add_drop_ins(&files, *roots, diag);
	if (r < 0)
		return r;
	if (!files.n) {
		*ret_files = main_file;
		main_file = (struct config_files){ 0 };
		return 0;
	}
	qsort(files.paths, files.n, sizeof(*files.paths), compare_names);
	paths = reallocarray(main_file.paths, main_file.n + files.n, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	main_file.paths = paths;
	memcpy(paths + main_file.n, files.paths, files.n * sizeof(*paths));
	main_file.n += files.n;
	files.n = 0;
	*ret_files = main_file;
	main_file = (struct config_files){ 0 };
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
	/* Not to wait for the writer of a FIFO that somebody put there. */
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
	*ret_f = fdopen(fd, "r");
	if (!*ret_f)
		return -ENOMEM;
	TAKE_FD(fd);
	return 0;
}
