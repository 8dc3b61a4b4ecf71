/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "fixture.h"
#include "metric/series.h"
#include "util/cleanup.h"
#include "view/grid.h"
#include "view/histogram.h"

/* One column of texts, one of numbers. */
static void grid_fill(struct grid *grid, const char *const *texts, size_t n)
{
	grid_begin(grid);
	grid_add_column(grid, "text", NULL, false);
	grid_add_column(grid, "number", NULL, true);
	for (size_t i = 0; i < n; i++) {
		grid_add_row(grid, texts[i]);
		buf_append_text(&grid->text, texts[i]);
		grid_end_cell(grid, 0, LEVEL_PLAIN);
		buf_printf(&grid->text, "%zu", i % 3);
		grid_end_cell(grid, (double)(i % 3), LEVEL_PLAIN);
	}
}

static void assert_printed(const struct grid *grid, unsigned int width, const char *expected)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	grid_print(grid, width, false, &out);
	assert_string_equal(buf_text(&out), expected);
}

static void a_width_is_that_on_a_terminal(void **state)
{
	static const struct {
		const char *text;
		unsigned int width;
	} cases[] = {
		{ "", 0 },
		{ "abc", 3 },
		{ "caf\xc3\xa9", 4 },
		{ "cafe\xcc\x81", 4 },	     /* a combining accent */
		{ "\xe6\x97\xa5\xe6\x9c\xac", 4 }, /* wide */
		{ "\xf0\x9f\x98\x80", 2 },   /* an emoji */
		{ "\xef\xbf\xbd", 1 },	     /* U+FFFD */
		{ "\xd7\xa9\xd7\x9c", 2 },   /* right to left */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(grid_width(cases[i].text), cases[i].width);
}

static void assert_cut(const char *text, unsigned int width, const char *expected)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	grid_cut(&out, text, width);
	assert_string_equal(buf_text(&out), expected);
	assert_true(grid_width(expected) <= width);
}

#define WIDE "\xe6\x97\xa5"
#define DOTS "\xe2\x80\xa6"

static void a_cut_keeps_both_ends(void **state)
{
	assert_cut("abc", 3, "abc");
	assert_cut("abcdef", 0, "");
	assert_cut("abcdef", 1, DOTS);
	assert_cut("abcdef", 4, "abc" DOTS);
	assert_cut("user-session-1000.service", 17, "user-session-1000");
	assert_cut("user-session-1000.service", 12, "user-s" DOTS "-1000");
	assert_cut("user-session-1000.socket", 12, "user-s" DOTS "ocket");
	assert_cut("e\xcc\x81" "e\xcc\x81" "e\xcc\x81", 2, "e\xcc\x81" DOTS);
	assert_cut(WIDE WIDE WIDE, 4, WIDE DOTS);
	assert_cut(WIDE WIDE WIDE WIDE WIDE WIDE, 11, WIDE WIDE DOTS WIDE WIDE);
	assert_cut(WIDE WIDE WIDE WIDE WIDE WIDE, 9, WIDE WIDE DOTS WIDE WIDE);
	assert_cut(WIDE WIDE WIDE WIDE WIDE WIDE, 8, WIDE WIDE DOTS WIDE);
	/* A combining character stays with its own. */
	assert_cut("aaaaaaaaaaaae\xcc\x81" "bbb", 9, "aaaa" DOTS "e\xcc\x81" "bbb");
}

static void what_a_terminal_may_show_elsewhere_is_replaced(void **state)
{
	static const char *const texts[] = { "a\nb", "a\xe2\x80\xae" "b", "a\xe2\x80\x8d" "b", "a\xef\xb8\x8f", "\xd7\xa9\xd7\x9c" };
	_cleanup_(grid_done) struct grid grid = { 0 };

	grid_fill(&grid, texts, ARRAY_SIZE(texts));
	assert_printed(&grid, 0,
		       "  text  number\n"
		       "  a b        0\n"
		       "  a?b        1\n"
		       "  a?b        2\n"
		       "  a?         0\n"
		       "  \xd7\xa9\xd7\x9c         1\n");
}

static void equal_rows_keep_their_order(void **state)
{
	static const char *const texts[] = { "d", "b", "c", "a" };
	_cleanup_(grid_done) struct grid grid = { 0 };

	grid_fill(&grid, texts, 4);
	grid_sort(&grid, grid_find_column(&grid, "NUMBER"), false);
	assert_printed(&grid, 0, "  text  number\n  c          2\n  b          1\n  d          0\n  a          0\n");
	grid_sort(&grid, 1, true);
	assert_printed(&grid, 0, "  text  number\n  d          0\n  a          0\n  b          1\n  c          2\n");
	assert_ptr_equal(grid.rows[2], texts[1]);
	grid_sort(&grid, 0, false);
	assert_printed(&grid, 0, "  text  number\n  a          0\n  b          1\n  c          2\n  d          0\n");
	assert_int_equal(grid_find_column(&grid, "other"), 2);
}

static void no_rows_are_sorted_too(void **state)
{
	_cleanup_(grid_done) struct grid grid = { 0 };

	grid_fill(&grid, NULL, 0);
	grid_sort(&grid, 0, false);
	assert_int_equal(grid.n_rows, 0);
	assert_int_equal(buf_error(&grid.text), 0);
}

static void a_limit_says_how_many_are_left(void **state)
{
	static const char *const texts[] = { "a", "b", "a long one" };
	_cleanup_(grid_done) struct grid grid = { 0 };

	grid_fill(&grid, texts, 3);
	grid_limit(&grid, 0);
	grid_limit(&grid, 3);
	assert_int_equal(grid.n_left, 0);
	grid_limit(&grid, 2);
	assert_printed(&grid, 0, "  text  number\n  a          0\n  b          1\n  " DOTS " 1 more\n");
	grid_fill(&grid, texts, 0);
	assert_printed(&grid, 0, "  text  number\n");
}

static void texts_are_cut_before_columns_go(void **state)
{
	static const char *const texts[] = { "a-very-long-name-of-a-unit.service", "b" };
	_cleanup_(grid_done) struct grid grid = { 0 };

	grid_fill(&grid, texts, 2);
	assert_printed(&grid, 32,
		       "  text                    number\n"
		       "  a-very-long" DOTS "-of-a-unit       0\n"
		       "  b                            1\n");
	assert_printed(&grid, 21,
		       "  text         number\n"
		       "  a-ver" DOTS "-unit       0\n"
		       "  b                 1\n");
	assert_printed(&grid, 14, "  text  number\n  a-v" DOTS "       0\n  b          1\n");
	assert_printed(&grid, 8, "  text\n  a-ver" DOTS "\n  b\n");
	assert_printed(&grid, 3, "  " DOTS "\n  " DOTS "\n  b\n");
}

/* Without ".service" it takes less than the column has. */
static void a_name_that_is_cut_short_keeps_its_column(void **state)
{
	static const char *const texts[] = { "a-service.service", "b-slice-of-a-tree.slice" };
	_cleanup_(grid_done) struct grid grid = { 0 };

	grid_fill(&grid, texts, 2);
	assert_printed(&grid, 26,
		       "  text              number\n"
		       "  a-service              0\n"
		       "  b-slice-" DOTS "e.slice       1\n");
}

/* A unit with numbers in the columns that hold 1 there, and nothing in the others. */
static void telling_fill(struct grid *grid, const char *unit, const char *numbers)
{
	grid_begin(grid);
	grid_add_column(grid, "unit", NULL, false);
	for (const char *number = numbers; *number; number++)
		grid_add_column(grid, number, NULL, true);
	for (int row = 0; row < 2; row++) {
		grid_add_row(grid, NULL);
		buf_append_text(&grid->text, unit);
		grid_end_cell(grid, 0, LEVEL_PLAIN);
		for (const char *number = numbers; *number; number++) {
			bool is_some = row && *number == '1';

			buf_append_byte(&grid->text, is_some ? '7' : '0');
			grid_end_cell(grid, is_some ? 7 : 0, is_some ? LEVEL_PLAIN : LEVEL_NONE);
		}
	}
}

static void columns_that_tell_nothing_go_before_texts_are_cut(void **state)
{
	_cleanup_(grid_done) struct grid grid = { 0 };
	struct grid_layout layout;

	telling_fill(&grid, "a-long-unit.service", "10101010");
	grid_lay_out(&grid, 71, 0, &layout);
	assert_int_equal(layout.n_out, 0);
	grid_lay_out(&grid, 60, 0, &layout); /* three make room */
	assert_int_equal(layout.n_out, 3);
	assert_true(!layout.widths[8] && !layout.widths[6] && !layout.widths[4] && layout.widths[2]);
	assert_int_equal(layout.widths[0], 19);
	grid.sorted = 8;
	grid_lay_out(&grid, 60, 0, &layout);
	assert_int_equal(layout.n_out, 2);
	assert_true(layout.widths[8]);
	/* Others stay while the text can be cut. */
	telling_fill(&grid, "a-long-unit.service", "1111");
	grid_lay_out(&grid, 30, 0, &layout);
	assert_int_equal(layout.n_out, 0);
	grid_lay_out(&grid, 18, 0, &layout);
	assert_true(layout.n_out);
}

static void every_metric_has_a_grid(void **state)
{
	_cleanup_(grid_done) struct grid grid = { 0 };
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct fixture fixture;

	fixture_init(&fixture);
	for (int i = 0; i < FIXTURE_METRICS; i++) {
		grid_of_metric(&grid, &fixture.metrics[i], 1000000000, GRID_BOTH);
		grid_print(&grid, 0, false, &out);
		assert_ok(buf_error(&out));
		assert_int_equal(grid.n_cells, grid.n_rows * grid.n_columns);
	}
	fixture_done(&fixture);
}

/* A metric whose series have that many attributes besides the owner, and the last of them another owner. */
static void metric_fill(struct metric *metric, unsigned int n_series)
{
	static const char *const names[] = { "systemd.unit.name", "process.linux.cgroup", "container.id" };

	*metric = (struct metric){ .name = "example", .unit = "s", .kind = METRIC_SUM, .divisor = 1000000000 };
	metric_init_series(metric, NULL);
	series_begin(metric);
	for (unsigned int i = 0; i < n_series; i++) {
		const char *owner = names[i % 3];
		struct attributes attributes;
		struct series *series;
		char text[32];

		snprintf(text, sizeof(text), i % 3 == 1 && i < 3 ? "/" : "0123456789abcdef-%u", i);
		attributes_init(&attributes);
		assert_ok(attributes_add_text(&attributes, owner, text, strlen(text)));
		assert_ok(attributes_add_number(&attributes, "process.creation.time", i));
		assert_ok(attributes_add_number(&attributes, "process.pid", i));
		assert_ok(attributes_add_text(&attributes, "process.executable.name", "x", 1));
		assert_ok(attributes_add_text(&attributes, "error.type", "EIO", 3));
		attributes_sort(&attributes);
		assert_ok(series_get(metric, &attributes, 1, &series));
		series_add(series, 4000000000 - i);
	}
	series_end(metric);
}

static void the_process_comes_after_its_unit(void **state)
{
	_cleanup_(grid_done) struct grid grid = { 0 };
	struct metric metric;

	metric_fill(&metric, 3);
	metric.loss = (struct loss){ 1, 99, true };
	grid_of_metric(&grid, &metric, 2000000000, GRID_BOTH);
	assert_printed(&grid, 0,
		       "example (s), 1 % missed\n"
		       "  unit                executable.name  pid  error.type  total  rate  creation.time\n"
		       "  0123456789abcdef-0  x                  0  EIO            4s  200%              0\n"
		       "  / (no unit)         x                  1  EIO         4.00s  200%              1\n"
		       "  0123456789ab        x                  2  EIO         4.00s  200%              2\n");
	metric_done_series(&metric);
}

/* 100 fast ones long ago, and one slow one in the last second of 50. */
static void a_span_says_what_numbers_are_of(void **state)
{
	static const struct histogram_bound bounds[] = { { 10, 0 }, { 1000, 0 } };
	static const struct {
		enum grid_span span;
		uint64_t elapsed_ns;
		const char *printed;
	} cases[] = {
		{ GRID_BOTH, 1000000000, "    101   1/s  1.10ms  10.9\xc2\xb5s  5.05\xc2\xb5s  9.09\xc2\xb5s  10.00\xc2\xb5s" },
		{ GRID_INTERVAL, 1000000000, "      1   1/s  100\xc2\xb5s  100\xc2\xb5s  100µs  100µs  100µs" },
		{ GRID_WHOLE, 50000000000, "    101  2.02/s  1.10ms  10.9\xc2\xb5s  5.05\xc2\xb5s" },
	};
	struct metric metric = { .name = "example", .unit = "s", .kind = METRIC_HISTOGRAM, .divisor = 1000000,
				 .layout = { .n_buckets = 3, .bounds = bounds } };
	struct series *series;

	metric_init_series(&metric, NULL);
	assert_ok(series_get(&metric, &(struct attributes){ .n = 0 }, 1, &series));
	series_add_histogram(series, 1000, (const uint64_t[]){ 100, 0, 0 });
	series_begin(&metric);
	series_add_histogram(series, 100, (const uint64_t[]){ 0, 1, 0 });
	series_end(&metric);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(grid_done) struct grid grid = { 0 };
		_cleanup_(buf_done) struct buf out = BUF_INIT;

		grid_of_metric(&grid, &metric, cases[i].elapsed_ns, cases[i].span);
		grid_print(&grid, 0, false, &out);
		if (!strstr(buf_text(&out), cases[i].printed))
			assert_string_equal(buf_text(&out), cases[i].printed);
	}
	metric_done_series(&metric);
}

static void the_last_bucket_is_open(void **state)
{
	static const struct histogram_bound bounds[] = { { 10, 0 }, { 12345, 0 } };
	static const struct {
		unsigned int width;
		const char *line;
	} cases[] = {
		{ 0, " : 2        |********************                    |\n" },
		{ 48, " : 2        |*****     |\n" },
		{ 39, " : 2        | |\n" },
		{ 10, " : 2        | |\n" },
	};
	struct metric metric = { .name = "example", .unit = "s", .kind = METRIC_HISTOGRAM, .divisor = 1000000,
				 .layout = { .n_buckets = 3, .bounds = bounds } };
	_cleanup_(grid_done) struct grid grid = { 0 };
	uint64_t bucket[] = { 2, 0, 4 };
	struct series *series;
	char expected[256];

	metric_init_series(&metric, NULL);
	series_begin(&metric);
	assert_ok(series_get(&metric, &(struct attributes){ .n = 0 }, 1, &series));
	series_add_histogram(series, 1, bucket);
	series_end(&metric);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_done) struct buf out = BUF_INIT;

		histogram_print(&metric, series->total.bucket, cases[i].width, &out);
		snprintf(expected, sizeof(expected), "\n         0 ->       10\xc2\xb5s%s", cases[i].line);
		assert_non_null(strstr(buf_text(&out), expected));
		assert_non_null(strstr(buf_text(&out), "\n      10\xc2\xb5s ->   12.345ms : 0        |"));
		assert_non_null(strstr(buf_text(&out), "\n  12.345ms ->          \xe2\x88\x9e : 4        |*"));
	}
	grid_of_metric(&grid, &metric, 1000000000, GRID_BOTH);
	assert_string_equal(grid_text(&grid, &grid.cells[grid_find_column(&grid, "max")]), "> 12.3ms");
	assert_string_equal(grid.columns[grid.n_columns - 1].heading, "0" DOTS "\xe2\x88\x9e");
	metric_done_series(&metric);
}

static void ten_thousand_series_are_cheap(void **state)
{
	_cleanup_(grid_done) struct grid grid = { 0 };
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct metric metric;
	clock_t start;

	metric_fill(&metric, 10000);
	start = clock();
	grid_of_metric(&grid, &metric, 1000000000, GRID_BOTH);
	grid_sort(&grid, grid_find_column(&grid, "pid"), false);
	assert_int_equal(((const struct series *)grid.rows[0])->attributes[3].number, 9999);
	grid_limit(&grid, 500);
	grid_print(&grid, 120, true, &out);
	assert_true(clock() - start < CLOCKS_PER_SEC);
	printf("10000 series: %.1f ms\n", (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC);
	assert_int_equal(grid.n_left, 9500);
	metric_done_series(&metric);
}

static void no_column_is_added_beyond_the_last(void **state)
{
	_cleanup_(grid_done) struct grid grid = { 0 };
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	grid_begin(&grid);
	for (unsigned int i = 0; i < GRID_COLUMNS_MAX + 1; i++)
		grid_add_column(&grid, "c", NULL, true);
	assert_int_equal(grid.n_columns, GRID_COLUMNS_MAX);
	grid_add_row(&grid, NULL);
	for (unsigned int i = 0; i < GRID_COLUMNS_MAX; i++) {
		buf_append_byte(&grid.text, '1');
		grid_end_cell(&grid, 1, LEVEL_PLAIN);
	}
	grid_print(&grid, 0, false, &out);
	assert_int_equal(out.size, 2 * (3 * GRID_COLUMNS_MAX + 1));
}

static void without_memory_nothing_is_shown_as_if_it_were_all(void **state)
{
	_cleanup_(grid_done) struct grid all = { 0 };
	_cleanup_(buf_done) struct buf whole = BUF_INIT;
	struct fixture fixture;
	unsigned int n = 0;
	int err = -1;

	fixture_init(&fixture);
	grid_of_metric(&all, &fixture.metrics[1], 1000000000, GRID_BOTH);
	grid_sort(&all, 0, false);
	grid_print(&all, 60, true, &whole);
	for (; err; n++) {
		_cleanup_(grid_done) struct grid grid = { 0 };
		_cleanup_(buf_done) struct buf out = BUF_INIT;

		alloc_fail_at(n);
		grid_of_metric(&grid, &fixture.metrics[1], 1000000000, GRID_BOTH);
		grid_sort(&grid, 0, false);
		grid_print(&grid, 60, true, &out);
		alloc_end();
		err = buf_error(&out);
		if (!err)
			assert_int_equal(out.size, whole.size);
	}
	assert_true(n > 10);
	fixture_done(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_width_is_that_on_a_terminal),
		cmocka_unit_test(a_cut_keeps_both_ends),
		cmocka_unit_test(what_a_terminal_may_show_elsewhere_is_replaced),
		cmocka_unit_test(equal_rows_keep_their_order),
		cmocka_unit_test(no_rows_are_sorted_too),
		cmocka_unit_test(a_limit_says_how_many_are_left),
		cmocka_unit_test(texts_are_cut_before_columns_go),
		cmocka_unit_test(a_name_that_is_cut_short_keeps_its_column),
		cmocka_unit_test(columns_that_tell_nothing_go_before_texts_are_cut),
		cmocka_unit_test(every_metric_has_a_grid),
		cmocka_unit_test(the_process_comes_after_its_unit),
		cmocka_unit_test(a_span_says_what_numbers_are_of),
		cmocka_unit_test(the_last_bucket_is_open),
		cmocka_unit_test(ten_thousand_series_are_cheap),
		cmocka_unit_test(no_column_is_added_beyond_the_last),
		cmocka_unit_test(without_memory_nothing_is_shown_as_if_it_were_all),
	};

	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
