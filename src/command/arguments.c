/* SPDX-License-Identifier: Apache-2.0 */
#include "command/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/log.h"
#include "util/parse.h"

static const struct option_row {
	const char *name;
	const char *argument; /* NULL: none */
	const char *help;
	const char *takes; /* what the value must be, for messages; NULL: anything */
} option_table[] = {
	[OPT_CONFIG] = { "config", "FILE", "read only this configuration file" },
	[OPT_DIRECTORY] = { "collector-directory", "DIR", "look for collectors here first" },
	[OPT_LOG_LEVEL] = { "log-level", "LEVEL", "error, warning, info or debug", "error, warning, info or debug" },
	[OPT_CONSOLE] = { "console", NULL, "print to the terminal instead of pushing" },
	[OPT_INTERVAL] = { "interval", "TIME", "time between collections, like 10s",
			   "a time of at least 100ms, like 10s" },
	[OPT_FORMAT] = { "format", "FORMAT", "table (default), json or bpftrace-json" },
	[OPT_OUTPUT] = { "output", "FILE", "write to this file instead of standard output" },
	[OPT_FOR] = { "for", "TIME", "count for this long, like 10s or 500ms", "a time, like 10s or 500ms" },
	[OPT_JSON] = { "json", NULL, "one JSON object for each collector" },
	[OPT_ROWS] = { "rows", "N", "lines shown of each metric; 0: all", "a whole number" },
	[OPT_HELP] = { "help", NULL, "print this" },
	[OPT_VERSION] = { "version", NULL, "print the version" },
};

void arguments_print_options(unsigned int options, FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(option_table); i++) {
		char text[64];

		if (!(options & OPTION_SET(i)))
			continue;
		snprintf(text, sizeof(text), "--%s%s%s", option_table[i].name, option_table[i].argument ? "=" : "",
			 option_table[i].argument ? option_table[i].argument : "");
		fprintf(f, "  %-28s %s\n", text, option_table[i].help);
	}
}

static bool parse_level(const char *text, int *ret_level)
{
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = { { "error", LOG_LEVEL_ERROR },
		       { "warning", LOG_LEVEL_WARNING },
		       { "info", LOG_LEVEL_INFO },
		       { "debug", LOG_LEVEL_DEBUG } };

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (!strcmp(levels[i].name, text)) {
			*ret_level = levels[i].level;
			return true;
		}
	return false;
}

/* False: the option does not take this value. */
static bool set_option(struct arguments *arguments, enum option_name option, const char *value)
{
	uint64_t rows;

	switch (option) {
	case OPT_CONFIG:
		arguments->config_path = value;
		return true;
	case OPT_DIRECTORY:
		arguments->collector_directory = value;
		return true;
	case OPT_LOG_LEVEL:
		return parse_level(value, &arguments->log_level);
	case OPT_CONSOLE:
		return arguments->is_console = true;
	case OPT_INTERVAL:
		return !parse_duration_ns(value, &arguments->interval_ns) && arguments->interval_ns >= 100000000 &&
		       arguments->interval_ns <= 86400000000000;
	case OPT_FORMAT:
		arguments->format = value;
		return true;
	case OPT_OUTPUT:
		arguments->output_path = value;
		return true;
	case OPT_FOR:
		return !parse_duration_ns(value, &arguments->duration_ns) && arguments->duration_ns;
	case OPT_ROWS:
		arguments->rows = value;
		return !parse_u64(value, &rows);
	case OPT_JSON:
		return arguments->is_json = true;
	default:
		return true;
	}
}

/* Only what counts for a while can do so while a command runs. */
static int check_command(const struct arguments *arguments, const char *command, unsigned int options)
{
	if (arguments->command && !(options & OPTION_SET(OPT_FOR))) {
		fprintf(stderr, "bpfpush %s: it does not run a command: remove \"--\" and what follows\n", command);
		return -EINVAL;
	}
	if (arguments->command && !*arguments->command) {
		fprintf(stderr, "bpfpush %s: there is no command after \"--\"\n", command);
		return -EINVAL;
	}
	return ARGUMENTS_OK;
}

int arguments_parse(const char *command, unsigned int options, int argc, char **argv, struct arguments *arguments)
{
	struct option long_options[ARRAY_SIZE(option_table) + 1] = { 0 };
	int option, which = 0;
	char name[32];

	for (size_t i = 0; i < ARRAY_SIZE(option_table); i++)
		long_options[i] = (struct option){ options & OPTION_SET(i) ? option_table[i].name : "\n",
						   option_table[i].argument != NULL, NULL, 0 };
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--")) {
			arguments->command = argv + i + 1;
			argv[i] = NULL;
			argc = i;
		}
	snprintf(name, sizeof(name), "bpfpush %s", command);
	argv[0] = name; /* what getopt_long()'s messages begin with */
	while ((option = getopt_long(argc, argv, "h", long_options, &which)) != -1) {
		if (option == 'h' || (!option && which == OPT_HELP))
			return ARGUMENTS_HELP;
		if (option) {
			fprintf(stderr, "see %s --help\n", name);
			return -EINVAL;
		}
		if (which == OPT_VERSION)
			return ARGUMENTS_VERSION;
		if (!set_option(arguments, (enum option_name)which, optarg)) {
			fprintf(stderr, "bpfpush %s: --%s=%s: must be %s\n", command, option_table[which].name, optarg,
				option_table[which].takes);
			return -EINVAL;
		}
	}
	arguments->words = argv + optind;
	arguments->n_words = (size_t)(argc - optind);
	return check_command(arguments, command, options);
}
