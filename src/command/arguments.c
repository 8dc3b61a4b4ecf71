/* SPDX-License-Identifier: Apache-2.0 */
#include "command/arguments.h"

#include <errno.h>
#include <string.h>

#include "util/duration.h"
#include "util/log.h"
#include "util/parse.h"

static const char *const formats[] = { "table", "csv", "json", "bpftrace-json", NULL };
static const char *const event_formats[] = { "table", "csv", "json", NULL };

static int check_limit(const char *text, const char **ret_complaint)
{
	uint64_t limit;

	int err = parse_u64(text, &limit);

	*ret_complaint = err == -ERANGE ? "is too large" : "must be a whole number, like 10";
	return err;
}

#define ROW(member, name, commands_, type, argument_, help_, ...)                          \
	SETTING(struct arguments, member, name, type, NULL, .commands = (commands_),       \
		.argument = (argument_), .help = (help_), ##__VA_ARGS__)

static const struct setting_row rows[] = {
	ROW(config_path, "--config", COMMAND_ALL, SETTING_TEXT, "FILE", "read this configuration file and no other"),
	ROW(collector_directory, "--collector-directory", COMMAND_ALL, SETTING_TEXT, "DIR",
	    "look for collectors in this directory first"),
	ROW(log_level, "--log-level", COMMAND_ALL, SETTING_CHOICE, "LEVEL", "error, warning, info or debug",
	    .choices = log_level_names),
	ROW(by, "--by", COMMAND_ASKS, SETTING_WORDS, "ATTRIBUTES",
	    "add up what does not differ in these attributes, like \"unit,syscall.name\"; \"process\"; or \"none\""),
	ROW(where, "--where", COMMAND_ASKS | COMMAND_EVENTS, SETTING_LIST, "CONDITION",
	    "show only what meets it, like \"unit=nginx*\", \"error.type\" or \"direction!=read\""),
	ROW(sort, "--sort", COMMAND_ASKS, SETTING_TEXT, "COLUMN", "the column to sort by, like total, rate or p99"),
	ROW(limit, "--limit", COMMAND_ASKS, SETTING_TEXT, "N", "rows to show for each metric; 0 shows all",
	    .check = check_limit),
	ROW(settings, "--set", COMMAND_ASKS | COMMAND_REPORT | COMMAND_EVENTS, SETTING_LIST, "SETTING",
	    "change a setting of a collector: COLLECTOR.KEY=VALUE"),
	ROW(is_per_process, "--per-process", COMMAND_ASKS | COMMAND_REPORT, SETTING_BOOL, NULL,
	    "count each process by itself"),
	ROW(duration_calls, "--duration", COMMAND_ASKS | COMMAND_REPORT, SETTING_TEXT, "CALLS",
	    "measure how long these system calls take, like read,write; all: each of them"),
	ROW(is_whole_machine, "--whole-machine", COMMAND_ALONE, SETTING_BOOL, NULL,
	    "count all that happens while COMMAND runs, not only COMMAND and what it starts"),
	ROW(is_all, "--all", COMMAND_ONCE, SETTING_BOOL, NULL, "show each metric in detail, not one table of all units"),
	ROW(is_histogram, "--histogram", COMMAND_ONCE, SETTING_BOOL, NULL, "draw histograms, a line for each bucket"),
	ROW(is_heatmap, "--heatmap", COMMAND_ASKS, SETTING_BOOL, NULL, "draw histograms over time"),
	ROW(interval_ns, "--interval", COMMAND_RUN | COMMAND_ASKS, SETTING_DURATION, "TIME", "time between collections, like 10s",
	    .minimum = 100 * NS_PER_MS, .maximum = 86400 * NS_PER_S),
	ROW(count, "--count", COMMAND_RUN | COMMAND_ASKS, SETTING_U64, "N", "end after this many intervals",
	    .minimum = 1, .maximum = 1000000),
	ROW(format, "--format", COMMAND_ONCE, SETTING_CHOICE, "FORMAT", "table (default), csv, json or bpftrace-json",
	    .choices = formats),
	ROW(format, "--format", COMMAND_EVENTS, SETTING_CHOICE, "FORMAT", "table (default), csv or json",
	    .choices = event_formats),
	ROW(output_path, "--output", COMMAND_ONCE, SETTING_TEXT, "FILE",
	    "append to this file, also written -o FILE, instead of writing to standard output"),
	ROW(output_path, "--output", COMMAND_REPORT, SETTING_TEXT, "FILE",
	    "write the page to this file, also written -o FILE; \"-\" is standard output"),
	ROW(points_path, "--points", COMMAND_REPORT, SETTING_TEXT, "FILE",
	    "append what the page shows, complete, to this file, as JSON lines"),
	ROW(duration_ns, "--for", COMMAND_COUNTS | COMMAND_TOP | COMMAND_EVENTS, SETTING_DURATION, "TIME",
	    "count for this long, like 10s or 500ms",
	    .minimum = NS_PER_MS),
	ROW(probes, "--probe", COMMAND_PROBES, SETTING_LIST, "PROBE",
	    "count at a hook, like \"latency uprobe:libc:getaddrinfo by unit\""),
	ROW(is_json, "--json", COMMAND_STATUS | COMMAND_LIST, SETTING_BOOL, NULL, "print JSON"),
	ROW(is_available, "--available", COMMAND_LIST, SETTING_BOOL, NULL,
	    "show every collector that there is, on or off, with a line each; attach nothing"),
	ROW(is_connect, "--connect", COMMAND_CHECK, SETTING_BOOL, NULL,
	    "also try to reach each receiver, without delivering anything"),
	ROW(is_help, "--help", COMMAND_ALL, SETTING_BOOL, NULL, "print this"),
	ROW(is_version, "--version", COMMAND_ALL, SETTING_BOOL, NULL, "print the version"),
};
static const struct setting_table table = SETTING_TABLE(rows, struct arguments);

void arguments_print_options(enum command_name command, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *argument = rows[i].argument ?: "";
		char text[64];

		snprintf(text, sizeof(text), "%s%s%s", rows[i].key, *argument ? "=" : "", argument);
		if (rows[i].commands & command)
			fprintf(f, "  %-28s %s\n", text, rows[i].help);
	}
}

/* Where --by-unit is written for --by=unit. */
static bool propose_value(enum command_name command, const char *program, const char *word,
			  struct diag *diag)
{
	array_for_each (row, rows, ARRAY_SIZE(rows)) {
		size_t length = strlen(row->key);

		if (!(row->commands & command) || !row->argument)
			continue;
		if (strncmp(row->key, word, length) || word[length] != '-')
			continue;
		diag_add(diag, program, 0, "unknown option \"%s\": did you mean \"%s=%s\"?", word, row->key,
			 word + length + 1);
		return true;
	}
	return false;
}

/* The option that word names, perhaps with a value, or is the beginning of. NULL: reported. */
static const struct setting_row *find_option(enum command_name command, const char *program,
					     const char *word, struct diag *diag)
{
	const struct setting_row *found = NULL;
	const char *keys[ARRAY_SIZE(rows)];
	size_t length = strcspn(word, "="), n = 0, n_found = 0;
	char name[64];

	array_for_each (row, rows, ARRAY_SIZE(rows)) {
		if (!(row->commands & command))
			continue;
		keys[n++] = row->key;
		if (strncmp(row->key, word, length))
			continue;
		found = row;
		n_found++;
		if (!row->key[length])
			return row;
	}
	if (n_found == 1)
		return found;
	snprintf(name, sizeof(name), "%.*s", (int)length, word);
	if (!propose_value(command, program, name, diag))
		diag_add_unknown(diag, program, 0, "option", name, keys, n);
	return NULL;
}

/*
 * *argv: the option; left at its value, if that is a word of its own. -EINVAL after a message;
 * -ENOMEM.
 */
static int take_option(enum command_name command, const char *program, char ***argv,
		       struct arguments *arguments)
{
	static const char *const letters[][2] = { { "-h", "--help" }, { "-V", "--version" }, { "-o", "--output" } };
	const char *const *letter = array_find_name(letters, ARRAY_SIZE(letters),
						    sizeof(letters[0]), **argv);
	const char *word = letter ? letter[1] : **argv;
	struct assignment assignment = { .value = strchr(word, '='), .path = program };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	const struct setting_row *row = find_option(command, program, word, &diag);

	if (row && row->argument && assignment.value)
		assignment.value++; /* after the "=" */
	else if (row && row->argument)
		assignment.value = (*argv)[1] ? *++*argv : "";
	if (row && row->argument && !*assignment.value)
		diag_add(&diag, program, 0, "%s needs a value: write %s=%s", row->key, row->key, row->argument);
	else if (row && !row->argument && assignment.value)
		diag_add(&diag, program, 0, "%s takes no value", row->key);
	assignment.key = row ? row->key : "";
	assignment.value = assignment.value ?: "yes";
	if (!diag.n_errors && setting_table_set(&table, arguments, &assignment, &diag))
		return -ENOMEM;
	if (diag.n_errors)
		fprintf(stderr, "%ssee %s --help\n", buf_text(&diag.text), program);
	return diag.n_errors ? -EINVAL : 0;
}

int arguments_parse(enum command_name command, int argc, char **argv, struct arguments *arguments)
{
	char program[32];
	int err;

	arguments->name = command;
	snprintf(program, sizeof(program), "bpfpush %s", argv[0]);
	arguments->words = calloc((size_t)argc, sizeof(*argv));
	if (!arguments->words)
		return -ENOMEM;
	while (*++argv) {
		if (!strcmp(*argv, "--")) {
			arguments->command = argv + 1;
			break;
		}
		if (**argv != '-' || !(*argv)[1]) {
			arguments->words[arguments->n_words++] = *argv;
			continue;
		}
		err = take_option(command, program, &argv, arguments);
		if (err || arguments->is_help || arguments->is_version)
			return err;
	}
	if (!arguments->command && !arguments->is_whole_machine)
		return 0;
	arguments->is_alone = command & COMMAND_ALONE &&
			      !arguments->is_whole_machine;
	/* Only what counts for a while can do so while a command runs. */
	if (!(command & (COMMAND_COUNTS | COMMAND_EVENTS)))
		fprintf(stderr, "%s does not run a command: remove \"--\" and everything after it\n", program);
	else if (!arguments->command || !*arguments->command)
		fprintf(stderr, "%s: %s\n", program, arguments->command ? "write a command after \"--\"" :
			"--whole-machine has no effect without a command: write one after \"--\", or remove it");
	else
		return 0;
	return -EINVAL;
}

void arguments_done(struct arguments *arguments)
{
	setting_table_done(&table, arguments);
	free(arguments->words);
}
