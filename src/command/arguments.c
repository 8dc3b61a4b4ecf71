/* SPDX-License-Identifier: Apache-2.0 */
#include "command/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "util/duration.h"
#include "util/log.h"
#include "util/parse.h"

static const char *const formats[] = { "table", "json", "bpftrace-json", NULL };

static int check_rows(const char *text, const char **ret_complaint)
{
	uint64_t rows;

	*ret_complaint = "must be a whole number, like 10";
	return parse_u64(text, &rows);
}

#define ROW(member, name, commands_, type, argument_, help_, ...)                                      \
	SETTING(struct arguments, member, name, type, NULL, .commands = (commands_), .argument = (argument_), \
		.help = (help_), ##__VA_ARGS__)

static const struct setting_row rows[] = {
	ROW(config_path, "--config", COMMAND_ALL, SETTING_TEXT, "FILE", "read this configuration file and no other"),
	ROW(collector_directory, "--collector-directory", COMMAND_ALL, SETTING_TEXT, "DIR",
	    "look for collectors in this directory first"),
	ROW(log_level, "--log-level", COMMAND_ALL, SETTING_CHOICE, "LEVEL", "error, warning, info or debug",
	    .choices = log_level_names),
	ROW(is_console, "--console", COMMAND_RUN, SETTING_BOOL, NULL, "show a table instead of pushing"),
	ROW(interval_ns, "--interval", COMMAND_RUN, SETTING_DURATION, "TIME", "time between collections, like 10s",
	    .minimum = 100 * NS_PER_MS, .maximum = 86400 * NS_PER_S),
	ROW(format, "--format", COMMAND_ONCE, SETTING_CHOICE, "FORMAT", "table (default), json or bpftrace-json",
	    .choices = formats),
	ROW(output_path, "--output", COMMAND_ONCE, SETTING_TEXT, "FILE",
	    "append to this file instead of writing to standard output"),
	ROW(duration_ns, "--for", COMMAND_COUNTS, SETTING_DURATION, "TIME", "count for this long, like 10s or 500ms",
	    .minimum = 1),
	ROW(probes, "--probe", COMMAND_COUNTS, SETTING_LIST, "PROBE",
	    "count at a hook, like \"latency uprobe:libc:getaddrinfo by unit\""),
	ROW(is_json, "--json", COMMAND_STATUS | COMMAND_LIST, SETTING_BOOL, NULL, "print JSON"),
	ROW(is_available, "--available", COMMAND_LIST, SETTING_BOOL, NULL,
	    "show every collector that there is, on or off, with a line each; attach nothing"),
	ROW(is_connect, "--connect", COMMAND_CHECK, SETTING_BOOL, NULL,
	    "also try to reach each receiver, without delivering anything"),
	ROW(rows, "--rows", COMMAND_RUN | COMMAND_ONCE, SETTING_TEXT, "N",
	    "lines to show for each metric; 0 shows all", .check = check_rows),
	ROW(is_help, "--help", COMMAND_ALL, SETTING_BOOL, NULL, "print this"),
	ROW(is_version, "--version", COMMAND_ALL, SETTING_BOOL, NULL, "print the version"),
};
static const struct setting_table table = SETTING_TABLE(rows, struct arguments);

void arguments_print_options(enum command_name command, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *argument = rows[i].argument;
		char text[64];

		snprintf(text, sizeof(text), "%s%s%s", rows[i].key, argument ? "=" : "", argument ?: "");
		if (rows[i].commands & command)
			fprintf(f, "  %-28s %s\n", text, rows[i].help);
	}
}

/* value: NULL for an option that takes none. */
static int set_option(struct arguments *arguments, const char *program, const char *key, const char *value)
{
	const struct assignment assignment = { key, value ?: "yes", program, 0, 0 };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	if (value && !*value)
		diag_add(&diag, program, 0, "%s= needs a value", key);
	else if (setting_table_set(&table, arguments, &assignment, &diag))
		return -ENOMEM;
	fputs(buf_text(&diag.text), stderr);
	return diag.n_errors ? -EINVAL : 0;
}

int arguments_parse(enum command_name command, int argc, char **argv, struct arguments *arguments)
{
	struct option long_options[ARRAY_SIZE(rows) + 1] = { 0 };
	int option, which = 0, err;
	char program[32];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		long_options[i] = (struct option){ rows[i].commands & command ? rows[i].key + 2 : "\n",
						   rows[i].argument != NULL, NULL, 0 };
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--")) {
			arguments->command = argv + i + 1;
			argv[i] = NULL;
			argc = i;
		}
	snprintf(program, sizeof(program), "bpfpush %s", argv[0]);
	argv[0] = program; /* what getopt_long()'s messages begin with */
	while ((option = getopt_long(argc, argv, "h", long_options, &which)) != -1) {
		if (option == '?') {
			fprintf(stderr, "see %s --help\n", program);
			return -EINVAL;
		}
		err = set_option(arguments, program, option == 'h' ? "--help" : rows[which].key, optarg);
		if (err || arguments->is_help || arguments->is_version)
			return err;
	}
	arguments->words = argv + optind;
	arguments->n_words = (size_t)(argc - optind);
	if (!arguments->command)
		return 0;
	/* Only what counts for a while can do so while a command runs. */
	if (!(command & COMMAND_COUNTS))
		fprintf(stderr, "%s does not run a command: remove \"--\" and everything after it\n", program);
	else if (!*arguments->command)
		fprintf(stderr, "%s: write a command after \"--\"\n", program);
	else
		return 0;
	return -EINVAL;
}

void arguments_done(struct arguments *arguments)
{
	setting_table_done(&table, arguments);
}
