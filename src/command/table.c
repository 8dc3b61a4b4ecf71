/* SPDX-License-Identifier: Apache-2.0 */
#include "command/table.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#include "agent/scope.h"
#include "command/ask.h"
#include "export/text/output.h"
#include "util/array.h"
#include "util/log.h"
#include "util/parse.h"
#include "view/grid.h"
#include "view/overview.h"

#define OTHER_LINES 5 /* of a screen: two above the rows, two below them, and the prompt */
#define HINT	    "details: --all, or a collector such as syscalls (bpfpush list --available)"

static bool has_overview(const struct collector_set *set)
{
	for (size_t i = 0; i < set->n_shown; i++)
		for (size_t j = 0; j < overview_n_columns; j++)
			if (collector_find_metric(set->items[i], overview_columns[j].metric))
				return true;
	return false;
}

/* What a row is of. The unit is the same for all that a command does. */
static struct setting_list list_attributes(const struct arguments *arguments)
{
	static char pid[] = "process.pid", name[] = "process.executable.name", process[] = "process";
	static char *of_command[] = { pid, name }, *of_all[] = { process };

	if (!arguments->is_per_process && !ask_is_of_processes(arguments))
		return arguments->by;
	if (arguments->is_alone)
		return (struct setting_list){ .items = of_command,
					      .n_items = ARRAY_SIZE(of_command) };
	if (arguments->by.n_items)
		return arguments->by;
	return (struct setting_list){ .items = of_all, .n_items = ARRAY_SIZE(of_all) };
}

/* As many rows as the terminal has room for, and all in a file. */
static uint64_t find_limit(const struct arguments *arguments, int fd)
{
	struct winsize size = { 0 };
	uint64_t limit = 0;

	if (arguments->limit)
		(void)parse_u64(arguments->limit, &limit);
	else if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_row)
		limit = size.ws_row > OTHER_LINES ? size.ws_row - OTHER_LINES : 1;
	return limit;
}

static const char *file_of(const struct arguments *arguments)
{
	return arguments->output_path && strcmp(arguments->output_path, "-") ?
	       arguments->output_path : NULL;
}

static bool open_file(struct table *table, const struct arguments *arguments,
		      struct top_options *options)
{
	const char *path = file_of(arguments);
	/* O_NONBLOCK: a pipe without a reader is refused instead of waited for. */
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

	if (path)
		options->fd = table->fd = open(path, flags, 0644);
	if (options->fd < 0)
		fprintf(stderr, "bpfpush once: --output=%s: %s\n", path,
			errno == ENXIO ? "is a pipe that nobody reads" : strerror(errno));
	else if (path)
		fcntl(options->fd, F_SETFL, O_APPEND); /* a slow reader is waited for */
	return options->fd >= 0;
}

enum exit_code table_begin(struct table *table, const struct arguments *arguments,
			   struct setup *setup)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct setting_list by = list_attributes(arguments), where = { 0 };
	char condition[64], *conditions[] = { condition };
	struct top_options options = {
		.by = &by, .where = &where, .sort = arguments->sort, .is_plain = true,
				       .fd = STDOUT_FILENO,
	};

	if (!ask_is_general(arguments) || !has_overview(&setup->set))
		return EXIT_OK;
	snprintf(condition, sizeof(condition), "unit=%s", scope_name());
	if (arguments->is_alone)
		where = (struct setting_list){ .items = conditions,
					       .n_items = ARRAY_SIZE(conditions) };
	if (!open_file(table, arguments, &options))
		return EXIT_OUTPUT;
	options.limit = find_limit(arguments, options.fd);
	options.has_colour = output_has_colour(options.fd, &options.width);
	table->top = top_new(&options);
	if (!table->top || top_ask(table->top, &setup->question, &diag))
		return EXIT_INTERNAL;
	log_lines(LOG_LEVEL_ERROR, buf_text(&diag.text));
	setup->counting.view = top_view;
	setup->counting.view_user = table->top;
	return diag.n_errors ? EXIT_USE : EXIT_OK;
}

/* A person who reads the table may not know that there is more. errno, or 0. */
static int print_hint(int fd)
{
	unsigned int width;
	bool has_colour = output_has_colour(fd, &width);

	if (!isatty(fd))
		return 0;
	if (dprintf(fd, has_colour ? SGR_FAINT "%.*s" SGR_END "\n" : "%.*s\n",
		    (int)grid_fit(HINT, width), HINT) < 0)
		return errno;
	return 0;
}

enum exit_code table_end(const struct table *table, const struct arguments *arguments)
{
	int fd = table->fd < 0 ? STDOUT_FILENO : table->fd;
	int error = top_error(table->top) ?: print_hint(fd);

	if (error)
		fprintf(stderr, "bpfpush once: %s: %s\n", file_of(arguments) ?: "standard output", strerror(error));
	return error ? EXIT_OUTPUT : EXIT_OK;
}

void table_done(struct table *table)
{
	top_free(table->top);
	closep(&table->fd);
}
