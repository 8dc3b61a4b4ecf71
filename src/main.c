/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "build-config.h"
#include "command/command.h"
#include "util/array.h"
#include "util/log.h"
#include "util/utf8.h"

static const struct command {
	const char *name;
	enum command_name bit;
	const char *synopsis; /* "": it takes no words */
	const char *help;
	int (*run)(const struct arguments *arguments);
} command_table[] = {
	{ "run", COMMAND_RUN, "[COLLECTOR…]", "count and push until stopped; this is what the service runs", command_run },
	{ "status", COMMAND_STATUS, "",
	  "show what the running service does; exit status 0: all is well, 1: something fails, 3: not running",
	  command_status },
	{ "top", COMMAND_TOP, "[COLLECTOR…]", "show what is busy, live: units, processes, metrics", command_top },
	{ "once", COMMAND_ONCE, "[COLLECTOR…] [-- COMMAND…]", "count for a while, or while COMMAND runs, then print",
	  command_once },
	{ "events", COMMAND_EVENTS, "[COLLECTOR…] [-- COMMAND…]",
	  "show what happens, a line for each event, until Ctrl-C or while COMMAND runs", command_events },
	{ "report", COMMAND_REPORT, "[COLLECTOR…] [-- COMMAND…]",
	  "count for a while and write what was counted as a page for a browser", command_report },
	{ "check", COMMAND_CHECK, "[COLLECTOR…]",
	  "look for mistakes in the configuration and the collectors; needs no privileges", command_check },
	{ "reload", COMMAND_RELOAD, "", "check the configuration, and let the running service use it", command_reload },
	{ "allow", COMMAND_ALLOW, "[NAME…]", "let the service do what its sandbox forbids; without a name, show what there is",
	  command_allow },
	{ "list", COMMAND_LIST, "[COLLECTOR…] [-- COMMAND…]", "show collectors, hooks, costs, maps, metrics and settings",
	  command_list },
	{ "dump", COMMAND_DUMP, "STAGE [COLLECTOR…] [-- COMMAND…]",
	  "print the data at one stage: descriptor, shape, snapshot, batch or otlp", command_dump },
};

static void print_help(const struct command *command, FILE *f)
{
	if (command) {
		fprintf(f, "bpfpush %s [OPTION…]%s%s\n%s\n\n", command->name, *command->synopsis ? " " : "", command->synopsis,
			command->help);
		arguments_print_options(command->bit, f);
		return;
	}
	fprintf(f, "bpfpush COMMAND [OPTION…]\nCounts what the kernel does, by service, and pushes it as OpenTelemetry metrics.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(command_table); i++)
		fprintf(f, "  %-*s%s\n         %s\n", *command_table[i].synopsis ? 7 : 0, command_table[i].name,
			command_table[i].synopsis, command_table[i].help);
	fprintf(f, "\nRun bpfpush COMMAND --help for its options. Manual: bpfpush(8), bpfpush.conf(5).\n");
}

/* word: in place of a command, or NULL. */
static int refuse_command(const char *word)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	if (word && *word == '-')
		diag_add(&diag, "bpfpush", 0, "a command comes before options, as in bpfpush once %s", word);
	else if (word)
		diag_add_unknown(&diag, "bpfpush", 0, "command", word, command_table, ARRAY_SIZE(command_table));
	else
		print_help(NULL, stderr);
	fprintf(stderr, "%s%s", buf_text(&diag.text), word ? "see bpfpush --help\n" : "");
	return EXIT_USE;
}

int main(int argc, char **argv)
{
	_cleanup_(arguments_done) struct arguments arguments = { .log_level = -1 };
	const struct command *command;
	const char *word;
	int fd, r = 0;

	/*
	 * All standard streams are open, or a file that is opened later would become one, and get
	 * what is written there; for reading, so that what is written there still fails.
	 */
	while ((fd = open("/dev/null", O_RDONLY)) >= 0 && fd <= STDERR_FILENO)
		;
	closep(&fd);
	log_init(LOG_LEVEL_INFO);
	if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8"))
		setlocale(LC_CTYPE, "C.UTF-8"); /* all texts are UTF-8, for wcwidth() */
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!utf8_is_printable(argv[i], SIZE_MAX)) {
			fprintf(stderr, "bpfpush: argument %d holds a control character, or is not UTF-8\n", i);
			return EXIT_USE;
		}
	word = argc > 1 ? argv[1] : "";
	arguments.is_help = !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
	arguments.is_version = !strcmp(word, "--version") || !strcmp(word, "-V");
	/* "help COMMAND" */
	word = argc > 1 + arguments.is_help ? argv[1 + arguments.is_help] : NULL;
	command = word ? array_find(command_table, ARRAY_SIZE(command_table), word) : NULL;
	if (!command && !arguments.is_version && (word || !arguments.is_help))
		return refuse_command(word);
	if (command && !arguments.is_help)
		r = arguments_parse(command->bit, argc - 1, argv + 1, &arguments);
	if (r)
		return r == -ENOMEM ? EXIT_INTERNAL : EXIT_USE;
	if (arguments.is_help)
		print_help(command, stdout);
	else if (arguments.is_version)
		printf("bpfpush %s\n", VERSION);
	else if (arguments.n_words && !*command->synopsis) {
		fprintf(stderr, "bpfpush %s: takes no words: remove \"%s\"\n", command->name, arguments.words[0]);
		return EXIT_USE;
	} else {
		arguments.all = argv;
		r = command->run(&arguments);
	}
	if (!fflush(stdout) && !ferror(stdout))
		return r;
	word = command ? command->name : "";
	fprintf(stderr, "bpfpush%s%s: standard output cannot be written: %s\n", *word ? " " : "", word, strerror(errno));
	return r ?: EXIT_OUTPUT;
}
