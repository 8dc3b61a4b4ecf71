/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is in tests/golden; here is what a terminal and a broken file change about it. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "accounted.h"
#include "export/text/output.h"
#include "fixture.h"
#include "logged.h"
#include "util/cleanup.h"
#include "view/grid.h"

static struct exporter *open_exporter(const char *type, const char *path, void **ret_options)
{
	static const struct exporter_context context = { .version = "1" };
	const struct exporter_ops *ops = exporter_find(type);
	struct exporter *exporter = NULL;
	struct diag diag = DIAG_INIT;

	*ret_options = calloc(1, ops->settings->size_bytes);
	assert_ok(setting_table_init(ops->settings, *ret_options));
	assert_ok(setting_table_set(ops->settings, *ret_options,
				    &(struct assignment){ "path", path, "", 0 }, &diag));
	if (exporter_open("test", ops, *ret_options, &context, &exporter) < 0)
		return NULL;
	return exporter;
}

static void options_free(const char *type, void *options)
{
	const struct exporter_ops *ops = exporter_find(type);

	setting_table_done(ops->settings, options);
	free(options);
}

static void assert_push(struct exporter *exporter, const struct fixture *fixture, int expected)
{
	assert_int_equal(exporter_encode(exporter, &fixture->batch), expected);
	assert_accounted(exporter);
}

/* Pushes the fixture to a terminal of that width and reads what came. */
static void push_to_terminal(unsigned short columns, char *ret_text, size_t size)
{
	struct winsize window = { .ws_col = columns, .ws_row = 24 };
	struct exporter *exporter;
	struct fixture fixture;
	int master, slave;
	char name[64];
	void *options;
	size_t at = 0;

	assert_int_equal(openpty(&master, &slave, name, NULL, &window), 0);
	fixture_init(&fixture);
	exporter = open_exporter("console", name, &options);
	assert_non_null(exporter);
	assert_push(exporter, &fixture, 0);
	/* A terminal hands over what was written piece by piece; an empty line ends it. */
	while (at < 5 || strcmp(ret_text + at - 4, "\r\n\r\n") || !memmem(ret_text, at, "example.wait", 12)) {
		ssize_t n = read(master, ret_text + at, size - at - 1);

		assert_true(n > 0);
		at += (size_t)n;
		ret_text[at] = '\0';
	}
	exporter_free(exporter);
	options_free("console", options);
	fixture_done(&fixture);
	close(master);
	close(slave);
}

static unsigned int count_lines(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void lines_fit_their_terminal(void **state)
{
	static char text[65536];

	for (unsigned short columns = 20; columns < 140; columns += 7) {
		push_to_terminal(columns, text, sizeof(text));
		for (char *line = strchr(text, '\n') + 1, *end; (end = strchr(line, '\r')); line = end + 2) {
			*end = '\0';
			assert_true(grid_width(line) <= columns);
		}
	}
}

static void colours_are_for_terminals_that_want_them(void **state)
{
	static const struct {
		const char *term, *no_colour;
		bool has_colour;
	} cases[] = {
		{ "xterm", NULL, true }, { "xterm", "", true }, { "xterm", "1", false },
		{ "dumb", NULL, false }, { NULL, NULL, false },
	};
	static char text[65536];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsetenv("TERM");
		unsetenv("NO_COLOR");
		if (cases[i].term)
			setenv("TERM", cases[i].term, 1);
		if (cases[i].no_colour)
			setenv("NO_COLOR", cases[i].no_colour, 1);
		push_to_terminal(100, text, sizeof(text));
		assert_int_equal(strstr(text, "\033[1mbpfpush.syscalls (call)\033[0m") != NULL, cases[i].has_colour);
		assert_int_equal(strchr(text, '\033') != NULL, cases[i].has_colour);
	}
	unsetenv("TERM");
}

static void a_short_time_is_shown_in_milliseconds(void **state)
{
	static const struct exporter_context context = { .version = "1", .is_once = true };
	char path[] = "/tmp/test-console-XXXXXX", text[64] = "";
	const struct exporter_ops *ops = exporter_find("console");
	int fd = mkstemp(path);
	struct exporter *exporter;
	struct fixture fixture;
	void *options;

	fixture_init(&fixture);
	fixture.batch.previous_ns = fixture.batch.time_ns - 12340000;
	exporter_free(open_exporter("console", path, &options));
	assert_ok(exporter_open("test", ops, options, &context, &exporter));
	assert_push(exporter, &fixture, 0);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, " UTC, 12.3 ms\n"));
	exporter_free(exporter);
	options_free("console", options);
	fixture_done(&fixture);
	close(fd);
	unlink(path);
}

/* What a table of the fixture holds with these settings. */
static void push_once(const struct assignment *settings, size_t n_settings, char *ret_text, size_t size)
{
	static const struct exporter_context once = { .version = "1", .is_once = true };
	const struct exporter_ops *ops = exporter_find("console");
	struct diag diag = DIAG_INIT;
	struct exporter *exporter;
	struct fixture fixture;
	char path[64];
	void *options;
	int pipes[2];
	ssize_t n;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pipes[1]);
	fixture_init(&fixture);
	exporter_free(open_exporter("console", path, &options));
	for (size_t i = 0; i < n_settings; i++)
		assert_ok(setting_table_set(ops->settings, options, &settings[i], &diag));
	assert_ok(exporter_open("test", ops, options, &once, &exporter));
	fixture.batch.is_last = true;
	assert_push(exporter, &fixture, 0);
	n = read(pipes[0], ret_text, size - 1);
	assert_true(n > 0);
	ret_text[n] = '\0';
	exporter_free(exporter);
	options_free("console", options);
	fixture_done(&fixture);
	close(pipes[0]);
	close(pipes[1]);
}

static void no_more_series_of_a_metric_are_shown_than_asked_for(void **state)
{
	static const struct assignment limit = { "limit", "2", "", 0 };
	char text[8192];

	push_once(&limit, 1, text, sizeof(text));
	/* The title, seven metrics with three lines before 5, 3, 1, 1, 2, 1 and 1 series, and two lines at the end. */
	assert_int_equal(count_lines(text), 1 + 7 * 3 + (2 + 1) + (2 + 1) + 1 + 1 + 2 + 1 + 1 + 2);
	assert_non_null(strstr(text, "\n  \xe2\x80\xa6 3 more\n"));
	assert_non_null(strstr(text, "\n  \xe2\x80\xa6 1 more\n"));
	assert_non_null(strstr(text, "\n--limit=0 shows all series\n"));
}

static void rows_are_sorted_as_asked_for(void **state)
{
	static const struct assignment sort = { "sort", "Count", "", 0 };
	char text[8192];

	push_once(NULL, 0, text, sizeof(text));
	assert_true(strstr(text, "\n  fresh ") < strstr(text, "\n  write "));
	assert_true(strstr(text, "\n  read ") < strstr(text, "\n  fresh "));
	push_once(&(struct assignment){ "sort", "p50", "", 0 }, 1, text, sizeof(text));
	assert_true(strstr(text, "\n  write ") < strstr(text, "\n  fresh "));
	assert_true(strstr(text, "\n  fresh ") < strstr(text, "\n  read "));
	/* Only metrics that have the column. */
	push_once(&sort, 1, text, sizeof(text));
	assert_true(strstr(text, "\n  read ") < strstr(text, "\n  fresh "));
	assert_true(strstr(text, "over the limit") < strstr(text, "cron.service"));
}

static void what_cannot_be_written_is_counted(void **state)
{
	static const char *const types[] = { "console", "csv", "json", "bpftrace-json" };
	struct fixture fixture;

	fixture_init(&fixture);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		void *options;
		struct exporter *exporter = open_exporter(types[i], "/dev/full", &options);

		assert_push(exporter, &fixture, -ENOSPC);
		assert_int_equal(exporter->stats.points[POINTS_NOT_SENT], FIXTURE_POINTS);
		assert_int_equal(exporter->stats.points[POINTS_DELIVERED], 0);
		assert_true(exporter->stats.is_failing);
		assert_true(exporter_is_idle(exporter));
		exporter_free(exporter);
		options_free(types[i], options);
	}
	fixture_done(&fixture);
}

static void a_reader_that_does_not_read_holds_up_nobody(void **state)
{
	static char text[1 << 20];
	struct exporter *exporter;
	struct fixture fixture;
	unsigned int n_pushes = 0, n_lines = 0;
	char path[64];
	void *options;
	int pipes[2];
	ssize_t n;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pipes[1]);
	fixture_init(&fixture);
	exporter = open_exporter("json", path, &options);
	/* A pipe holds 64 KiB at most, a batch is some 6. */
	while (!exporter->stats.points[POINTS_QUEUE_FULL] && n_pushes++ < 100)
		assert_push(exporter, &fixture, 0);
	assert_true(n_pushes < 100);
	assert_int_equal(exporter_waiting(exporter).n_points, FIXTURE_POINTS);
	assert_int_equal(exporter->stats.points[POINTS_QUEUE_FULL], FIXTURE_POINTS);
	assert_int_equal(exporter->stats.points[POINTS_DELIVERED], (n_pushes - 2) * FIXTURE_POINTS);
	assert_true(exporter->stats.is_failing);

	/* It reads on, and gets every line whole: those that were kept, not those that were dropped. */
	n = read(pipes[0], text, sizeof(text));
	assert_true(n > 16384);
	assert_push(exporter, &fixture, 0);
	assert_int_equal(exporter->stats.points[POINTS_DELIVERED], n_pushes * FIXTURE_POINTS);
	assert_int_equal(exporter_waiting(exporter).n_points, 0);
	assert_false(exporter->stats.is_failing);
	n += read(pipes[0], text + n, sizeof(text) - (size_t)n - 1);
	for (char *line = text; line < text + n; line = strchr(line, '\n') + 1) {
		assert_memory_equal(line, "{\"collector\"", 12);
		n_lines++;
	}
	assert_int_equal(n_lines, n_pushes * FIXTURE_POINTS);
	exporter_free(exporter);
	options_free("json", options);
	fixture_done(&fixture);
	close(pipes[0]);
	close(pipes[1]);
}

/* What a process that was killed has left there may be a part of a line. */
static void assert_begins_a_line(const char *before)
{
	char path[] = "/tmp/test-console-XXXXXX", text[32];
	struct fixture fixture;
	void *options;
	int fd = mkstemp(path);

	assert_int_equal(write(fd, before, strlen(before)), strlen(before));
	fixture_init(&fixture);
	for (int i = 0; i < 2; i++) {
		struct exporter *exporter = open_exporter("json", path, &options);

		assert_push(exporter, &fixture, 0);
		assert_int_equal(exporter->stats.points[POINTS_DELIVERED], FIXTURE_POINTS);
		exporter_free(exporter);
		options_free("json", options);
	}
	assert_int_equal(pread(fd, text, 10, 0), 10);
	assert_memory_equal(text, "before\n{\"c", 10);
	fixture_done(&fixture);
	close(fd);
	unlink(path);
}

static void a_file_is_appended_to(void **state)
{
	void *options;

	assert_begins_a_line("before\n");
	assert_begins_a_line("before");
	assert_null(open_exporter("json", "/nonexistent/x", &options));
	options_free("json", options);
}

/* What is said of a path on line 7, in a section that begins on line 3. */
static void assert_complaint(const char *type, const char *path, const char *expected)
{
	const struct exporter_ops *ops = exporter_find(type);
	struct assignment setting = { "path", path, "file", 7 };
	const struct assignments given = { &setting, 1, "file", 3 };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	void *options = calloc(1, ops->settings->size_bytes);

	assert_ok(setting_table_init(ops->settings, options));
	assert_ok(setting_table_set(ops->settings, options, &setting, &diag));
	ops->check(options, &given, &diag);
	assert_string_equal(buf_text(&diag.text), expected);
	options_free(type, options);
}

static void a_path_that_cannot_be_a_file_is_a_mistake(void **state)
{
	static const char *const types[] = { "console", "csv", "json", "bpftrace-json" };
	static const struct {
		const char *path, *complaint;
	} cases[] = {
		{ "-", "" },
		{ "/dev/null", "" },
		{ "/tmp/test-console-absent", "" },
		{ "", "file:7: path: is empty: write the path of a file, or \"-\" for standard output\n" },
		{ "x/y", "file:7: path: must begin with \"/\", or be \"-\" for standard output\n" },
		{ "/tmp", "file:7: path: /tmp is a directory, write the path of a file\n" },
		{ "/tmp/", "file:7: path: /tmp/ is a directory, write the path of a file\n" },
		{ "/nonexistent/x", "file:7: path: the directory /nonexistent/ cannot be used: No such file or directory\n" },
		{ "/dev/null/x", "file:7: path: the directory /dev/null/ cannot be used: Not a directory\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		for (size_t j = 0; j < ARRAY_SIZE(cases); j++)
			assert_complaint(types[i], cases[j].path, cases[j].complaint);
}

#define FIXTURE_HISTOGRAMS 6

/* A format that has no histograms. */
static int push_without_histograms(struct exporter *exporter, const struct batch *batch)
{
	struct output *output = exporter->state;
	struct metric *metric;
	struct series *series;

	if (!output_is_ready(exporter, output_count(batch)))
		return 0;
	batch_for_each_metric(metric, batch)
		metric_for_each_series(series, metric)
			if (metric->kind == METRIC_HISTOGRAM)
				output->n_unsupported++;
			else
				buf_append_text(&output->out, "point\n");
	return output_flush(exporter, output_count(batch));
}

static void points_that_a_format_lacks_are_not_delivered(void **state)
{
	static const struct exporter_ops ops = { .type = "test", .settings = &output_settings, OUTPUT_OPS,
						 .push = push_without_histograms };
	static const struct exporter_context context = { .version = "1" };
	const struct output_options options = { "/dev/null" };
	struct exporter *exporter;
	struct fixture fixture;

	fixture_init(&fixture);
	assert_ok(exporter_open("test", &ops, &options, &context, &exporter));
	for (uint64_t i = 1; i <= 2; i++) {
		assert_push(exporter, &fixture, 0);
		assert_int_equal(exporter->stats.points[POINTS_PUSHED], i * FIXTURE_POINTS);
		assert_int_equal(exporter->stats.points[POINTS_UNSUPPORTED], i * FIXTURE_HISTOGRAMS);
		assert_int_equal(exporter->stats.points[POINTS_DELIVERED], i * (FIXTURE_POINTS - FIXTURE_HISTOGRAMS));
	}
	exporter_free(exporter);
	fixture_done(&fixture);
}

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* What the file holds: whole lines of JSON, as many as that. */
static void assert_lines(int fd, unsigned int n_lines)
{
	static char text[65536];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	assert_int_equal(count_lines(text), n_lines);
	for (char *line = text; *line; line = strchr(line, '\n') + 1) {
		assert_memory_equal(line, "{\"collector\"", 12);
		assert_memory_equal(strchr(line, '\n') - 1, "}", 1);
	}
}

static void no_half_line_stays_in_a_file_that_is_full(void **state)
{
	char path[] = "/tmp/test-console-XXXXXX", want[128];
	struct exporter *exporter;
	struct fixture fixture;
	void *options;
	struct stat st;
	int fd = mkstemp(path);

	signal(SIGXFSZ, SIG_IGN);
	fixture_init(&fixture);
	exporter = open_exporter("json", path, &options);
	assert_push(exporter, &fixture, 0);
	assert_int_equal(fstat(fd, &st), 0);
	log_catch();
	for (rlim_t more = 1; more < 1000; more += 333) {
		limit_files((rlim_t)st.st_size + more);
		assert_push(exporter, &fixture, -EFBIG);
		assert_lines(fd, FIXTURE_POINTS);
	}
	snprintf(want, sizeof(want), "<3>exporter test: cannot write to %s: File too large\n", path);
	assert_string_equal(log_caught(), want);
	limit_files(RLIM_INFINITY);
	assert_int_equal(exporter->stats.points[POINTS_NOT_SENT], 3 * FIXTURE_POINTS);
	log_catch();
	assert_push(exporter, &fixture, 0);
	assert_push(exporter, &fixture, 0);
	snprintf(want, sizeof(want), "<6>exporter test: writes to %s again; %d points were lost meanwhile\n", path, 3 * FIXTURE_POINTS);
	assert_string_equal(log_caught(), want);
	assert_lines(fd, 3 * FIXTURE_POINTS);
	assert_int_equal(exporter->stats.points[POINTS_DELIVERED], 3 * FIXTURE_POINTS);
	exporter_free(exporter);
	options_free("json", options);
	fixture_done(&fixture);
	close(fd);
	unlink(path);
}

static void behind_a_half_line_the_next_begins_anew(void **state)
{
	char path[] = "/tmp/test-console-XXXXXX", text[16];
	struct exporter *exporter;
	struct fixture fixture;
	void *options;
	int fd = mkstemp(path);

	assert_int_equal(write(fd, "{\"half", 6), 6);
	fixture_init(&fixture);
	exporter = open_exporter("json", path, &options);
	assert_push(exporter, &fixture, 0);
	assert_int_equal(pread(fd, text, 10, 0), 10);
	assert_memory_equal(text, "{\"half\n{\"c", 10);
	exporter_free(exporter);
	options_free("json", options);
	fixture_done(&fixture);
	close(fd);
	unlink(path);
}

/* A reader that goes when it has seen a part of a batch, and one that comes after it. */
static void the_next_reader_of_a_pipe_begins_with_a_new_line(void **state)
{
	char path[] = "/tmp/test-console-XXXXXX", fifo[64];
	static char text[1 << 20];
	struct exporter *exporter;
	struct fixture fixture;
	void *options;
	int fd, writer;
	char *half;
	ssize_t n;

	signal(SIGPIPE, SIG_IGN);
	assert_non_null(mkdtemp(path));
	snprintf(fifo, sizeof(fifo), "%s/fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	fixture_init(&fixture);
	exporter = open_exporter("json", fifo, &options);
	/* A pipe has sixteen places for 4 KiB and a batch takes two: one is taken, for half a batch to be the last. */
	writer = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(write(writer, text, 4096), 4096);
	close(writer);
	while (!exporter->stats.points[POINTS_QUEUE_FULL])
		assert_push(exporter, &fixture, 0);
	close(fd);
	assert_push(exporter, &fixture, -EPIPE);
	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n > 0);
	half = text + n;
	assert_int_not_equal(half[-1], '\n');
	assert_push(exporter, &fixture, 0);
	n = read(fd, half, 4096);
	assert_true(n > 12);
	assert_memory_equal(half, "\n{\"collector\"", 13);
	exporter_free(exporter);
	options_free("json", options);
	fixture_done(&fixture);
	close(fd);
	unlink(fifo);
	rmdir(path);
}

static void a_pipe_that_nobody_reads_is_refused_at_once(void **state)
{
	char path[] = "/tmp/test-console-XXXXXX", fifo[64], text[256];
	int pipes[2], kept = dup(STDERR_FILENO);
	struct exporter *exporter;
	void *options;
	ssize_t n;
	int fd;

	assert_non_null(mkdtemp(path));
	snprintf(fifo, sizeof(fifo), "%s/fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	alarm(20); /* instead of waiting for ever */
	dup2(pipes[1], STDERR_FILENO);
	exporter = open_exporter("json", fifo, &options);
	dup2(kept, STDERR_FILENO);
	alarm(0);
	assert_null(exporter);
	n = read(pipes[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "/fifo is a pipe that nobody reads\n"));
	options_free("json", options);

	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	exporter = open_exporter("json", fifo, &options);
	assert_non_null(exporter);
	exporter_free(exporter);
	options_free("json", options);
	close(fd);
	close(kept);
	close(pipes[0]);
	close(pipes[1]);
	unlink(fifo);
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_fit_their_terminal),
		cmocka_unit_test(colours_are_for_terminals_that_want_them),
		cmocka_unit_test(a_short_time_is_shown_in_milliseconds),
		cmocka_unit_test(no_more_series_of_a_metric_are_shown_than_asked_for),
		cmocka_unit_test(rows_are_sorted_as_asked_for),
		cmocka_unit_test(what_cannot_be_written_is_counted),
		cmocka_unit_test(a_reader_that_does_not_read_holds_up_nobody),
		cmocka_unit_test(a_file_is_appended_to),
		cmocka_unit_test(a_path_that_cannot_be_a_file_is_a_mistake),
		cmocka_unit_test(points_that_a_format_lacks_are_not_delivered),
		cmocka_unit_test(no_half_line_stays_in_a_file_that_is_full),
		cmocka_unit_test(behind_a_half_line_the_next_begins_anew),
		cmocka_unit_test(the_next_reader_of_a_pipe_begins_with_a_new_line),
		cmocka_unit_test(a_pipe_that_nobody_reads_is_refused_at_once),
	};

	unsetenv("TERM"); /* no colours */
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
