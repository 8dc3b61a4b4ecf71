/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the service's sandbox forbids, and some need: drop-ins that come with bpfpush, to be chosen
 * by name.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/unit.h"
#include "build-config.h"
#include "command/command.h"
#include "util/diag.h"

#define SUFFIX	      ".conf"
#define TEXT_BYTES    (64 << 10)
#define COMMENT_BYTES 160
#define APPLY	      "systemctl daemon-reload && systemctl try-restart " UNIT_NAME

/* The first comment of a drop-in but its licence says what it is for. */
static void print_drop_in(const char *name)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[PATH_MAX], line[COMMENT_BYTES] = "", place[PATH_MAX];

	snprintf(path, sizeof(path), DROP_IN_DIR "/%s" SUFFIX, name);
	snprintf(place, sizeof(place), UNIT_DROP_INS "/%s" SUFFIX, name);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && (*line != '#' || strstr(line, "SPDX")))
		;
	line[strcspn(line, "\n")] = '\0';
	printf("%-12s %-3s %s\n", name, access(place, F_OK) ? "" : "on", line + strspn(line, "# "));
}

static int read_text(const char *path, char *text)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, TEXT_BYTES - 1, f) : 0;

	text[n] = '\0';
	return !f || ferror(f) ? -errno : 0;
}

/* A file that is there already may have been edited: it stays. -errno. */
static int write_text(const char *place, const char *text)
{
	size_t length = strlen(text);
	int fd, err;

	if (mkdir(UNIT_DROP_INS, 0755) && errno != EEXIST)
		return -errno;
	fd = open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	errno = ENOSPC; /* of a short write */
	err = write(fd, text, length) == (ssize_t)length && !fchmod(fd, 0644) && !fsync(fd) ? 0 :
	      -errno;
	if (close(fd) && !err)
		err = -errno;
	if (err)
		unlink(place);
	return err;
}

static enum exit_code put_drop_in(const char *name)
{
	char path[PATH_MAX], place[PATH_MAX], text[TEXT_BYTES];
	int err, unreadable;

	snprintf(path, sizeof(path), DROP_IN_DIR "/%s" SUFFIX, name);
	snprintf(place, sizeof(place), UNIT_DROP_INS "/%s" SUFFIX, name);
	unreadable = read_text(path, text);
	err = unreadable ?: write_text(place, text);
	if (err && err != -EEXIST) {
		const char *failed = unreadable ? path : place;

		fprintf(stderr, "bpfpush allow: %s: %s%s\n", failed, strerror(-err),
			err == -EACCES ? ": run it as root" : "");
		return err == -EACCES || err == -EPERM ? EXIT_RIGHTS : EXIT_OUTPUT;
	}
	printf("%s %s; to undo it, remove this file, and run: " APPLY "\n", place, err ? "is there already" : "is new");
	return EXIT_OK;
}

static enum exit_code apply_drop_in(void)
{
	_cleanup_(buf_done) struct buf why = BUF_INIT;

	if (unit_apply(&why)) {
		fprintf(stderr, "bpfpush allow: systemd did not read it: %s; run: " APPLY "\n", buf_text(&why));
		return EXIT_UNAVAILABLE;
	}
	printf("The service, if it runs, restarts now, and goes on with its counts.\n");
	return EXIT_OK;
}

int command_allow(const struct arguments *arguments)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	enum exit_code code = EXIT_OK;
	const char *names[32];
	size_t n = 0;
	glob_t found;

	if (glob(DROP_IN_DIR "/*" SUFFIX, 0, NULL, &found)) {
		fprintf(stderr, "bpfpush allow: %s: holds no drop-ins: is bpfpush installed?\n", DROP_IN_DIR);
		return EXIT_UNAVAILABLE;
	}
	for (; n < found.gl_pathc && n < ARRAY_SIZE(names); n++) {
		char *name = strrchr(found.gl_pathv[n], '/') + 1;

		name[strlen(name) - strlen(SUFFIX)] = '\0';
		names[n] = name;
	}
	for (size_t i = 0; !arguments->n_words && i < n; i++)
		print_drop_in(names[i]);
	for (size_t i = 0; i < arguments->n_words; i++)
		(void)diag_find(&diag, "bpfpush allow", 0, "drop-in", arguments->words[i], names, n);
	fputs(buf_text(&diag.text), stderr);
	for (size_t i = 0; i < arguments->n_words && !diag.n_errors && code == EXIT_OK; i++)
		code = put_drop_in(arguments->words[i]);
	if (arguments->n_words && !diag.n_errors && code == EXIT_OK)
		code = apply_drop_in();
	globfree(&found);
	return diag.n_errors ? EXIT_USE : code;
}
