/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "command/setup.h"
#include "util/duration.h"

#define DURATION_NS	 (10 * NS_PER_S)
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

/* A person gets the largest ones; a file or another program gets all. */
static const char *table_rows(const struct arguments *arguments)
{
	if (arguments->rows)
		return arguments->rows;
	return !arguments->output_path && isatty(STDOUT_FILENO) ? ROWS_ON_TERMINAL : NULL;
}

int command_once(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(agent_freep) struct agent *agent = NULL;
	struct agent_options options = { .set = &setup.set, .n_exporters = 1, .is_once = true, .is_filter = true };
	uint64_t duration_ns = arguments->duration_ns;
	enum exit_code code;
	int err, status = 0;

	if (!can_write(arguments->output_path))
		return EXIT_USE;
	code = setup_open(arguments, arguments->words, &setup);
	if (code != EXIT_OK)
		return code;
	options.exporters = setup_add_exporter(&setup, exporters[arguments->format], arguments->output_path,
					       table_rows(arguments));
	if (!options.exporters)
		return EXIT_INTERNAL;
	options.config = setup.config;
	err = agent_new(&options, &agent);
	if (err)
		return setup_exit_code(err);
	if (!duration_ns && !arguments->command)
		duration_ns = DURATION_NS;
	err = agent_once(agent, duration_ns, arguments->command, &status);
	if (err == -EIO)
		return EXIT_OUTPUT;
	return err ? EXIT_INTERNAL : status;
}
