/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "build-config.h"
#include "collector/program.h"
#include "command/answer.h"
#include "util/array.h"
#include "util/duration.h"
#include "view/view.h"

#define DEFAULT_NS	(60 * NS_PER_S)
#define COLUMNS		60 /* of heat maps, if it is known how long it takes */
#define INTERVAL_MIN_NS (250 * NS_PER_MS)

struct page {
	const struct arguments *arguments;
	struct answer *answer;
	uint64_t begin_ns;
};

struct target {
	const char *path; /* NULL: standard output */
	int fd;
	bool is_ours; /* it did not exist, and nothing is in it */
};

static void target_done(struct target *target)
{
	if (target->is_ours)
		unlink(target->path);
	closep(&target->fd);
}

/*
 * Before anything is counted, so that nothing is counted in vain. A file that exists keeps its
 * owner, its mode and the links to it, and until all is counted what is in it.
 */
static enum exit_code target_open(struct target *target, const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY;

	*target = (struct target){ .path = path && strcmp(path, "-") ? path : NULL, .fd = -1 };
	if (!target->path && isatty(STDOUT_FILENO)) {
		fprintf(stderr, "bpfpush report: the report is a page for a browser: write it to a file, with --output=FILE\n");
		return EXIT_USE;
	}
	target->fd = target->path ? open(path, flags | O_EXCL, 0666) :
		     fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	target->is_ours = target->path && target->fd >= 0;
	if (target->fd < 0 && errno == EEXIST)
		target->fd = open(path, flags, 0666);
	if (target->fd < 0)
		fprintf(stderr, "bpfpush report: --output=%s: %m\n", path);
	return target->fd < 0 ? EXIT_OUTPUT : EXIT_OK;
}

static enum exit_code target_write(struct target *target, const struct buf *out)
{
	struct stat status;
	bool is_file = target->path && !fstat(target->fd, &status) && S_ISREG(status.st_mode);
	size_t at = 0;
	ssize_t n = 0;
	int err = 0;

	/* So that a page that is there already is not lost to a full disk. */
	if (is_file) {
		err = posix_fallocate(target->fd, 0, (off_t)out->size);
		n = ftruncate(target->fd, err ? status.st_size : (off_t)out->size);
		n = n ?: lseek(target->fd, 0, SEEK_SET);
	}
	if (err) {
		errno = err;
		n = -1;
	}
	while (n >= 0 && at < out->size &&
	       (n = write(target->fd, out->data + at, out->size - at)) >= 0)
		at += (size_t)n;
	if (n >= 0) {
		target->is_ours = false;
		return EXIT_OK;
	}
	fprintf(stderr, "bpfpush report: %s cannot be written: %m\n", target->path ?: "standard output");
	return EXIT_OUTPUT;
}

static const struct batch *on_batch(void *user, const struct batch *batch)
{
	struct page *page = user;

	page->begin_ns = page->begin_ns ?: batch->previous_ns;
	if (isatty(STDERR_FILENO) && !page->arguments->command)
		fprintf(stderr, batch->is_last ? "\r\033[K" : "\rbpfpush report: %.0f of %.0f s",
			(double)(batch->time_ns - page->begin_ns) / 1e9,
			(double)page->arguments->duration_ns / 1e9);
	return answer_take(page->answer, batch);
}

/* texts: one for each column. */
static void add_row(struct grid *grid, const char *const *texts)
{
	grid_add_row(grid, NULL);
	for (unsigned int i = 0; i < grid->n_columns; i++) {
		buf_append_text(&grid->text, texts[i]);
		grid_end_cell(grid, 0, LEVEL_PLAIN);
	}
}

/* A row for each hook that counts nothing. */
static void add_missing(struct grid *grid, const struct collector *collector)
{
	const struct programs *programs = &collector->object->programs;

	array_for_each (program, programs->items, programs->n)
		if (collector_uses(collector, program) && program->state == PROGRAM_REFUSED &&
		    !programs_find(programs, program->hook, PROGRAM_ATTACHED))
			add_row(grid,
				(const char *[]){ collector->name, program->section,
						  program->error ?: "" });
}

/* What all series of a metric have grown by, in its unit. */
static double sum_growth(const struct batch *batch, const char *name)
{
	struct metric *metric;
	struct series *series;
	double sum = 0;

	batch_for_each_metric(metric, batch)
		metric_for_each_series(series, metric)
			sum += strcmp(metric->name, name) ? 0 :
			       (double)series->delta.sum / (double)metric->divisor;
	return sum;
}

static void state_facts(struct grid *grid, const struct arguments *arguments,
			const struct batch *batch)
{
	char date[32], length[32], kernel[200], cost[32], missed[32], command[1024] = "";
	double seconds = (double)(batch->time_ns - batch->previous_ns) / 1e9;
	time_t begin = (time_t)(batch->previous_ns / NS_PER_S);
	struct utsname machine = { 0 };
	const char *const facts[][2] = {
		{ "Host", machine.nodename }, { "Counted from", date }, { "For", length }, { "Kernel", kernel },
		{ "Cost of the BPF programs", cost }, { "Events missed", missed }, { "bpfpush", VERSION }, { "Command", command },
	};
	struct tm tm;

	uname(&machine);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&begin, &tm));
	snprintf(length, sizeof(length), "%.1f s", seconds);
	snprintf(kernel, sizeof(kernel), "%s %s, %ld CPUs", machine.release, machine.machine,
		 sysconf(_SC_NPROCESSORS_ONLN));
	snprintf(cost, sizeof(cost), "%.2f %% of a CPU", sum_growth(batch, "bpfpush.bpf.program.time") / seconds * 100);
	snprintf(missed, sizeof(missed), "%.0f", sum_growth(batch, "bpfpush.bpf.program.event.missed"));
	for (char *const *word = arguments->all;
	     *word && strlen(command) + strlen(*word) + 2 < sizeof(command); word++)
		snprintf(command + strlen(command), sizeof(command) - strlen(command), "%s%s",
			 *command ? " " : "", *word);
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		add_row(grid, facts[i]);
}

static int write_page(const struct page *page, const struct collector_set *set, struct buf *out)
{
	struct report report = { .batch = view_whole(page->answer->view),
				 .heats = page->answer->heats };
	int err;

	grid_begin(&report.facts);
	grid_add_column(&report.facts, "fact", NULL, false);
	grid_add_column(&report.facts, "value", NULL, false);
	state_facts(&report.facts, page->arguments, report.batch);
	grid_begin(&report.missing);
	grid_add_column(&report.missing, "collector", NULL, false);
	grid_add_column(&report.missing, "hook", NULL, false);
	grid_add_column(&report.missing, "reason", NULL, false);
	for (size_t i = 0; i < set->n_refused + set->n; i++)
		add_missing(&report.missing,
			    i < set->n_refused ? set->refused[i] : set->items[i - set->n_refused]);
	err = report_write(&report, out);
	grid_done(&report.facts);
	grid_done(&report.missing);
	return err;
}

static enum exit_code make_page(struct arguments *arguments, struct setup *setup, struct page *page,
				struct buf *out)
{
	/* costs are unknown without CAP_SYS_ADMIN */
	_cleanup_(closep) int statistics = programs_enable_stats();
	uint64_t interval_ns = arguments->duration_ns / COLUMNS ?: NS_PER_S;
	enum exit_code code;

	setup->counting = (struct agent_options){
		.interval_ns = interval_ns > INTERVAL_MIN_NS ? interval_ns : INTERVAL_MIN_NS,
		.has_runs = statistics >= 0,
		.has_self = true,
		.view = on_batch,
		.view_user = page,
	};
	setup->set.refused = calloc(setup->set.n + 1, sizeof(*setup->set.refused));
	code = setup_count(arguments, setup, arguments->points_path ? "json" : NULL);
	/* If the points could not be written, the page still can be. */
	if (code != EXIT_OK && code != EXIT_OUTPUT)
		return code;
	return page->answer->is_failing || write_page(page, &setup->set, out) ?
	       EXIT_INTERNAL : code;
}

int command_report(const struct arguments *given)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(target_done) struct target target;
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct arguments arguments = *given;
	_cleanup_(answer_done) struct answer answer = { .has_heats = true };
	struct page page = { &arguments, &answer, 0 };
	enum exit_code code;

	agent_block_signals(); /* so that none leaves an unfinished file */
	code = target_open(&target, given->output_path);
	if (code == EXIT_OK && !answer_can_write("report: --points", given->points_path))
		code = EXIT_OUTPUT;
	if (code == EXIT_OK)
		code = setup_open(given, given->words, &setup);
	if (code != EXIT_OK)
		return code;
	setup.question.exempt = REPORT_OWN;
	if (!given->duration_ns && !given->command)
		arguments.duration_ns = DEFAULT_NS;
	arguments.output_path = given->points_path;
	if (view_new(&setup.question, true, &answer.view))
		return EXIT_INTERNAL;
	code = make_page(&arguments, &setup, &page, &out);
	if ((code == EXIT_OK || code == EXIT_OUTPUT) && target_write(&target, &out) != EXIT_OK)
		code = EXIT_OUTPUT;
	return code == EXIT_OK ? setup.status : (int)code;
}
