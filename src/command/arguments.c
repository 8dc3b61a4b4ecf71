/* SPDX-License-Identifier: Apache-2.0 */
#include "command/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "util/duration.h"
#include "util/log.h"
#include "util/parse.h"
#include "util/setting-table.h"

static int check_rows(const char *text, const char **ret_complaint)
{
	uint64_t rows;

	*ret_complaint = "must be a whole number, like 10";
	return parse_u64(text, &rows);
}

#define ROW(...) SETTING(struct arguments, __VA_ARGS__)

static const struct setting_row rows[] = {
	[OPT_CONFIG] = ROW(config_path, "--config", SETTING_TEXT, NULL),
	[OPT_DIRECTORY] = ROW(collector_directory, "--collector-directory", SETTING_TEXT, NULL),
	[OPT_LOG_LEVEL] = ROW(log_level, "--log-level", SETTING_CHOICE, NULL, .choices = log_level_names),
	[OPT_CONSOLE] = ROW(is_console, "--console", SETTING_BOOL, NULL),
	[OPT_INTERVAL] = ROW(interval_ns, "--interval", SETTING_DURATION, NULL, .minimum = 100 * NS_PER_MS,
			     .maximum = 86400 * NS_PER_S),
	[OPT_FORMAT] = ROW(format, "--format", SETTING_TEXT, NULL),
	[OPT_OUTPUT] = ROW(output_path, "--output", SETTING_TEXT, NULL),
	[OPT_FOR] = ROW(duration_ns, "--for", SETTING_DURATION, NULL, .minimum = 1),
	[OPT_JSON] = ROW(is_json, "--json", SETTING_BOOL, NULL),
	[OPT_CONNECT] = ROW(is_connect, "--connect", SETTING_BOOL, NULL),
	[OPT_ROWS] = ROW(rows, "--rows", SETTING_TEXT, NULL, .check = check_rows),
	[OPT_HELP] = ROW(is_help, "--help", SETTING_BOOL, NULL),
	[OPT_VERSION] = ROW(is_version, "--version", SETTING_BOOL, NULL),
};
static const struct setting_table table = SETTING_TABLE(rows, struct arguments);

static const struct {
	const char *argument; /* NULL: none */
	const char *help;
} option_table[ARRAY_SIZE(rows)] = {
	[OPT_CONFIG] = { "FILE", "read this configuration file and no other" },
	[OPT_DIRECTORY] = { "DIR", "look for collectors in this directory first" },
	[OPT_LOG_LEVEL] = { "LEVEL", "error, warning, info or debug" },
	[OPT_CONSOLE] = { NULL, "show a table instead of pushing" },
	[OPT_INTERVAL] = { "TIME", "time between collections, like 10s" },
	[OPT_FORMAT] = { "FORMAT", "table (default), json or bpftrace-json" },
	[OPT_OUTPUT] = { "FILE", "append to this file instead of writing to standard output" },
	[OPT_FOR] = { "TIME", "count for this long, like 10s or 500ms" },
	[OPT_JSON] = { NULL, "print JSON" },
	[OPT_CONNECT] = { NULL, "also try to reach each receiver, without delivering anything" },
	[OPT_ROWS] = { "N", "lines to show for each metric; 0 shows all" },
	[OPT_HELP] = { NULL, "print this" },
	[OPT_VERSION] = { NULL, "print the version" },
};

void arguments_print_options(unsigned int options, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *argument = option_table[i].argument;
		char text[64];

		if (!(options & OPTION_SET(i)))
			continue;
		snprintf(text, sizeof(text), "%s%s%s", rows[i].key, argument ? "=" : "", argument ? argument : "");
		fprintf(f, "  %-28s %s\n", text, option_table[i].help);
	}
}

/* value: NULL for an option that takes none. */
static int set_option(struct arguments *arguments, const char *program, const struct setting_row *row,
		      const char *value)
{
	const struct assignment assignment = { row->key, value ? value : "yes", program, 0 };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	if (value && !*value)
		diag_add(&diag, program, 0, "%s= needs a value", row->key);
	else if (setting_table_set(&table, arguments, &assignment, &diag))
		return -ENOMEM;
	fputs(buf_text(&diag.text), stderr);
	return diag.n_errors ? -EINVAL : 0;
}

/* Only what counts for a while can do so while a command runs. */
static int check_command(const struct arguments *arguments, const char *program, unsigned int options)
{
	if (arguments->command && !(options & OPTION_SET(OPT_FOR))) {
		fprintf(stderr, "%s does not run a command: remove \"--\" and everything after it\n", program);
		return -EINVAL;
	}
	if (arguments->command && !*arguments->command) {
		fprintf(stderr, "%s: write a command after \"--\"\n", program);
		return -EINVAL;
	}
	return 0;
}

/* Takes "--" and the command after it from argv. */
static void take_command(int *argc, char **argv, struct arguments *arguments)
{
	for (int i = 1; i < *argc; i++)
		if (!strcmp(argv[i], "--")) {
			arguments->command = argv + i + 1;
			argv[i] = NULL;
			*argc = i;
		}
}

int arguments_parse(const char *command, unsigned int options, int argc, char **argv, struct arguments *arguments)
{
	struct option long_options[ARRAY_SIZE(rows) + 1] = { 0 };
	int option, which = 0, err;
	char program[32];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		long_options[i] = (struct option){ options & OPTION_SET(i) ? rows[i].key + 2 : "\n",
						   option_table[i].argument != NULL, NULL, 0 };
	take_command(&argc, argv, arguments);
	snprintf(program, sizeof(program), "bpfpush %s", command);
	argv[0] = program; /* what getopt_long()'s messages begin with */
	while ((option = getopt_long(argc, argv, "h", long_options, &which)) != -1) {
		if (option == '?') {
			fprintf(stderr, "see %s --help\n", program);
			return -EINVAL;
		}
		err = set_option(arguments, program, &rows[option == 'h' ? OPT_HELP : which], optarg);
		if (err || arguments->is_help || arguments->is_version)
			return err;
	}
	arguments->words = argv + optind;
	arguments->n_words = (size_t)(argc - optind);
	return check_command(arguments, program, options);
}

void arguments_done(struct arguments *arguments)
{
	setting_table_done(&table, arguments);
}
