/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "command/setup.h"

#define ROWS_ON_TERMINAL "10"

/* By the value of --format=. */
static const char *const exporters[] = { "console", "json", "bpftrace-json" };

/* Checked before anything is attached. */
static bool can_write(const char *path)
{
	_cleanup_(closep) int fd = -1;
	struct stat status;

	if (!path || !strcmp(path, "-") || (!stat(path, &status) && S_ISFIFO(status.st_mode)))
		return true;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd < 0)
		fprintf(stderr, "bpfpush once: --output=%s: %s\n", path, strerror(errno));
	return fd >= 0;
}

int command_once(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(agent_freep) struct agent *agent = NULL;
	/* A person gets the largest ones; a file or another program gets all. */
	bool is_cut = !arguments->rows && !arguments->output_path && isatty(STDOUT_FILENO);
	enum exit_code code;
	int status = 0;

	if (!can_write(arguments->output_path))
		return EXIT_USE;
	code = setup_open(arguments, arguments->words, &setup);
	if (code != EXIT_OK)
		return code;
	if (setup_replace_exporters(&setup, exporters[arguments->format], arguments->output_path,
				    is_cut ? ROWS_ON_TERMINAL : arguments->rows))
		return EXIT_INTERNAL;
	code = setup_count(arguments, &setup, true, &agent, &status);
	for (size_t i = 0; code == EXIT_OK && i < setup.set.n_shown; i++)
		if (setup.set.items[i]->is_probe && !setup.set.items[i]->metrics[0]->n_series)
			fprintf(stderr, "bpfpush once: %s: there was nothing to count\n",
				setup.set.items[i]->descriptor->description);
	return code == EXIT_OK ? status : (int)code;
}
