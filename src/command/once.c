/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "command/answer.h"
#include "command/table.h"

#define ROWS_ON_TERMINAL "10"

/* By the value of --format=. */
static const char *const exporters[] = { "console", "csv", "json", "bpftrace-json" };

/* An option that changes nothing is a mistake, and so is a number of unknown intervals. */
static bool has_effect(const struct arguments *arguments)
{
	const struct setting_table *known = exporter_find(exporters[arguments->format])->settings;
	const struct {
		const char *key;
		bool is_given;
	} options[] = {
		{ "format", arguments->format && arguments->is_heatmap },
		{ "sort", arguments->sort },
		{ "limit", arguments->limit },
		{ "histogram", arguments->is_histogram },
		{ "interval", arguments->interval_ns && arguments->is_heatmap },
	};

	if (arguments->count && !arguments->interval_ns) {
		fprintf(stderr, "bpfpush once: --count needs an interval: add --interval=TIME\n");
		return false;
	}
	array_for_each (option, options, ARRAY_SIZE(options)) {
		if (!option->is_given ||
		    (!arguments->is_heatmap && setting_table_find(known, option->key)))
			continue;
		fprintf(stderr, "bpfpush once: --%s has no effect with %s: remove one of them\n", option->key,
			arguments->is_heatmap ? "--heatmap" : "this --format");
		return false;
	}
	return true;
}

/* Could a shell run it? */
static bool is_program(const char *name)
{
	const char *searched = strchr(name, '/') ? NULL : getenv("PATH");
	_cleanup_(freep) char *directories = strdup(searched ?: "");
	char *rest = directories, *directory, path[PATH_MAX];
	struct stat status;

	while (rest && (directory = strsep(&rest, ":"))) {
		snprintf(path, sizeof(path), "%s%s%s", directory, *directory ? "/" : "", name);
		if (!access(path, X_OK) && !stat(path, &status) && S_ISREG(status.st_mode))
			return true;
	}
	return false;
}

static bool has_series(const struct collector *collector)
{
	for (size_t i = 0; i < collector->n_metrics; i++)
		if (collector->metrics[i]->n_series)
			return true;
	return false;
}

/*
 * Of the collectors that somebody has named, those that have counted nothing; or an answer without
 * rows.
 */
static void report_empty(const struct arguments *arguments, const struct answer *answer,
			 const struct setup *setup)
{
	bool is_asked = setup->question.n_conditions > arguments->is_alone, is_said = false;
	bool is_named = arguments->n_words && !arguments->format && !answer->view;

	for (size_t i = 0; i < setup->set.n_shown; i++) {
		const struct collector *collector = setup->set.items[i];

		if (arguments->n_words && !collector->n_metrics) {
			fprintf(stderr, "bpfpush once: %s has events, not numbers: bpfpush events %s shows them\n",
				collector->name, collector->name);
			is_said = true;
			continue;
		}
		if ((!collector->is_probe && !is_named) || has_series(collector))
			continue;
		fprintf(stderr, "bpfpush once: %s: there was nothing to count\n",
			collector->is_probe ? collector->descriptor->description : collector->name);
		is_said = true;
	}
	if (answer->view && !answer->n_series && !is_said)
		fprintf(stderr, "bpfpush once: nothing %s\n", is_asked ? "that was counted meets the question" : "was counted");
}

int command_once(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(answer_done) struct answer this = { 0 };
	_cleanup_(table_done) struct table table = TABLE_INIT;
	struct arguments mine = *arguments;
	uint64_t most_ns = mine.count * mine.interval_ns;
	enum exit_code code;

	if (!has_effect(arguments) || !answer_can_be_drawn(arguments))
		return EXIT_USE;
	if (!answer_can_write("once: --output", arguments->output_path))
		return EXIT_OUTPUT;
	code = setup_open(arguments, arguments->words, &setup);
	if (code == EXIT_SETTINGS && arguments->n_words && is_program(arguments->words[0]))
		fprintf(stderr, "bpfpush once: to count what %s does, write -- before it\n", arguments->words[0]);
	if (code != EXIT_OK)
		return code;
	/* A person gets the largest ones; a file or another program gets all. */
	if (!mine.limit && !mine.output_path && isatty(STDOUT_FILENO))
		mine.limit = ROWS_ON_TERMINAL;
	/* If it is not to end earlier. */
	if (most_ns && (!mine.duration_ns || most_ns < mine.duration_ns))
		mine.duration_ns = most_ns;
	setup.counting.interval_ns = mine.interval_ns;
	code = table_begin(&table, arguments, &setup);
	if (code == EXIT_OK && !table.top)
		code = answer_begin(&this, arguments, &setup);
	if (code != EXIT_OK)
		return code;
	code = setup_count(&mine, &setup,
			   table.top || mine.is_heatmap ? NULL : exporters[mine.format]);
	if (this.is_failing)
		code = EXIT_INTERNAL;
	if (code == EXIT_OK)
		code = table.top ? table_end(&table, arguments) : answer_write(&this, arguments);
	if (code == EXIT_OK)
		report_empty(arguments, &this, &setup);
	return code == EXIT_OK ? setup.status : (int)code;
}
