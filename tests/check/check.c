/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     check KIND DIRECTORY [--update]
 *
 * Reads every NAME.conf of DIRECTORY as a KIND, each wrong in some way, and compares what is said of it
 * with NAME.expect: all of it, in its order, the path as "NAME.conf". --update writes NAME.expect anew, for
 * a person to read. A new kind is a row in kinds[].
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "util/diag.h"

static int read_config(const char *path, struct diag *diag)
{
	/* Not to look for os-release and machine-id. */
	static const char *const roots[] = { NULL };
	_cleanup_(config_freep) struct config *config = NULL;

	return config_read(path, roots, diag, &config);
}

static const struct kind {
	const char *name;
	int (*read)(const char *path, struct diag *diag); /* what is wrong goes to diag; a failure is its own */
} kinds[] = {
	{ "config", read_config },
};

static int read_expected(const char *path, struct buf *text)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	char block[4096];
	size_t n;

	if (!f)
		return -errno;
	while ((n = fread(block, 1, sizeof(block), f)))
		buf_append(text, block, n);
	return buf_error(text);
}

static int write_expected(const char *path, struct buf *text)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "we");

	if (!f || fputs(buf_text(text), f) < 0)
		return -errno;
	return 0;
}

static bool check_one(const struct kind *kind, const char *path, bool is_update)
{
	_cleanup_(buf_done) struct buf expected = BUF_INIT;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	char expect_path[NAME_MAX + 16];
	int r;

	snprintf(expect_path, sizeof(expect_path), "%.*s.expect", (int)(strlen(path) - strlen(".conf")), path);
	r = kind->read(path, &diag);
	if (r < 0) {
		printf("%s: failed: %s\n", path, strerror(-r));
		return false;
	}
	if (!diag.n_errors) {
		printf("%s: nothing is said to be wrong\n", path);
		return false;
	}
	if (is_update && write_expected(expect_path, &diag.text) < 0)
		printf("%s: cannot be written\n", expect_path);
	r = read_expected(expect_path, &expected);
	if (r < 0) {
		printf("%s: %s\n", expect_path, strerror(-r));
		return false;
	}
	if (!strcmp(buf_text(&diag.text), buf_text(&expected)))
		return true;
	printf("%s: expected\n%sbut it says\n%s", path, buf_text(&expected), buf_text(&diag.text));
	return false;
}

static int is_conf(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && !strcmp(entry->d_name + length - 5, ".conf");
}

static int check_all(const struct kind *kind, bool is_update)
{
	struct dirent **entries;
	int n = scandir(".", &entries, is_conf, alphasort), n_wrong = 0;

	if (n <= 0) {
		printf("there is no NAME.conf\n");
		return EXIT_FAILURE;
	}
	for (int i = 0; i < n; i++) {
		n_wrong += !check_one(kind, entries[i]->d_name, is_update);
		free(entries[i]);
	}
	free(entries);
	printf("%d files read as %s, %d not as expected\n", n, kind->name, n_wrong);
	return n_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	bool is_update = argc == 4 && !strcmp(argv[3], "--update");

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && (argc == 3 || is_update); i++)
		if (!strcmp(kinds[i].name, argv[1])) {
			if (chdir(argv[2]) == 0)
				return check_all(&kinds[i], is_update);
			printf("%s: %s\n", argv[2], strerror(errno));
			return EXIT_FAILURE;
		}
	printf("usage: check KIND DIRECTORY [--update]\n");
	return EXIT_FAILURE;
}
