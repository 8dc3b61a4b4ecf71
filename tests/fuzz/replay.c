/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     replay-TARGET FILE|DIRECTORY...
 *
 * Gives each file to a target once, as libFuzzer would, without libFuzzer: so that corpora, and what once
 * crashed, are part of the ordinary tests, with any compiler.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "util/buf.h"
#include "util/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	char block[4096];
	size_t n;

	if (!f)
		return -errno;
	while ((n = fread(block, 1, sizeof(block), f)))
		buf_append(&text, block, n);
	if (ferror(f) || buf_error(&text))
		return -EIO;
	/* Of the size exactly, so that a sanitizer sees one byte too many. */
	_cleanup_(freep) uint8_t *data = malloc(text.size ? text.size : 1);
	if (!data)
		return -ENOMEM;
	if (text.size)
		memcpy(data, text.data, text.size);
	LLVMFuzzerTestOneInput(data, text.size);
	return 1;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* How many files were given, or -errno. */
static int replay(const char *path)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_visible, alphasort), n_done = 0;

	if (n < 0)
		return errno == ENOTDIR ? replay_file(path) : -errno;
	for (int i = 0; i < n; i++) {
		char file[PATH_MAX];
		int r;

		snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
		r = n_done < 0 ? n_done : replay(file);
		n_done = r < 0 ? r : n_done + r;
		free(entries[i]);
	}
	free(entries);
	return n_done;
}

int main(int argc, char **argv)
{
	int n_all = 0;

	for (int i = 1; i < argc; i++) {
		int n = replay(argv[i]);

		if (n < 0) {
			printf("%s: %s\n", argv[i], strerror(-n));
			return EXIT_FAILURE;
		}
		n_all += n;
	}
	printf("%d inputs\n", n_all);
	return n_all ? EXIT_SUCCESS : EXIT_FAILURE;
}
